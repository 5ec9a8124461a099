//! Servers that cannot register are watched; registered servers that can be queried are compared with their replies.

use rallypoint_harness::{Lobby, Process, Signal, rallypoint, wait_for};
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport};
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    path::Path,
};

/// Starts a server that answers queries with this file.
fn respond(home: &Path, flag: &str, info: &str) -> (Process, SocketAddr) {
    let file = home.join("info.toml");
    fs::write(&file, info).unwrap();
    let program = Process::spawn(rallypoint(home).arg("respond").arg("--info").arg(file).args([flag, "127.0.0.1:0"]));
    let addr = program.next_line().rsplit_once(' ').unwrap().1.parse().unwrap();
    (program, addr)
}

fn get(addr: SocketAddr, path: &str) -> String {
    let (mut tcp, mut answer) = (TcpStream::connect(addr).unwrap(), String::new());
    write!(tcp, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    tcp.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_watched_server_is_listed_until_it_is_removed_from_the_file() {
    let home = tempfile::tempdir().unwrap();
    let (_server, addr) = respond(home.path(), "--bloodmasters", "name = \"Blood\"\nplayers = 3\nmax_players = 8");
    let file = home.path().join("rallypoint.toml");
    fs::write(&file, format!("[[watch]]\nserver = \"bloodmasters://{addr}\"\nlist = \"gang garrison 2\"")).unwrap();
    let lobby = Lobby::start_in(home.path(), &["--config", file.to_str().unwrap()]);
    let list = lobby.wait_for_list("it is listed", |list| !list.is_empty());
    assert_eq!((&*list[0].name, list[0].occupancy.slots, list[0].endpoints().collect()), ("Blood", 8, vec![addr]));
    fs::write(&file, "").unwrap();
    lobby.process().signal(Signal::HUP);
    lobby.wait_for_list("it is gone", <[_]>::is_empty);
}

#[test]
fn a_false_player_count_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let (_server, addr) = respond(home.path(), "--session", "name = \"Crowded\"\nplayers = 0\nmax_players = 24");
    let lobby = Lobby::start_in(home.path(), &["--http", "127.0.0.1:0"]);
    let http = lobby.http();

    let mut table = TableBuf::new();
    table.push(b"name", b"Crowded").unwrap();
    table.push(b"x-query", b"session").unwrap();
    let (id, port) = (ServerId::from_bytes([7; 16]), addr.port().try_into().unwrap());
    let occupancy = Occupancy { players: 23, slots: 24, ..Occupancy::default() };
    let mut datagram = Vec::new();
    let registration =
        Registration::new(id, ListId::GANG_GARRISON_2, Transport::Udp, port, occupancy, table.as_table()).unwrap();
    registration.emit(&mut datagram);
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&datagram, lobby.v4()).unwrap();

    let expected = "\"verified\":\"differs\",\"differs\":[\"players\"]";
    wait_for("the API reports the difference", || get(http, "/api/v1/servers").contains(expected).then_some(()));
    assert!(get(http, "/").contains("Differs: lists 23 players, answers 0"));
}
