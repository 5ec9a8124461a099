//! Old Gang Garrison 2 servers and clients use the legacy port, and share the list with new ones (L16).

use rallypoint_harness::{GameServer, Lobby, eventually, has_ipv6, send_request};
use rallypoint_wire::legacy::{ListEntry, entries};
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// The protocol of a one-byte version: dea41970-4cea-a588-df40-62faef6f1738 plus the version.
fn protocol(version: u8) -> [u8; 16] {
    (0xdea4_1970_4cea_a588_df40_62fa_ef6f_1738_u128 + u128::from(version)).to_be_bytes()
}

/// A registration of an old server.
fn registration(version: &[u8], port: u16, info: &str) -> Vec<u8> {
    let magic = [4, 8, 15, 16, 23, 42];
    [&magic[..], version, &port.to_le_bytes(), &[info.len() as u8], info.as_bytes()].concat()
}

fn send(lobby: &Lobby, from: &str, datagram: &[u8]) {
    let socket = UdpSocket::bind((from.parse::<IpAddr>().unwrap(), 0)).unwrap();
    socket.send_to(datagram, lobby.legacy()).unwrap();
}

/// Info texts and addresses, sorted.
fn list(lobby: &Lobby, request: &[u8]) -> Vec<(String, SocketAddr)> {
    let reply = send_request(lobby.legacy(), request);
    let shown = |entry: ListEntry<'_>| {
        let mut text = Vec::new();
        entry.info.emit(&mut text);
        (String::from_utf8(text).unwrap(), SocketAddr::from(entry.endpoint))
    };
    let mut all: Vec<_> = entries(&reply).map(|entry| shown(entry.unwrap())).collect();
    all.sort();
    all
}

#[test]
fn l16_an_old_server_is_listed_for_old_and_new_clients() {
    let lobby = Lobby::with(&["checks.enabled=false"]);
    send(&lobby, "127.2.2.2", &registration(&[41], 8_190, "!private![ctf_truefort] Bacon Town [3/10] - Randomizer"));
    lobby.wait_until_listed(&["Bacon Town"]);
    let modern = lobby.server("Bacon Town").unwrap();
    assert_eq!(modern.v4, Some("127.2.2.2:8190".parse().unwrap()));
    assert_eq!((modern.occupancy.players, modern.occupancy.slots, modern.occupancy.password), (3, 10, true));
    assert_eq!(modern.key("map"), Some(&b"ctf_truefort"[..]));
    assert_eq!(modern.key("protocol_id"), Some(&protocol(41)[..]));
    let info = "!private![ctf_truefort] Bacon Town [3/10] - Randomizer";
    assert_eq!(list(&lobby, &[41]), [(info.into(), "127.2.2.2:8190".parse().unwrap())]);
    assert_eq!(list(&lobby, &[42]), [], "clients of another version do not see it");
    if has_ipv6() {
        assert_eq!(send_request(lobby.legacy_v6(), &[41]), send_request(lobby.legacy(), &[41]));
    }
}

#[test]
fn l16_a_new_server_is_listed_for_old_clients() {
    let lobby = Lobby::with(&["checks.enabled=false"]);
    let new = GameServer::named("Bacon Town").tcp(8_190).key("game", "Gang Garrison 2").key("map", "koth_valley");
    lobby.register(&new.clone().key("protocol_id", protocol(41)));
    lobby.wait_until_listed(&["Bacon Town"]);
    let expected = [("[koth_valley] Bacon Town [7/24]".into(), "127.0.0.1:8190".parse().unwrap())];
    assert_eq!(list(&lobby, &[41]), expected);
    // The long form of the same version (W8), and any other protocol.
    assert_eq!(list(&lobby, &[&[128][..], &protocol(41)].concat()), expected);
    lobby.register(&new.key("protocol_id", [7; 16]));
    let other = [&[128][..], &[7; 16]].concat();
    eventually("it is listed under its new protocol", || list(&lobby, &other) == expected);
    assert_eq!(list(&lobby, &[41]), []);
}
