//! `rallypoint announce` keeps checking the list and reports when a lobby no longer lists the server.

use rallypoint_harness::{Lobby, Process, Signal, rallypoint};
use std::fs;

#[test]
fn a_banned_server_is_reported_as_no_longer_listed() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("rallypoint.toml");
    fs::write(&file, "").unwrap();
    let lobby = Lobby::start_in(home.path(), &["--config", file.to_str().unwrap()]);
    let to = lobby.v4().to_string();
    let args = ["--name", "Bacon Town", "--port", "8190", "--transport", "udp", "--check-every", "50ms"];
    let program = Process::spawn(rallypoint(home.path()).args(["announce", "--lobby", &to]).args(args));
    program.next_line();
    assert_eq!(program.next_line(), format!("listed by {to} as 127.0.0.1:8190"));

    fs::write(&file, "[[ban]]\nname = \"bacon*\"").unwrap();
    lobby.process().signal(Signal::HUP);
    program.wait_for_log(&format!("no longer listed by {to}"));
    program.signal(Signal::TERM);
    assert_eq!(program.next_line(), "stopped; the server was no longer listed");
    assert_eq!(program.wait().status.code(), Some(0));
}

#[test]
fn a_lobby_that_stops_answering_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start();
    let to = lobby.v4().to_string();
    let args = ["--name", "Bacon Town", "--port", "8190", "--transport", "udp", "--check-every", "50ms"];
    let program = Process::spawn(rallypoint(home.path()).args(["announce", "--lobby", &to]).args(args));
    program.next_line();
    assert_eq!(program.next_line(), format!("listed by {to} as 127.0.0.1:8190"));

    lobby.stop();
    program.wait_for_log(&format!("cannot fetch the list of {to}: the connection was refused"));
    program.signal(Signal::TERM);
    program.wait_for_log("does not confirm the removal");
    assert_eq!(program.wait().status.code(), Some(0));
}

#[test]
fn w100_two_servers_on_one_port_are_each_told_of_the_other_and_logged() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start();
    let to = lobby.v4().to_string();
    let announce = |name: &str| {
        let args = ["--name", name, "--port", "8190", "--transport", "udp", "--check-every", "50ms", "--lobby", &to];
        Process::spawn(rallypoint(home.path()).arg("announce").args(args).args(["--id-file", name]))
    };
    let told_of = |rival: &str| {
        format!("another server registers at the same address and port: {to} lists \"{rival}\" at 127.0.0.1:8190.")
    };
    let first = announce("First");
    first.wait_for_line(&format!("listed by {to}"));
    let second = announce("Second");
    second.wait_for_line(&format!("listed by {to}"));
    first.wait_for_log(&told_of("Second"));
    // An announcer registers every 30 seconds. One that is killed and started again does so at once, with the same ID.
    first.signal(Signal::KILL);
    first.wait();
    let _first = announce("First");
    second.wait_for_log(&told_of("First"));
    lobby.wait_until_logged("register at the same address and port");
}
