//! A log that cannot be written, because the disk is full or nobody reads it any more, stops nothing.

use rallypoint_e2e::{GameServer, Listed, Process, Signal, ask, eventually, request};
use rallypoint_wire::lobby::LobbyId;
use std::net::{SocketAddr, UdpSocket};

#[test]
fn a_full_disk_under_the_log() {
    let home = tempfile::tempdir().unwrap();
    let args = ["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--set", "log.level=trace"];
    let mut lobby = Process::start_logging_to("/dev/full", home.path(), &args);
    let addr = || lobby.out().strip_prefix("lobby udp+tcp ").and_then(|addr| addr.trim().parse::<SocketAddr>().ok());
    eventually("it serves", || addr().is_some());
    let addr = addr().unwrap();
    let registration = GameServer::named("Bacon Town").registration();
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&registration, addr).unwrap();
    eventually("it is listed", || Listed::all(&ask(addr, &request(LobbyId::GANG_GARRISON_2))).len() == 1);
    lobby.signal(Signal::HUP);
    lobby.signal(Signal::TERM);
    assert_eq!(lobby.wait().code, Some(0));
}
