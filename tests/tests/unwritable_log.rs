//! A log that cannot be written, because the disk is full or the pipe is closed, does not stop the lobby.

use rallypoint_harness::{
    GameServer, ParsedServer, Process, Signal, eventually, list_request, rallypoint, send_request,
};
use rallypoint_wire::lobby::ListId;
use std::{
    net::{SocketAddr, UdpSocket},
    path::Path,
};

#[test]
fn a_full_disk() {
    let home = tempfile::tempdir().unwrap();
    let args = ["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--set", "log.level=trace"];
    let lobby = Process::spawn_logging_to(Path::new("/dev/full"), rallypoint(home.path()).args(args));
    let addr = || lobby.stdout().strip_prefix("lobby udp+tcp ").and_then(|addr| addr.trim().parse::<SocketAddr>().ok());
    eventually("it serves", || addr().is_some());
    let addr = addr().unwrap();
    let registration = GameServer::named("Bacon Town").registration();
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&registration, addr).unwrap();
    eventually("it is listed", || {
        ParsedServer::parse_all(&send_request(addr, &list_request(ListId::GANG_GARRISON_2))).len() == 1
    });
    lobby.signal(Signal::HUP);
    lobby.signal(Signal::TERM);
    assert_eq!(lobby.wait().status.code(), Some(0));
}
