//! `rallypoint announce` keeps checking the list and reports when a lobby no longer lists the server.

use rallypoint_harness::{GameServer, Lobby, Process, Signal, rallypoint};
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
fn w100_a_second_server_on_the_same_port_is_reported_to_both_and_logged() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start();
    let to = lobby.v4().to_string();
    let announce = |name: &str| {
        let args = ["--name", name, "--port", "8190", "--transport", "udp", "--check-every", "50ms", "--lobby", &to];
        Process::spawn(rallypoint(home.path()).arg("announce").args(args))
    };
    let first = announce("First");
    first.wait_for_line(&format!("listed by {to}"));
    let second = announce("Second");
    first.wait_for_log(&format!(
        "another server registers at the same address and port: {to} lists \"Second\" at 127.0.0.1:8190."
    ));
    second.wait_for_line(&format!("listed by {to}"));
    // An announcer registers every 30 seconds; a third server does not wait that long.
    let third = GameServer::named("Third").port(8190);
    lobby.register(&third);
    second.wait_for_log("lists \"Third\" at 127.0.0.1:8190.");
    // The log warns when a server returns that was replaced.
    lobby.register(&GameServer::named("Fourth").port(8190));
    lobby.register(&third);
    lobby.wait_until_logged("register at the same address and port");
}
