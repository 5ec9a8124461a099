//! What shares a payload, and in which order messages are sent (W111, W114).

use crate::common;

use common::{
    channels::{ChannelPair, ClientApp, EXPIRING, ORDERED, SEQUENCED, UNORDERED, table},
    forge::{PLAIN, Wiretap},
    ms, secs,
};
use rallypoint_netsim::{Link, Node, Rng};
use rallypoint_session_proto::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, ClientConfig, Encryption, EndpointConfig, MessageId, PlayerId,
    ServerEvent,
};
use rallypoint_wire::session::{
    MAX_DATAGRAM, MAX_TO_CLIENT,
    channels::{Record, records},
};
use std::{collections::BTreeSet, sync::Arc};

fn link() -> Link {
    Link::default().delay(ms(25))
}

#[test]
fn w111_droppable_and_reliable_messages_never_share_a_payload() {
    let server = EndpointConfig::for_game("tag").channels(table(3_000));
    let mut client = ClientConfig::new("alice", "tag").channels(table(3_000));
    client.encryption = Encryption::Plain;
    let mut pair = ChannelPair::start(1, link().loss(0.05).bottleneck(2_000_000, 30_000), server, client);
    pair.wait_for_player();
    let tap = Wiretap::attach(&mut pair.net);
    let mut rng = Rng::new(1);
    for _ in 0..600 {
        for _ in 0..rng.below(8) {
            let channel = [ORDERED, UNORDERED, SEQUENCED, EXPIRING][rng.below(4) as usize];
            let length = if rng.below(10) == 0 { rng.below(3_000) } else { rng.below(120) } as usize;
            pair.net
                .with(pair.server, |app, now| app.server.send(now, app.player(), channel, &vec![3; length]))
                .unwrap();
        }
        pair.net.run_for(rng.duration(ms(30)));
    }
    let mut shared = [0; 2];
    let from = pair.net.address(pair.server);
    for datagram in tap.sent(from, &[PLAIN]) {
        let payload = &datagram[MAX_DATAGRAM - MAX_TO_CLIENT..];
        let kinds: Vec<bool> = records(payload)
            .map(|record| match record.unwrap() {
                Record::Message { channel, .. } | Record::Fragment { channel, .. } => {
                    channel == SEQUENCED || channel == EXPIRING
                }
                // A report must arrive.
                Record::Control(_) => false,
            })
            .collect();
        assert!(kinds.windows(2).all(|pair| pair[0] == pair[1]), "{kinds:?}");
        if kinds.len() > 1 {
            shared[usize::from(kinds[0])] += 1;
        }
    }
    assert!(shared.iter().all(|count| *count > 30), "{shared:?}");
}

#[test]
fn w114_channels_of_the_same_priority_take_turns() {
    let bulk = Channel { queue: 200_000, ..Channel::new(ChannelMode::ReliableOrdered, 5_000) };
    let channels =
        ChannelTable::new(vec![bulk, Channel { mode: ChannelMode::ReliableUnordered, ..bulk }, bulk]).unwrap();
    let mut pair = ChannelPair::connect(1, link().bottleneck(2_000_000, 30_000), &channels);
    for _ in 0..500 {
        pair.net.with(pair.client, |app, now| {
            for (channel, length) in [(ORDERED, 300), (UNORDERED, 60), (SEQUENCED, 4_000)] {
                while app.client.send(now, channel, &vec![1; length]).is_ok() {}
            }
        });
        pair.net.run_for(ms(20));
    }
    let bytes = |channel: ChannelIndex| {
        let received = pair.server().received.iter().filter(|message| message.channel == channel);
        received.map(|message| message.bytes.len() as f64).sum::<f64>()
    };
    let all = [ORDERED, UNORDERED, SEQUENCED].map(bytes);
    // None of them waits for the others, whatever the sizes of their messages are.
    let total: f64 = all.iter().sum();
    assert!(total > 1_800_000.0 && all.iter().all(|bytes| *bytes > 0.2 * total), "{all:?}");
}

#[test]
fn w114_a_reliable_channel_may_have_a_higher_priority_than_a_sequenced_one() {
    let commands = Channel { priority: 0, ..Channel::new(ChannelMode::ReliableOrdered, 400) };
    let world = Channel { priority: 3, ..Channel::new(ChannelMode::Sequenced, 60_000) };
    let mut pair = ChannelPair::connect(
        1,
        link().bottleneck(1_000_000, 30_000),
        &ChannelTable::new(vec![commands, world]).unwrap(),
    );
    let mut sent_at = Vec::new();
    for number in 0..100 {
        // More than the path carries.
        pair.net.with(pair.server, |app, now| {
            let player = app.player();
            app.server.send(now, player, UNORDERED, &vec![number; 30_000]).unwrap();
            app.server.send(now, player, ORDERED, &[number; 100]).unwrap();
        });
        sent_at.push(pair.net.now());
        pair.net.run_for(ms(100));
    }
    pair.net.run_for(secs(2));
    let commands: Vec<_> = pair.client().received.iter().filter(|message| message.channel == ORDERED).collect();
    assert_eq!(commands.len(), 100);
    let mut delays: Vec<_> = commands.iter().map(|m| m.at - sent_at[usize::from(m.bytes[0])]).collect();
    delays.sort_unstable();
    // The queue of the path holds 240 ms. What waits behind the sequenced messages would take as long as those.
    assert!(delays[90] < ms(300), "{delays:?}");
    assert!(pair.client().received.len() > 120, "{}", pair.client().received.len());
}

#[test]
fn w114_reliable_messages_of_the_highest_priority_do_not_precede_resends() {
    let map = Channel { priority: 0, queue: 100_000, ..Channel::new(ChannelMode::ReliableOrdered, 5_000) };
    let positions = Channel { priority: 1, ..Channel::new(ChannelMode::Sequenced, 40) };
    let channels = ChannelTable::new(vec![map, positions]).unwrap();
    let mut pair = ChannelPair::connect(1, link().bottleneck(5_000_000, 64_000).loss(0.02), &channels);
    let mut most_late = 0;
    for _ in 0..600 {
        pair.net.with(pair.server, |app, now| {
            let player = app.player();
            while app.server.send(now, player, ORDERED, &[1; 5_000]).is_ok() {}
            app.server.send(now, player, UNORDERED, &[1; 40]).unwrap();
            let stats = app.server.connection(player).unwrap().stats();
            most_late = most_late.max(stats.unacked);
        });
        pair.net.run_for(ms(17));
    }
    let received: usize = pair.client().received.iter().filter(|m| m.channel == ORDERED).map(|m| m.bytes.len()).sum();
    println!("{received} bytes, {most_late} unacked");
    // Lost messages are resent before new ones, so the window never fills behind one of them.
    assert!(most_late < 1_000, "{most_late}");
    assert!(received > 3_000_000, "{received}");
}

#[test]
fn a_reliable_channel_carries_messages_of_16_mb() {
    const SIZE: usize = (1 << 24) - 1;
    let channels = ChannelTable::new(vec![Channel::new(ChannelMode::ReliableOrdered, SIZE)]).unwrap();
    let mut pair = ChannelPair::connect(1, Link::default().delay(ms(5)).loss(0.001), &channels);
    let message: Vec<u8> = (0..SIZE).map(|position| (position / 400 % 251) as u8).collect();
    pair.net.with(pair.client, |app, now| app.client.send(now, ORDERED, &message)).unwrap();
    pair.net.with(pair.client, |app, now| app.client.send(now, ORDERED, b"after").unwrap_err());
    let server = pair.server;
    assert!(pair.net.run_while(secs(60), |net| net.machine(server).received.is_empty()));
    assert!(pair.server().received[0].bytes == message);
    pair.net.with(pair.client, |app, now| app.client.send(now, ORDERED, b"after")).unwrap();
    pair.net.run_for(secs(1));
    assert_eq!(pair.server().received[1].bytes, b"after");
}

#[test]
fn w111_the_receipts_of_a_broadcast_name_its_messages() {
    let reliable = Channel { receipts: true, ..Channel::new(ChannelMode::ReliableOrdered, 60_000) };
    let channels = ChannelTable::new(vec![reliable, Channel::new(ChannelMode::ReliableOrdered, 100)]).unwrap();
    let mut pair = ChannelPair::connect(1, link().loss(0.05), &channels);
    let others: Vec<Node<ClientApp>> = (1..5_u8)
        .map(|number| {
            let config = ClientConfig::new("bob", "tag").channels(channels.clone());
            let app = ClientApp::new(pair.net.now(), config, number + 10);
            pair.net.add(([10, 0, 3, number], 1000), app)
        })
        .collect();
    pair.net.run_for(secs(1));
    let mut sent = BTreeSet::<(u8, MessageId)>::new();
    for round in 0..10_u8 {
        let message: Arc<[u8]> = vec![round; 5_000].into();
        pair.net.with(pair.server, |app, now| {
            let players: Vec<PlayerId> = app.server.players().collect();
            // One player has had more messages than the others, so its IDs differ.
            app.server
                .send(now, players[0], ORDERED, &[round; 9])
                .map(|id| sent.insert((players[0].index().get(), id)))
                .unwrap();
            app.server.broadcast(now, players.iter().copied(), ORDERED, message.clone(), |player, result| {
                assert!(sent.insert((player.index().get(), result.unwrap())));
            });
            assert_eq!(Arc::strong_count(&message), 1 + players.len(), "one copy of the bytes");
        });
        pair.net.run_for(ms(300));
    }
    pair.net.run_for(secs(3));
    let receipt = |(_, event): &(_, ServerEvent)| {
        if let ServerEvent::Receipt(player, id) = event { Some((player.index().get(), *id)) } else { None }
    };
    let confirmed: Vec<(u8, MessageId)> = pair.server().events.iter().filter_map(receipt).collect();
    assert_eq!(confirmed.len(), sent.len());
    assert_eq!(confirmed.into_iter().collect::<BTreeSet<_>>(), sent);
    assert_eq!(sent.len(), 60);
    assert!(others.iter().all(|client| pair.net.machine(*client).received.len() >= 10));
}
