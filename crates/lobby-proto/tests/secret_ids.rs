//! The server ID is a secret between a server and its lobby.

use crate::support;
use rallypoint_announce::Announcer;
use rallypoint_lobby_proto::{Config, Event, HashKeys, PublicId, RegistrationOutcome, Registry, SaveFileWriter};
use rallypoint_machine::Machine;
use rallypoint_wire::lobby::{ListId, Transport};
use std::fmt::Debug;
use support::*;

/// Sixteen bytes that appear nowhere by chance.
const SECRET: u128 = 0xdead_beef_5ec4_e701_cafe_babe_0dd0_5ec2;

/// The secret in all forms in which bytes are usually printed.
fn forms() -> Vec<String> {
    let bytes = SECRET.to_be_bytes();
    let [a, b] =
        [u64::from_be_bytes(bytes[..8].try_into().unwrap()), u64::from_be_bytes(bytes[8..].try_into().unwrap())];
    let decimal: Vec<_> = bytes[..4].iter().map(ToString::to_string).collect();
    let hex: Vec<_> = bytes[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    vec![
        SECRET.to_string(),
        u128::from_le_bytes(bytes).to_string(),
        a.to_string(),
        b.to_string(),
        format!("{SECRET:x}"),
        "deadbeef-5ec4-e701".into(),
        "deadbeef".into(),
        decimal.join(", "),
        hex.join(", "),
        hex.join(" "),
    ]
}

fn assert_hidden(what: &str, text: &str) {
    let text = text.to_lowercase();
    for way in forms() {
        assert!(!text.contains(&way), "{what} shows the ID: {way}");
    }
}

fn assert_debug_hidden(what: &str, value: &impl Debug) {
    assert_hidden(what, &format!("{value:?}"));
    assert_hidden(what, &format!("{value:#?}"));
}

#[test]
fn l13_no_debug_output_contains_the_id() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(SECRET));
    lobby.register("203.0.113.10", &tcp(SECRET + 1));
    lobby.unregister("203.0.113.9", SECRET);
    let outcome = lobby.register("203.0.113.9", &udp(SECRET));
    assert_debug_hidden("an outcome", &outcome);
    lobby.wait(secs(4));
    lobby.register("203.0.113.9", &udp(SECRET));
    assert_debug_hidden("the registry", &lobby.registry);
    assert_debug_hidden("the past", &lobby.recent_outcomes(ip("203.0.113.9")));
    assert_debug_hidden("the statistics", &lobby.stats());
    lobby.list();
    assert_debug_hidden("the lists", &lobby.lists().snapshot());
    while let Some(event) = lobby.poll_event() {
        if let Event::Listed(listing) = &event {
            assert_hidden("the public ID", &listing.public_id().to_string());
        }
        assert_debug_hidden("an event", &event);
    }
    let mut saver = SaveFileWriter::new();
    lobby.save_next(lobby.now, &mut saver, 10);
    assert_debug_hidden("a save", &saver);
    assert_debug_hidden("the seed", &KEYS);
}

#[test]
fn l13_the_announcer_does_not_print_the_id() {
    let (port, to) = (8190.try_into().unwrap(), vec!["203.0.113.1:29944".parse().unwrap()]);
    let now = std::time::Instant::now();
    let id = udp(SECRET).server_id();
    let mut announcer = Announcer::new(id, LOBBY, Transport::Udp, port, b"name", to, now).unwrap();
    assert_debug_hidden("an announcer", &announcer);
    let mut datagram = Vec::new();
    announcer.poll_transmit(now, &mut datagram).unwrap();
    assert!(datagram.windows(16).any(|window| window == SECRET.to_be_bytes()), "only the datagram contains it");
    assert_debug_hidden("an announcer that has sent something", &announcer);
    announcer.stop();
    assert_debug_hidden("an announcer that has stopped", &announcer);
}

#[test]
fn l13_no_list_contains_the_id() {
    let mut lobby = Lobby::default();
    let server = udp(SECRET).key("protocol_id", [7; 16]);
    assert_eq!(lobby.register("203.0.113.9", &server), RegistrationOutcome::Listed);
    lobby.list();
    let list = lobby.lists().list(&ListId::GANG_GARRISON_2);
    let legacy = lobby.legacy_reply(rallypoint_wire::lobby::ProtocolId::from_bytes([7; 16]));
    assert!(legacy.len() > 1);
    for bytes in [list.pieces().flatten().copied().collect(), legacy.to_vec()] {
        for part in SECRET.to_be_bytes().windows(4) {
            assert!(!bytes.windows(4).any(|window| window == part));
        }
    }
}

fn public_id(keys: HashKeys, id: u128) -> PublicId {
    let now = std::time::Instant::now();
    let mut registry = Registry::new(Config::default(), keys, now).unwrap();
    registry.handle_datagram(now, "203.0.113.9:9".parse().unwrap(), &udp(id).datagram());
    let Some(Event::Listed(listing)) = registry.poll_event() else { panic!("it is listed") };
    listing.public_id()
}

#[test]
fn l13_the_public_id_is_a_keyed_hash() {
    let other_key = HashKeys { public_ids: [1; 16], ..KEYS };
    let other_tables = HashKeys { tables: 99, ..KEYS };
    assert_eq!(public_id(KEYS, 1), public_id(other_tables, 1), "the same after a restart");
    assert_ne!(public_id(KEYS, 1), public_id(KEYS, 2));
    assert_ne!(public_id(KEYS, 1), public_id(other_key, 1));
}
