//! `rallypoint announce` puts a server into the list, over both families, and takes it off again.

mod common;

use common::{Lobby, Running, has_ipv6, rallypoint, run, stderr, stdout};
use std::{net::TcpListener, path::Path, process::Command};

/// The command that announces to all addresses of a lobby.
fn announce(home: &Path, lobby: &Lobby, args: &[&str]) -> Command {
    let mut command = rallypoint(home);
    command.arg("announce").args(args);
    for addr in &lobby.addrs {
        command.args(["--lobby", &addr.to_string()]);
    }
    command
}

#[test]
fn over_both_families_until_ctrl_c() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start(home.path(), &[]);
    let args =
        ["--name", "Bacon Town", "--port", "8190", "--transport", "udp", "--slots", "24", "--map", "ctf_truefort"];
    let mut program = Running::start(announce(home.path(), &lobby, &args).args(["--key-hex", "x-tag=00ff"]));
    let line = program.line();
    assert!(line.starts_with("announcing \"Bacon Town\" (udp 8190) to 127.0.0.1:"), "{line}");
    assert!(line.ends_with("; Ctrl-C takes it off the list"), "{line}");

    let families = if has_ipv6() { 2 } else { 1 };
    let is_there = |list: &[common::Server]| list.first().is_some_and(|server| server.endpoints.len() == families);
    let server = lobby.wait_for_list("the server is listed in both families", is_there).remove(0);
    assert_eq!((&*server.name, server.slots), ("Bacon Town", 24));
    let key = |name: &str| server.keys.iter().find(|(key, _)| key == name).map(|(_, value)| &value[..]);
    assert_eq!(key("map"), Some(&b"ctf_truefort"[..]));
    assert_eq!(key("x-tag"), Some(&[0, 255][..]));
    let line = program.line();
    assert!(line.starts_with("listed by ") && line.contains("127.0.0.1:8190"), "{line}");

    program.signal("INT");
    lobby.wait_for_list("the server is off the list", <[_]>::is_empty);
    assert_eq!(program.wait().code(), Some(0));
}

#[test]
fn once_says_whether_the_server_is_listed() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start(home.path(), &[]);
    let game = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = game.local_addr().unwrap().port().to_string();
    let to = lobby.v4().to_string();
    let args = ["announce", "--name", "Tcp Town", "--port", &port, "--lobby", &to, "--once"];
    let output = run(home.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains(&format!("listed by {to} as 127.0.0.1:{port}\n")), "{}", stdout(&output));
    assert_eq!(common::list(lobby.v4()).len(), 1, "it stays in the list for its lease");
}

#[test]
fn once_fails_with_the_likely_reason_if_it_is_not() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start(home.path(), &["--set", "lobby.allow_private=false"]);
    let output = announce(home.path(), &lobby, &["--name", "x", "--port", "8190", "--transport", "udp", "--once"]);
    let output = { output }.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("not listed by "), "{}", stderr(&output));
}

#[test]
fn a_lobby_that_is_not_there_is_told() {
    let home = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let args = ["announce", "--name", "x", "--port", "8190", "--lobby", &free, "--once"];
    let output = run(home.path(), &args);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nothing answers there; is it the right lobby"), "{}", stderr(&output));
}

#[test]
fn the_id_file_keeps_a_server_the_same_server() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start(home.path(), &[]);
    let id = home.path().join("id");
    for port in ["8190", "8191"] {
        let args =
            ["--name", "Mover", "--port", port, "--transport", "udp", "--once", "--id-file", id.to_str().unwrap()];
        let output = announce(home.path(), &lobby, &args).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let list = common::list(lobby.v4());
    assert_eq!(list.len(), 1);
    assert!(list[0].endpoints.iter().all(|addr| addr.port() == 8191), "{list:?}");
}
