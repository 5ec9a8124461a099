//! Entries of a lobby's list (documents 000 and 001, ruling L16), mapped to the common view.

use rallypoint_query_proto::{Probe, Protocol, ServerInfo};
use rallypoint_wire::{
    legacy,
    lobby::{
        Datagram, Endpoint, ListBlock, ListId, Occupancy, ProtocolId, Registration, ServerId, TableBuf, Transport,
    },
};
use std::net::SocketAddr;

fn table() -> TableBuf {
    let mut table = TableBuf::new();
    for (key, value) in [
        (&b"name"[..], &b"Caf\xe9 24/7\x1b"[..]),
        (b"game", b"Vindicator's Server Mod"),
        (b"game_short", b"vinmod"),
        (b"game_ver", b"v2.3.7b2"),
        (b"game_url", b"http://example.org/"),
        (b"map", b"ctf_truefort"),
        (b"protocol_id", &[7; 16]),
        (b"x-query", b"session:45555"),
        (b"x-raw", b"\x00\xff"),
    ] {
        table.push(key, value).unwrap();
    }
    table
}

const OCCUPANCY: Occupancy = Occupancy { slots: 24, players: 7, bots: 2, password: true };

#[test]
fn a_block_of_a_list() {
    let table = table();
    let v4 = Endpoint { ip: [192, 0, 2, 1].into(), port: 8190.try_into().unwrap() };
    let block =
        ListBlock { transport: Transport::Udp, v4: Some(v4), v6: None, occupancy: OCCUPANCY, table: table.as_table() };
    let info = ServerInfo::from_list(&block);
    assert_eq!(info.name.as_deref(), Some("Café 24/7\u{fffd}"), "in Windows-1252, harmless (L5)");
    assert_eq!(info.game.as_deref(), Some("vinmod"));
    assert_eq!(info.game_name.as_deref(), Some("Vindicator's Server Mod"));
    assert_eq!(info.version.as_deref(), Some("v2.3.7b2"));
    assert_eq!(info.website.as_deref(), Some("http://example.org/"));
    assert_eq!(info.map.as_deref(), Some("ctf_truefort"));
    assert_eq!((info.players, info.max_players, info.bots), (Some(7), Some(24), Some(2)));
    assert_eq!((info.password, &info.player_list), (Some(true), &None));

    let own = info.lobby.unwrap();
    let endpoint: SocketAddr = "192.0.2.1:8190".parse().unwrap();
    assert_eq!((own.transport, &*own.endpoints), (Transport::Udp, &[endpoint][..]));
    assert_eq!(own.protocol_id, Some(ProtocolId::from_bytes([7; 16])));
    assert_eq!(own.entry(b"x-raw"), Some(&b"\x00\xff"[..]), "the bytes as they came");
    assert_eq!(own.entry(b"x-none"), None);
    let target = Probe::from_x_query(own.entry(b"x-query").unwrap(), endpoint).unwrap();
    assert_eq!(target, Probe::new("192.0.2.1:45555".parse().unwrap(), Protocol::Session.players()));
}

#[test]
fn l13_a_registration_without_its_secret_id() {
    let table = table();
    let id = ServerId::from_bytes(*b"secret secret se");
    let port = 8190.try_into().unwrap();
    let mut datagram = Vec::new();
    Registration::new(id, ListId::GANG_GARRISON_2, Transport::Tcp, port, OCCUPANCY, table.as_table())
        .unwrap()
        .emit(&mut datagram);
    let Ok(Datagram::Register(registration)) = Datagram::parse(&datagram) else { panic!("a registration") };
    let info = ServerInfo::from_registration(&registration, "203.0.113.9:51000".parse().unwrap());
    assert_eq!(info.lobby.as_ref().unwrap().endpoints, ["203.0.113.9:8190".parse().unwrap()]);
    assert!(!format!("{info:?}").contains("secret"));
}

#[test]
fn l16_an_entry_of_a_legacy_list() {
    let text = legacy::Info::parse(b"!private![ctf_truefort] Bacon Town 24/7 [3+2/10] - Randomizer");
    let info = ServerInfo::from_legacy(&text);
    assert_eq!(info.name.as_deref(), Some("Bacon Town 24/7"));
    assert_eq!(info.map.as_deref(), Some("ctf_truefort"));
    assert_eq!(info.game_name.as_deref(), Some("Randomizer"));
    assert_eq!((info.players, info.bots, info.max_players, info.password), (Some(3), Some(2), Some(10), Some(true)));
}
