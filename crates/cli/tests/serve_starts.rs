//! A lobby starts without configuration, prints its listen addresses, and serves them.

use rallypoint_harness::{Lobby, Process, Signal, list, program, rallypoint, run, stderr, stdout};
use rallypoint_wire::lobby::ListId;
use std::{
    net::SocketAddr,
    process::{Command, Stdio},
};

#[test]
fn it_needs_no_configuration_and_serves_every_address_it_prints() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    lobby.register_port("Bacon Town", 8190);
    lobby.wait_for_list("the server is listed", |list| list.len() == 1);
    for addr in lobby.addrs() {
        assert_eq!(list(addr, ListId::GANG_GARRISON_2)[0].name, "Bacon Town", "{addr}");
    }
    assert!(home.path().join(".local/state/rallypoint").is_dir(), "the list is stored in the home directory");
}

#[test]
fn legacy_addresses_are_printed_after_the_lobbys() {
    let home = tempfile::tempdir().unwrap();
    let args = ["serve", "--lobby", "127.0.0.1:0", "--legacy", "127.0.0.1:0", "--http", "off"];
    let program = Process::spawn(rallypoint(home.path()).args(args));
    for kind in ["lobby", "legacy"] {
        let line = program.next_line();
        let addr: SocketAddr = line.strip_prefix(&format!("{kind} udp+tcp ")).unwrap().parse().unwrap();
        assert_ne!(addr.port(), 0, "the actual port is printed");
    }
}

#[test]
fn settings_can_come_from_the_environment() {
    let home = tempfile::tempdir().unwrap();
    let mut command = rallypoint(home.path());
    command.arg("serve").env("RALLYPOINT_LOBBY_LISTEN", "127.0.0.1:0").env("RALLYPOINT_LEGACY_LISTEN", "off");
    command.env("RALLYPOINT_WEB_LISTEN", "off");
    command.env("RALLYPOINT_LOG_FORMAT", "json").env("RALLYPOINT_DATA_DIR", home.path().join("data"));
    let lobby = Lobby::spawn(&mut command, 1);
    let line = lobby.process().wait_for_log("serving");
    assert!(line.starts_with('{') && line.ends_with('}'), "{line}");
    assert!(home.path().join("data").is_dir());
}

#[test]
fn the_web_page_is_printed_last() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &["--http", "127.0.0.1:0"]);
    assert_ne!(lobby.http().port(), 0);
    let stdout = lobby.process().stdout();
    assert_eq!(stdout.lines().last(), Some(&*format!("http tcp {}", lobby.http())), "{stdout}");
}

#[test]
fn in_a_terminal_the_last_line_is_the_address_of_the_page() {
    let home = tempfile::tempdir().unwrap();
    let serve = format!("exec {} serve --lobby 127.0.0.1:0 --legacy off --http 127.0.0.1:0", program().display());
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &serve, "/dev/null"]).env_clear().env("HOME", home.path());
    let program = Process::spawn(terminal.envs([("PATH", "/usr/bin:/bin"), ("TERM", "xterm")]).stdin(Stdio::null()));
    let http = program.wait_for_line("http tcp ");
    let page = format!("Open http://{}/ in a browser", http.trim().strip_prefix("http tcp ").unwrap());
    program.wait_for_line("serving");
    let line = program.next_line();
    assert!(line.starts_with(&page) && line.contains("Ctrl-C"), "{line}");
    program.signal(Signal::TERM);
    program.wait();
}

#[test]
fn addresses_are_masked_in_the_log_unless_the_level_is_debug() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    lobby.register_port("Bacon Town", 8190);
    let line = lobby.process().wait_for_log("Bacon Town");
    assert!(!line.contains("127.0.0.1"), "{line}");
    drop(lobby);
    let lobby = Lobby::start_in(home.path(), &["--set", "log.level=debug"]);
    lobby.register_port("Bacon City", 8191);
    lobby.process().wait_for_log("127.0.0.1:8191");
}

#[test]
fn checking_the_configuration_starts_nothing() {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), ["serve", "--check-config"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("the configuration is valid\n"), "{}", stdout(&output));
    assert!(!home.path().join(".local").exists());
}

#[test]
fn the_printed_configuration_is_a_file_that_works() {
    let home = tempfile::tempdir().unwrap();
    let printed = stdout(&run(home.path(), ["serve", "--print-config", "--set", "lobby.lease=2m"]));
    assert!(printed.contains("\nlease = \"2m\"\n"), "{printed}");
    let file = home.path().join("rallypoint.toml");
    std::fs::write(&file, &printed).unwrap();
    let again = run(home.path(), ["serve", "--print-config", "--config", file.to_str().unwrap()]);
    assert_eq!(stdout(&again), printed);
}
