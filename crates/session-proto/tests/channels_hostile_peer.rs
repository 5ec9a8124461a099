//! A peer that does not follow the message layer is disconnected with a reason, and costs bounded memory (W112).

use crate::common;

use common::{
    channels::{ChannelPair, EXPIRING, ORDERED, SEQUENCED, UNORDERED, table},
    *,
};
use rallypoint_netsim::{Link, Node, Rng};
use rallypoint_session_proto::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, ClientConfig, ClientEvent, DisconnectReason, EndpointConfig,
    ONLY_CHANNEL, PlayerId, SendError, ServerEvent,
};
use rallypoint_wire::session::channels::{RecordWriter, TableEntry};

const SIZE: usize = 5_000;

/// Body of every fragment but the last of an encrypted message to the server.
const FRAGMENT: usize = 464 - 7;

/// A server, an honest client, and a client that sends what the test gives it, after a valid hello.
struct Attack {
    pair: ChannelPair,
    attacker: Node<ClientApp>,
}

fn entries() -> [TableEntry; 4] {
    [0, 1, 2, 3].map(|mode| TableEntry { mode, max_to_server: SIZE as u32, max_to_client: SIZE as u32 })
}

impl Attack {
    /// After a valid hello.
    fn start() -> Self {
        let mut attack = Self::start_silent();
        attack.send(|writer| writer.hello(&entries(), &[]));
        assert_eq!(attack.pair.server().server.players().count(), 2);
        attack
    }

    /// Before the hello.
    fn start_silent() -> Self {
        Self::start_with(EndpointConfig::for_game("tag").channels(table(SIZE)))
    }

    /// After a valid hello and two messages to a server whose application has not decided on the login yet.
    fn start_undecided() -> (Self, PlayerId) {
        let server = EndpointConfig { decides_logins: true, ..EndpointConfig::for_game("tag").channels(table(SIZE)) };
        let mut attack = Self::start_with(server);
        attack.send(|writer| writer.hello(&entries(), &[]));
        for sequence in 0..2 {
            attack.send(|writer| writer.message(ORDERED, sequence, b"not accepted"));
        }
        let request = |event: &ServerEvent, name| match event {
            ServerEvent::LoginRequest(request) if request.new.username == name => Some(request.new.player),
            _ => None,
        };
        let player = |name| attack.pair.server().events.iter().find_map(|(_, event)| request(event, name)).unwrap();
        let (honest, attacker) = (player("alice"), player("mallory"));
        attack.pair.net.with(attack.pair.server, |app, now| assert!(app.server.accept_login(now, honest)));
        attack.pair.net.run_for(ms(100));
        (attack, attacker)
    }

    fn start_with(server: EndpointConfig) -> Self {
        let client = ClientConfig::new("alice", "tag").channels(table(SIZE));
        let mut pair = ChannelPair::start(1, Link::default().delay(ms(5)), server, client);
        let now = pair.net.now();
        let app = ClientApp::new(now, SERVER.into(), ClientConfig::new("mallory", "tag+m1"), 9);
        let attacker = pair.net.add(([10, 0, 9, 9], 999), app);
        pair.net.run_for(secs(1));
        Self { pair, attacker }
    }

    /// The honest player has noticed nothing, and what the attacker may keep at the server is bounded.
    fn check_others(&self) {
        assert!(self.pair.client().received.is_empty());
        assert!(self.pair.client().client.is_connected());
        assert!(self.pair.server().server.stats().memory < 50_000);
    }

    /// Sends one payload.
    fn send(&mut self, write: impl FnOnce(&mut RecordWriter) -> bool) {
        let mut writer = RecordWriter::new(464);
        assert!(write(&mut writer), "the record does not fit");
        self.send_raw(writer.finish());
    }

    fn send_raw(&mut self, payload: &[u8]) {
        let sent = self.pair.net.with(self.attacker, |app, now| app.client.send(now, ONLY_CHANNEL, payload));
        self.pair.net.run_for(ms(20));
        assert!(matches!(sent, Ok(_) | Err(SendError::Closed)), "{sent:?}");
    }

    /// Why the server has ended the session.
    fn reason(&mut self) -> Option<String> {
        self.pair.net.run_for(secs(2));
        let reason = |event: &ClientEvent| match event {
            ClientEvent::Disconnected(DisconnectReason::ClosedByPeer(text)) => Some(text.clone()),
            _ => None,
        };
        self.pair.net.machine(self.attacker).events.iter().find_map(|(_, event)| reason(event))
    }

    fn expect(mut self, reason: &str) {
        assert_eq!(self.reason().as_deref(), Some(reason));
        let is_fault = |event: &ServerEvent| matches!(event, ServerEvent::Disconnected(_, DisconnectReason::Channels(fault)) if fault.to_string() == reason);
        assert!(self.pair.server().events.iter().any(|(_, event)| is_fault(event)), "{:?}", self.pair.server().events);
        assert_eq!(self.pair.server().server.players().count(), 1, "the honest player stays");
        let stats = self.pair.server().server.stats();
        assert_eq!((stats.channel_faults, stats.tables_refused, stats.tokens_refused), (1, 0, 0));
    }
}

#[test]
fn w112_malformed_records_end_the_session() {
    for (payload, field) in [
        (&b"\xc0\0\0"[..], "kind"),
        (b"\x00\0", "sequence"),
        (b"\x20\xff\xff\0\0hello", "record"),
        (b"\x40\0\0\0\0\x01\0a", "count"),
        (b"\x40\0\0\x02\0\x02\0a", "count"),
        (b"\x9f", "control type"),
        (b"\x81\x00\x01", "sequences"),
        (b"\x81", "channel"),
        (b"\x81\x20\x01\0", "channel"),
        (b"\x82\x00\x01", "sequence"),
        (b"\x82\x00\x01\0\0", "credit"),
        (b"\x40\0\0\0\0\x02\0", "body"),
        (b"\x40\0\0\0\0", "count"),
        (b"\x40\0\0\0\0\0\0a", "count"),
        (b"\x20\x05", "length"),
        (b"\x80\x01\x01\0\x01\0\0\x01\0\0\0", "second hello"),
    ] {
        let mut attack = Attack::start();
        attack.send_raw(payload);
        attack.expect(&format!("a malformed message: {field}"));
    }
}

#[test]
fn w112_a_message_on_a_channel_that_does_not_exist_ends_the_session() {
    for number in [4, 31] {
        let channel = ChannelIndex::new(number).unwrap();
        let reason = format!("a message on channel {number}, which does not exist in this direction");
        let mut attack = Attack::start();
        attack.send(|writer| writer.message(channel, 0, b"x"));
        attack.expect(&reason);
        let mut attack = Attack::start();
        attack.send(|writer| writer.fragment(channel, 0, 0, 2, &[0; FRAGMENT]));
        attack.expect(&reason);
    }
}

#[test]
fn w112_messages_that_are_too_large_end_the_session() {
    let count = (SIZE / FRAGMENT + 2) as u16;
    for channel in [ORDERED, UNORDERED, SEQUENCED] {
        let mut attack = Attack::start();
        attack.send(|writer| writer.fragment(channel, 0, 0, count, &[0; FRAGMENT]));
        attack.expect(&format!("a message on channel {} that is larger than the channel allows", channel.get()));
    }
    // The last fragment of a message that is one byte too large.
    let mut attack = Attack::start();
    attack.send(|writer| writer.fragment(ORDERED, 0, 10, 11, &[0; SIZE - 10 * FRAGMENT + 1]));
    attack.expect("a message on channel 0 that is larger than the channel allows");
}

#[test]
fn w112_messages_out_of_range_end_the_session() {
    for channel in [ORDERED, UNORDERED] {
        for sequence in [16_384, 40_000, u16::MAX] {
            let mut attack = Attack::start();
            attack.send(|writer| writer.message(channel, sequence, b"x"));
            attack.expect(&format!("a message on channel {} out of range", channel.get()));
        }
        // The same message twice.
        for sequences in [[0, 0], [5, 5]] {
            let mut attack = Attack::start();
            sequences.into_iter().for_each(|sequence| attack.send(|writer| writer.message(channel, sequence, b"x")));
            attack.expect(&format!("a message on channel {} out of range", channel.get()));
        }
        // The same fragment twice, a fragment of another length, and one that contradicts the first.
        for (index, count, length) in [(0, 3, FRAGMENT), (1, 3, FRAGMENT - 1), (1, 4, FRAGMENT)] {
            let mut attack = Attack::start();
            attack.send(|writer| writer.fragment(channel, 0, 0, 3, &[0; FRAGMENT]));
            attack.send(|writer| writer.fragment(channel, 0, index, count, &vec![0; length]));
            attack.expect(&format!("a message on channel {} out of range", channel.get()));
        }
    }
}

#[test]
fn w112_reports_about_messages_that_were_never_sent_end_the_session() {
    for channel in [ORDERED, SEQUENCED, ChannelIndex::new(9).unwrap()] {
        let mut attack = Attack::start();
        attack.send(|writer| writer.credit(channel, 1));
        attack.expect(&format!("a message on channel {} out of range", channel.get()));
        let mut attack = Attack::start();
        attack.send(|writer| writer.receipt(channel, [0].into_iter()) == 1);
        attack.expect(&format!("a message on channel {} out of range", channel.get()));
    }
}

#[test]
fn w112_unfinished_messages_take_bounded_memory() {
    // Fragments of ever more messages, none of which is ever complete.
    let mut attack = Attack::start();
    let mut sent = 0;
    for sequence in 1..16_000 {
        let mut writer = RecordWriter::new(464);
        assert!(writer.fragment(ORDERED, sequence, 9, 10, &[7; FRAGMENT]));
        let payload = writer.finish().to_vec();
        let result = attack.pair.net.with(attack.attacker, |app, now| app.client.send(now, ONLY_CHANNEL, &payload));
        attack.pair.net.run_for(ms(1));
        if result.is_err() {
            break;
        }
        sent += 1;
    }
    // Each takes the memory of its fragment: the server gives up after a window of messages, one of each channel, and as many
    // without bytes as may be under way. The attacker notices a second later.
    assert!(sent < 13_000, "{sent} messages");
    attack.expect("too many unfinished messages");
}

#[test]
fn w112_fragments_that_contradict_each_other_end_the_session_also_where_messages_may_be_dropped() {
    for channel in [SEQUENCED, EXPIRING] {
        for (index, count, length) in [(0, 3, FRAGMENT), (1, 3, FRAGMENT - 1), (1, 4, FRAGMENT)] {
            let mut attack = Attack::start();
            attack.send(|writer| writer.fragment(channel, 0, 0, 3, &[0; FRAGMENT]));
            attack.send(|writer| writer.fragment(channel, 0, index, count, &vec![0; length]));
            attack.expect(&format!("a message on channel {} out of range", channel.get()));
        }
    }
}

#[test]
fn w112_unfinished_messages_that_may_be_dropped_take_the_memory_of_the_newest_only() {
    for (channel, kept) in [(SEQUENCED, 1), (EXPIRING, 64)] {
        let mut attack = Attack::start();
        let before = attack.pair.server().server.stats().memory;
        for sequence in 0..500 {
            attack.send(|writer| writer.fragment(channel, sequence, 9, 10, &[7; FRAGMENT]));
        }
        let taken = attack.pair.server().server.stats().memory - before;
        assert!(taken <= kept * (FRAGMENT + 200), "{taken} bytes");
        assert_eq!(attack.pair.server().server.players().count(), 2, "a correct peer may have sent this");
    }
}

#[test]
fn w112_every_byte_of_a_record_may_be_anything() {
    let payloads: [&[u8]; 5] = [
        b"\x20\x05\0\0\0one\x21\x05\0\0\0two\x22\x05\0\0\0six\x03\0\0ten",
        b"\x60\x08\0\0\0\0\0\x02\0ab\x01\0\0x",
        b"\x43\x05\0\x01\0\x02\0last",
        b"\x82\0\0\0",
        b"\xa2\x03\0\x01\0\0\xa1\x03\0\0\0\0\0\0\0",
    ];
    for payload in payloads {
        for position in 0..payload.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, payload[position] ^ 0x20] {
                let mut attack = Attack::start();
                let mut changed = payload.to_vec();
                changed[position] = value;
                attack.send_raw(&changed);
                attack.send_raw(&payload[..position + 1]);
                attack.check_others();
            }
        }
    }
}

#[test]
fn w110_a_hello_that_is_wrong_in_any_byte_is_refused() {
    let mut writer = RecordWriter::new(464);
    assert!(writer.hello(&entries(), &[]));
    let hello = writer.finish().to_vec();
    for position in 0..hello.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, hello[position] ^ 0x20] {
            let mut changed = hello.clone();
            changed[position] = value;
            if changed == hello {
                continue;
            }
            let mut attack = Attack::start_silent();
            attack.send_raw(&changed);
            attack.send_raw(&hello);
            let reason = attack.reason().expect("a reason");
            assert!(
                ["the first message is not a hello", "version ", "the tables of channels differ at channel "]
                    .iter()
                    .any(|start| reason.starts_with(start)),
                "byte {position} is {value}: {reason}"
            );
            assert_eq!(attack.pair.server().server.stats().tables_refused, 1);
            attack.check_others();
        }
    }
    // Complete, and followed by a message.
    let mut attack = Attack::start_silent();
    attack.send_raw(&[b"\xa0\x1f\0", &hello[1..], b"\0\0\0x"].concat());
    assert_eq!(attack.reason().as_deref(), Some("a malformed message: hello"));
    attack.check_others();
}

#[test]
fn w112_random_payloads_never_reach_another_player() {
    let mut rng = Rng::new(7);
    for _ in 0..100 {
        let mut attack = Attack::start();
        for _ in 0..20 {
            let length = 1 + rng.below(100) as usize;
            let payload: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
            let _ = attack.pair.net.with(attack.attacker, |app, now| app.client.send(now, ONLY_CHANNEL, &payload));
            attack.pair.net.run_for(ms(2));
        }
        attack.pair.net.run_for(secs(1));
        assert!(attack.pair.client().received.is_empty());
        assert!(attack.pair.client().client.is_connected());
    }
}

#[test]
fn w112_a_direction_that_a_channel_does_not_have_is_refused() {
    let channel = Channel { max_to_server: 0, ..Channel::new(ChannelMode::ReliableOrdered, 100) };
    let table = ChannelTable::new(vec![channel]).unwrap();
    let mut pair = ChannelPair::connect(1, Link::default().delay(ms(5)), &table);
    let sent = pair.net.with(pair.client, |app, now| app.client.send(now, ORDERED, b"x"));
    assert_eq!(sent.unwrap_err().to_string(), "there is no such channel in this direction");
    let sent = pair.net.with(pair.client, |app, now| app.client.send(now, UNORDERED, b"x"));
    assert_eq!(sent.unwrap_err().to_string(), "there is no such channel in this direction");
}

#[test]
fn w112_messages_of_a_refused_player_never_reach_the_application() {
    let (mut attack, player) = Attack::start_undecided();
    attack.pair.net.with(attack.pair.server, |app, now| {
        assert!(app.server.disconnect(now, player, "not today"));
        assert!(app.server.recv(player).is_none());
        assert_eq!(app.server.send(now, player, ORDERED, b"x"), Err(SendError::Closed));
    });
    // While the server still resends its disconnect.
    for sequence in 2..5 {
        attack.send(|writer| writer.message(ORDERED, sequence, b"refused"));
        attack.pair.net.with(attack.pair.server, |app, _| assert!(app.server.recv(player).is_none()));
    }
    assert_eq!(attack.reason().as_deref(), Some("not today"));
    assert!(attack.pair.server().received.is_empty());
    let last = attack.pair.server().events.last().map(|(_, event)| event.clone());
    assert_eq!(last, Some(ServerEvent::Disconnected(player, DisconnectReason::Closed)));
    attack.check_others();
}

#[test]
fn w112_the_application_learns_that_a_player_has_left_before_it_decided() {
    let (mut attack, player) = Attack::start_undecided();
    attack.pair.net.with(attack.attacker, |app, now| app.client.close(now));
    attack.pair.net.run_for(secs(5));
    let last = attack.pair.server().events.last().map(|(_, event)| event.clone());
    assert_eq!(last, Some(ServerEvent::Disconnected(player, DisconnectReason::ClosedByPeer(String::new()))));
    attack.pair.net.with(attack.pair.server, |app, now| {
        assert!(!app.server.is_active(player) && !app.server.accept_login(now, player));
    });
    attack.pair.net.run_for(secs(1));
    assert!(attack.pair.server().received.is_empty());
    attack.check_others();
}
