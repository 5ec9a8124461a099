//! A log that is not read, because the program at the other end of the pipe hangs, does not stop the lobby.

use rallypoint_harness::{
    GameServer, ParsedServer, Process, Signal, eventually, list_request, rallypoint, send_request,
};
use rallypoint_wire::lobby::ListId;
use std::{
    fmt::Write,
    fs,
    net::{SocketAddr, UdpSocket},
};

/// Mistakes in a configuration file, each of which is logged: with their names, more bytes than a pipe holds.
const MISTAKES: usize = 600;
const NAME_LENGTH: usize = 120;

#[test]
fn a_stalled_reader() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("lobby.toml");
    fs::write(&config, "").unwrap();
    let args = ["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--config", "lobby.toml"];
    let (lobby, unread) = Process::spawn_logging_to_pipe(rallypoint(home.path()).args(args));
    let addr = || lobby.stdout().strip_prefix("lobby udp+tcp ").and_then(|addr| addr.trim().parse::<SocketAddr>().ok());
    eventually("it serves", || addr().is_some());
    let addr = addr().unwrap();
    let mistakes = (0..MISTAKES).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "unknown_{n:0>NAME_LENGTH$} = 1");
        text
    });
    fs::write(&config, mistakes).unwrap();
    lobby.signal(Signal::HUP);
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&GameServer::named("Bacon Town").registration(), addr).unwrap();
    eventually("it is listed", || {
        ParsedServer::parse_all(&send_request(addr, &list_request(ListId::GANG_GARRISON_2))).len() == 1
    });
    lobby.signal(Signal::TERM);
    assert_eq!(lobby.wait().status.code(), Some(0));
    drop(unread);
}
