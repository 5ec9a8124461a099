//! `rallypoint announce` registers a server over both address families and unregisters it at the end.

use rallypoint_harness::{
    Lobby, ParsedServer, Process, Signal, has_ipv6, program, rallypoint, run, skip, stderr, stdout,
};
use rallypoint_query::list_names;
use std::{
    net::{TcpListener, UdpSocket},
    path::Path,
    process::Command,
};

/// A command that announces a server to all addresses of a lobby.
fn announce(home: &Path, lobby: &Lobby, args: &[&str]) -> Command {
    let mut command = rallypoint(home);
    command.arg("announce").args(args);
    for addr in lobby.addrs() {
        command.args(["--lobby", &addr.to_string()]);
    }
    command
}

#[test]
fn a_server_is_listed_by_both_families_until_ctrl_c() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let args =
        ["--name", "Bacon Town", "--port", "8190", "--transport", "udp", "--slots", "24", "--map", "ctf_truefort"];
    let program = Process::spawn(announce(home.path(), &lobby, &args).args(["--key-hex", "x-tag=00ff"]));
    let line = program.next_line();
    assert!(line.starts_with("announcing \"Bacon Town\" (udp 8190) to the list gg2 of 127.0.0.1:"), "{line}");
    assert!(line.ends_with("; Ctrl-C removes it from the list"), "{line}");

    let families = if has_ipv6() { 2 } else { 1 };
    let is_there = |list: &[ParsedServer]| list.first().is_some_and(|server| server.endpoints().count() == families);
    let server = lobby.wait_for_list("the server is listed in both families", is_there).remove(0);
    assert_eq!((&*server.name, server.occupancy.slots), ("Bacon Town", 24));
    let key = |name: &str| server.keys.iter().find(|(key, _)| key == name).map(|(_, value)| &value[..]);
    assert_eq!(key("map"), Some(&b"ctf_truefort"[..]));
    assert_eq!(key("x-tag"), Some(&[0, 255][..]));
    let line = program.next_line();
    assert!(line.starts_with("listed by ") && line.contains("127.0.0.1:8190"), "{line}");

    program.signal(Signal::INT);
    lobby.wait_for_list("the server is off the list", <[_]>::is_empty);
    assert_eq!(program.wait().status.code(), Some(0));
}

#[test]
fn once_reports_whether_the_server_is_listed() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let game = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = game.local_addr().unwrap().port().to_string();
    let to = lobby.v4().to_string();
    let args = ["announce", "--name", "Tcp Town", "--port", &port, "--lobby", &to, "--once"];
    let output = run(home.path(), args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains(&format!("listed by {to} as 127.0.0.1:{port}\n")), "{}", stdout(&output));
    assert_eq!(lobby.servers().len(), 1, "it stays in the list for its lease");
}

#[test]
fn a_lobby_can_name_the_list() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let rooms = list_names::find("rooms").unwrap();
    let to = format!("lobby://{}/rooms", lobby.v4());
    let args = ["announce", "--name", "Tea room", "--port", "8190", "--transport", "udp", "--once", "--lobby", &to];
    let output = run(home.path(), args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("to the list rooms of 127.0.0.1:"), "{}", stdout(&output));
    assert_eq!(lobby.servers_in(rooms).len(), 1);
    let output = run(home.path(), [&args[..], &["--list", "gg2"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("a server is announced to one list, but gg2 and rooms are named"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn once_fails_with_the_likely_causes_if_it_is_not_listed() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &["--set", "lobby.allow_private=false"]);
    let output = announce(home.path(), &lobby, &["--name", "x", "--port", "8190", "--transport", "udp", "--once"]);
    let output = { output }.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let to = lobby.v4();
    let text = stderr(&output);
    let causes = format!(
        "not listed by {to} yet. Likely causes, most likely first:
  1. the lobby may not accept servers with private addresses; it sees this one at 127.0.0.1
  2. the registrations do not arrive; does a firewall block outgoing UDP to the lobby?
  3. the lobby refuses the server: its address or name is banned, or its address has too many servers
To find out: rallypoint doctor YOUR-ADDRESS:8190 --lobby {to} --transport udp
"
    );
    assert!(text.contains(&causes), "{text}");
}

#[test]
fn the_reason_reported_by_the_lobby_replaces_likely_causes() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &["--http", "127.0.0.1:0"]);
    let api = lobby.url();
    let to = lobby.v4().to_string();
    let long = format!("x-story={}", "x".repeat(5_000));
    let args = ["--port", "8190", "--transport", "udp", "--lobby", &to, "--api", &api, "--once", "--key", &long];
    let output = run(home.path(), [&["announce", "--name", "Long Story"], &args[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let expected =
        format!("not listed by {to} yet: the lobby reports too_large: the registration is larger than this lobby");
    assert!(stderr(&output).contains(&expected), "{output:?}");
    assert!(!stderr(&output).contains("Likely causes"), "{output:?}");
}

#[test]
fn a_name_that_is_too_long_is_not_repeated() {
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path(), ["announce", "--name", &"x".repeat(5_000), "--port", "8190"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the name has 5000 characters; the maximum is 200"), "{output:?}");
    assert!(stderr(&output).len() < 200, "{output:?}");
}

#[test]
fn l15_a_registration_that_lobbies_may_find_too_large_is_noted() {
    let home = tempfile::tempdir().unwrap();
    let lobby = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = lobby.local_addr().unwrap().to_string();
    let notes = |length: usize| {
        let key = format!("x-motd={}", "x".repeat(length));
        let args = ["--name", "Town", "--port", "8190", "--lobby", &to, "--once", "--no-check", "--key", &key];
        let output = rallypoint(home.path()).arg("announce").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        stderr(&output)
    };
    assert_eq!(notes(4_000), "");
    assert!(notes(4_100).contains("bytes, and lobbies accept 4096 unless configured otherwise"));
}

#[test]
fn a_tcp_server_that_is_not_running_is_the_first_cause() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &["--set", "ban=[{ name = \"*spam*\" }]"]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let to = lobby.v4().to_string();
    let output = run(home.path(), ["announce", "--name", "spam", "--port", &closed, "--lobby", &to, "--once"]);
    let text = stderr(&output);
    assert!(text.contains(&format!("  1. TCP port {closed} of this machine accepts no connections")), "{text}");
    assert!(text.contains("its address or name is banned"), "{text}");
}

#[test]
fn a_missing_address_family_is_reported() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let home = tempfile::tempdir().unwrap();
    // The game listens on IPv4 only, so the lobby can reach it only there.
    let game = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = game.local_addr().unwrap().port().to_string();
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (v4, v6) = (format!("127.0.0.1:{free}"), format!("[::1]:{free}"));
    let mut serve = rallypoint(home.path());
    let lobby = Lobby::spawn(serve.args(["serve", "--legacy", "off", "--lobby", &v4, "--lobby", &v6]), 2);
    let to = format!("localhost:{}", lobby.v4().port());
    let output = run(home.path(), ["announce", "--name", "One Way", "--port", &port, "--lobby", &to, "--once"]);
    let expected = format!(
        "listed by {to} as 127.0.0.1:{port}; not by IPv6: the lobby received no registration over IPv6, or cannot \
         reach port {port} there\n"
    );
    assert!(stdout(&output).contains(&expected), "{output:?}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_signal_removes_the_server_from_the_list() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    for signal in [Signal::HUP, Signal::TERM] {
        let args = ["--name", "Bacon Town", "--port", "8190", "--transport", "udp"];
        let program = Process::spawn(&mut announce(home.path(), &lobby, &args));
        program.next_line();
        for _ in lobby.addrs() {
            assert!(program.next_line().starts_with("listed by "));
        }
        program.signal(signal);
        assert_eq!(program.next_line(), "removed from the list");
        lobby.wait_for_list("the server is off the list", <[_]>::is_empty);
        assert_eq!(program.wait().status.code(), Some(0), "{signal:?}");
    }
}

#[test]
fn it_continues_without_its_terminal_if_sighup_is_ignored() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let command = format!(
        "trap '' HUP; exec {} announce --name Nohup --port 8190 --transport udp --no-check --lobby {}",
        program().to_str().unwrap(),
        lobby.v4()
    );
    let program = Process::spawn(Command::new("sh").args(["-c", &command]).env("HOME", home.path()));
    program.next_line();
    program.signal(Signal::HUP);
    lobby.wait_for_list("the server is listed", |list| !list.is_empty());
    program.signal(Signal::TERM);
    assert_eq!(program.next_line(), "stopped; an unregistration was sent");
    assert_eq!(program.wait().status.code(), Some(0));
}

#[test]
fn removal_is_not_reported_if_the_lobby_does_not_answer() {
    let home = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut command = rallypoint(home.path());
    command.args(["announce", "--name", "Nobody", "--port", "8190", "--transport", "udp", "--lobby", &closed]);
    let program = Process::spawn(&mut command);
    program.wait_for_log(&format!("cannot fetch the list of {closed}"));
    program.signal(Signal::TERM);
    program.wait_for_log("rallypoint: stopped; the server never appeared in the list");
    assert_eq!(program.wait().status.code(), Some(1));
}

#[test]
fn a_name_has_to_be_visible() {
    let home = tempfile::tempdir().unwrap();
    for name in ["", "  "] {
        let output = run(home.path(), ["announce", "--name", name, "--port", "1"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("expected a visible name"), "{output:?}");
    }
    let lobby = Lobby::start_in(home.path(), &[]);
    let args = ["--name", "  Bacon Town ", "--port", "8190", "--transport", "udp", "--once"];
    assert!(announce(home.path(), &lobby, &args).output().unwrap().status.success());
    assert_eq!(lobby.servers()[0].name, "Bacon Town");
}

#[test]
fn an_unreachable_lobby_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let args = ["announce", "--name", "x", "--port", "8190", "--lobby", &free, "--once"];
    let output = run(home.path(), args);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the connection was refused; is it the right lobby"), "{}", stderr(&output));
}

#[test]
fn the_id_file_preserves_the_identity_of_a_server() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let id = home.path().join("id");
    for port in ["8190", "8191"] {
        let args =
            ["--name", "Mover", "--port", port, "--transport", "udp", "--once", "--id-file", id.to_str().unwrap()];
        let output = announce(home.path(), &lobby, &args).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let list = lobby.servers();
    assert_eq!(list.len(), 1);
    assert!(list[0].endpoints().all(|addr| addr.port() == 8191), "{list:?}");
}
