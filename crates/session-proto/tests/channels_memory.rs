//! Unfinished messages of all players share the memory of the server (W116).

use crate::common;

use common::{
    channels::{ChannelPair, ORDERED, UNORDERED},
    *,
};
use rallypoint_netsim::{Link, Node};
use rallypoint_session_proto::{
    Channel, ChannelFault, ChannelMode, ChannelTable, ClientConfig, DisconnectReason, EndpointConfig, ONLY_CHANNEL,
    ServerEvent,
};
use rallypoint_wire::session::channels::{RecordWriter, TableEntry};

/// Body of every fragment but the last of an encrypted message to the server.
const FRAGMENT: usize = 464 - 7;
const SIZE: usize = 8 << 20;
const MEMORY: usize = 2 << 20;

fn table() -> ChannelTable {
    let modes = [ChannelMode::ReliableOrdered, ChannelMode::ReliableUnordered];
    ChannelTable::new(modes.map(|mode| Channel::new(mode, SIZE))).unwrap()
}

/// Adds a client that has sent a hello, and sends payloads of the test's choice.
fn attacker(pair: &mut ChannelPair, n: u8) -> Node<ClientApp> {
    let now = pair.net.now();
    let app = ClientApp::new(now, SERVER.into(), ClientConfig::new("mallory", "tag+m1"), n);
    let attacker = pair.net.add(([10, 0, 9, n], 999), app);
    pair.net.run_for(ms(100));
    let entries = [0, 1].map(|mode| TableEntry { mode, max_to_server: SIZE as u32, max_to_client: SIZE as u32 });
    send(pair, attacker, |writer| writer.hello(&entries, &[]));
    pair.net.run_for(ms(100));
    attacker
}

fn send(pair: &mut ChannelPair, from: Node<ClientApp>, write: impl FnOnce(&mut RecordWriter) -> bool) -> bool {
    let mut writer = RecordWriter::new(464);
    assert!(write(&mut writer));
    let payload = writer.finish().to_vec();
    pair.net.with(from, |app, now| app.client.send(now, ONLY_CHANNEL, &payload)).is_ok()
}

#[test]
fn w116_the_player_whose_unfinished_messages_take_the_most_is_disconnected() {
    let mut server = EndpointConfig::for_game("tag").channels(table());
    server.memory = MEMORY;
    let client = ClientConfig::new("alice", "tag").channels(table());
    let mut pair = ChannelPair::start(1, Link::default().delay(ms(5)), server, client);
    pair.net.run_for(secs(1));
    let attackers = [1, 2, 3].map(|n| attacker(&mut pair, n));
    // The honest player sends a message that takes a while, and the others never finish theirs: the first sends the most.
    pair.net.with(pair.client, |app, now| app.client.send(now, ORDERED, &[5; 200_000])).unwrap();
    let mut largest = 0;
    for index in 0..3_000u16 {
        for (n, attacker) in attackers.into_iter().enumerate() {
            if usize::from(index) % (n + 1) == 0 {
                send(&mut pair, attacker, |writer| writer.fragment(UNORDERED, 0, index + 1, 18_000, &[7; FRAGMENT]));
            }
        }
        pair.net.run_for(ms(1));
        largest = largest.max(pair.server().server.stats().memory);
    }
    pair.net.run_for(secs(2));
    assert!(largest <= MEMORY, "{largest} bytes");
    let is_fault = |event: &&ServerEvent| {
        matches!(event, ServerEvent::Disconnected(_, DisconnectReason::Channels(ChannelFault::Memory)))
    };
    let ends = pair.server().events.iter().map(|(_, event)| event).filter(is_fault).count();
    assert!((1..=3).contains(&ends), "{ends} sessions ended");
    assert!(pair.net.machine(attackers[0]).client.connection().is_none(), "the one with the most");
    assert!(pair.client().client.is_connected());
    assert!(pair.server().received.iter().any(|message| message.bytes == [5; 200_000]));
}

#[test]
fn w116_memory_is_free_again_when_messages_are_complete_or_their_player_has_left() {
    let server = EndpointConfig::for_game("tag").channels(table());
    let client = ClientConfig::new("alice", "tag").channels(table());
    let mut pair = ChannelPair::start(1, Link::default().delay(ms(5)), server, client);
    pair.net.run_for(secs(1));
    let attacker = attacker(&mut pair, 1);
    for index in 0..1_000u16 {
        send(&mut pair, attacker, |writer| writer.fragment(ORDERED, 1, index, 2_000, &[7; FRAGMENT]));
        pair.net.run_for(ms(1));
    }
    pair.net.with(pair.client, |app, now| app.client.send(now, ORDERED, &[5; 1_000_000])).unwrap();
    pair.net.run_for(secs(5));
    let memory = pair.server().server.stats().memory;
    assert!((400_000..800_000).contains(&memory), "{memory} bytes: the unfinished message");
    pair.net.with(attacker, |app, now| app.client.close(now));
    pair.net.run_for(secs(10));
    assert!(pair.server().server.stats().memory < 10_000);
}

#[test]
fn w116_a_player_who_has_timed_out_does_not_hold_memory_forever() {
    // Called in an order in which no event of the first player's end is handled before memory is needed.
    let mut server = EndpointConfig::for_game("tag").channels(table());
    server.memory = MEMORY;
    let client = ClientConfig::new("alice", "tag").channels(table());
    let mut pair = ChannelPair::start(1, Link::default().delay(ms(5)), server, client);
    pair.net.run_for(secs(1));
    let first = attacker(&mut pair, 1);
    let second = attacker(&mut pair, 2);
    for index in 0..1_200u16 {
        send(&mut pair, first, |writer| writer.fragment(UNORDERED, 0, index + 1, 18_000, &[7; FRAGMENT]));
        pair.net.run_for(ms(1));
    }
    // The first player falls silent, and the second sends on while the session of the first times out.
    pair.net.partition(first, pair.server, true);
    for index in 0..3_000u16 {
        send(&mut pair, second, |writer| writer.fragment(UNORDERED, 0, index + 1, 18_000, &[7; FRAGMENT]));
        pair.net.run_for(ms(20));
    }
    pair.net.run_for(secs(5));
    assert!(pair.server().server.stats().memory <= MEMORY);
    assert_eq!(pair.server().server.players().count(), 1, "only the honest player is left");
    assert!(pair.client().client.is_connected());
}
