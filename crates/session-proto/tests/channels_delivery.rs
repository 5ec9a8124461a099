//! Properties that a game relies on beyond arrival: stale messages are not resent, receipts, one payload for many players, priorities,
//! rates, and the last messages of a session (W111, W114).

use crate::common;

use common::{
    channels::{ChannelPair, ClientApp, EXPIRING, ORDERED, SEQUENCED, UNORDERED, table},
    *,
};
use rallypoint_netsim::Link;
use rallypoint_session_proto::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, ClientConfig, ClientEvent, DisconnectReason, SendError,
    ServerEvent,
};
use std::sync::Arc;

fn link() -> Link {
    Link::default().delay(ms(25))
}

#[test]
fn w111_a_position_that_was_replaced_is_not_resent() {
    let mut pair = ChannelPair::connect(1, link().loss(0.1), &table(1_000));
    let server = pair.server;
    for number in 0..600 {
        pair.net
            .with(server, |app, now| app.server.send(now, app.player(), SEQUENCED, &numbered(number, 300)))
            .unwrap();
        pair.net.run_for(ms(50));
    }
    pair.net.run_for(secs(2));
    let stats = pair.server().server.connection(pair.server().player()).unwrap().stats();
    // A tenth is lost; a copy or the resend of the newest repairs some of them.
    assert!(stats.discarded >= 20, "{stats:?}");
    let numbers: Vec<u32> = pair.client().received.iter().map(|message| number_of(&message.bytes)).collect();
    assert!(numbers.is_sorted() && numbers.last() == Some(&599), "{numbers:?}");
    assert!(numbers.len() > 500 && numbers.len() < 600, "{}", numbers.len());
}

#[test]
fn w111_a_message_that_is_late_is_not_delivered() {
    let max_age = ms(100);
    let channel = Channel { max_age, ..Channel::new(ChannelMode::Expiring, 1_000) };
    let channels = ChannelTable::new(vec![channel]).unwrap();
    let mut pair = ChannelPair::connect(1, link(), &channels);
    let (client, server) = (pair.client, pair.server);
    let expiring = ChannelIndex::new(0).unwrap();
    // Nothing passes for a second.
    pair.net.partition(client, server, true);
    for number in 0..20 {
        pair.net.with(client, |app, now| app.client.send(now, expiring, &numbered(number, 100))).unwrap();
        pair.net.run_for(ms(50));
    }
    pair.net.partition(client, server, false);
    pair.net.run_for(secs(5));
    let late: Vec<u32> = pair.server().received.iter().map(|message| number_of(&message.bytes)).collect();
    // Only the last ones were still of use when the network was back.
    assert!(late.iter().all(|number| *number >= 15), "{late:?}");
    pair.net.with(client, |app, now| app.client.send(now, expiring, &numbered(99, 100))).unwrap();
    pair.net.run_for(secs(1));
    assert_eq!(pair.server().received.last().map(|message| number_of(&message.bytes)), Some(99));
    assert_eq!(pair.server().server.stats().players, 1);
}

#[test]
fn w111_only_the_newest_position_waits_to_be_sent() {
    let mut pair = ChannelPair::connect(1, link(), &table(1_000));
    pair.net.with(pair.client, |app, now| {
        for number in 0..1_000 {
            app.client.send(now, SEQUENCED, &numbered(number, 100)).unwrap();
        }
    });
    pair.net.run_for(secs(1));
    let numbers: Vec<u32> = pair.server().received.iter().map(|message| number_of(&message.bytes)).collect();
    assert_eq!(numbers, [999]);
}

#[test]
fn w111_receipts_come_from_the_application_of_the_peer() {
    let channel = |mode| Channel { receipts: true, ..Channel::new(mode, 10_000) };
    let channels = [channel(ChannelMode::ReliableOrdered), channel(ChannelMode::ReliableUnordered)];
    let mut pair = ChannelPair::connect(1, link().loss(0.05), &ChannelTable::new(channels).unwrap());
    let (client, server) = (pair.client, pair.server);
    let mut sent = Vec::new();
    for number in 0..300_u32 {
        let channel = [ORDERED, UNORDERED][number as usize % 2];
        let message = numbered(number, 4 + number as usize % 7 * 300);
        sent.push(pair.net.with(client, |app, now| app.client.send(now, channel, &message)).unwrap());
        pair.net.with(server, |app, now| app.server.send(now, app.player(), channel, &message)).unwrap();
        pair.net.run_for(ms(5));
    }
    pair.net.run_for(secs(3));
    let mut confirmed: Vec<_> = pair
        .client()
        .events
        .iter()
        .filter_map(|(_, event)| if let ClientEvent::Receipt(id) = event { Some(*id) } else { None })
        .collect();
    confirmed.sort_unstable();
    sent.sort_unstable();
    assert_eq!(confirmed, sent, "each message once");
    let is_receipt = |event: &ServerEvent| matches!(event, ServerEvent::Receipt(..));
    assert_eq!(pair.server().events.iter().filter(|(_, event)| is_receipt(event)).count(), 300);
}

#[test]
fn a_channel_carries_more_messages_than_its_sequence_has_numbers() {
    let mut pair = ChannelPair::connect(1, link(), &table(100));
    let client = pair.client;
    let mut sent = 0;
    while sent < 150_000 {
        pair.net.with(client, |app, now| {
            for channel in [ORDERED, UNORDERED] {
                for number in sent..sent + 500 {
                    app.client.send(now, channel, &numbered(number, 5)).unwrap();
                }
            }
        });
        sent += 500;
        pair.net.run_for(ms(10));
    }
    pair.net.run_for(secs(5));
    let numbers = pair.server().received.iter().filter(|message| message.channel == ORDERED);
    assert!(numbers.map(|message| number_of(&message.bytes)).eq(0..sent));
    assert_eq!(pair.server().received.len(), 2 * sent as usize);
}

#[test]
fn w111_players_share_one_copy_of_a_broadcast() {
    let mut pair = ChannelPair::connect(1, link(), &table(60_000));
    let others: Vec<_> = (1..20_u8)
        .map(|number| {
            let config = ClientConfig::new("bob", "tag").channels(table(60_000));
            let app = ClientApp::new(pair.net.now(), config, number + 10);
            pair.net.add(([10, 0, 3, number], 1000), app)
        })
        .collect();
    pair.net.run_for(secs(1));
    let map: Arc<[u8]> = vec![9; 50_000].into();
    let copies = pair.net.with(pair.server, |app, now| {
        let players: Vec<_> = app.server.players().collect();
        assert_eq!(players.len(), 20);
        app.server.broadcast(now, players, ORDERED, map.clone(), |player, sent| {
            assert!(sent.is_ok(), "{player:?}: {sent:?}");
        });
        Arc::strong_count(&map)
    });
    assert_eq!(copies, 1 + 20, "the bytes are shared");
    pair.net.run_for(secs(5));
    for client in others.into_iter().chain([pair.client]) {
        let received = &pair.net.machine(client).received;
        assert!(received.len() == 1 && received[0].bytes == vec![9; 50_000]);
    }
    assert_eq!(Arc::strong_count(&map), 1, "nothing is kept when it is sent");
}

#[test]
fn w114_a_channel_of_higher_priority_overtakes_a_queue() {
    let bulk = Channel { priority: 5, ..Channel::new(ChannelMode::ReliableOrdered, 1_000_000) };
    let chat = Channel::new(ChannelMode::ReliableOrdered, 100);
    let channels = ChannelTable::new(vec![bulk, chat]).unwrap();
    let mut pair = ChannelPair::connect(1, link().bottleneck(1_000_000, 16_000), &channels);
    let client = pair.client;
    pair.net.with(client, |app, now| app.client.send(now, ORDERED, &vec![1; 900_000])).unwrap();
    pair.net.run_for(secs(1));
    let sent_at = pair.net.now();
    pair.net.with(client, |app, now| app.client.send(now, UNORDERED, b"hello")).unwrap();
    pair.net.run_for(secs(12));
    let [chat, bulk] = &pair.server().received[..] else { panic!("two messages") };
    assert_eq!((&*chat.bytes, bulk.bytes.len()), (&b"hello"[..], 900_000));
    // The queue of the path holds 128 ms.
    assert!(chat.at - sent_at < ms(300), "{:?}", chat.at - sent_at);
}

#[test]
fn w114_a_channel_keeps_to_its_rate() {
    let limited = Channel { rate: Some(20_000), ..Channel::new(ChannelMode::ReliableOrdered, 10_000) };
    let channels = ChannelTable::new(vec![limited, Channel::new(ChannelMode::ReliableOrdered, 10_000)]).unwrap();
    let mut pair = ChannelPair::connect(1, link(), &channels);
    let client = pair.client;
    pair.net.with(client, |app, now| {
        for channel in [ORDERED, UNORDERED] {
            for _ in 0..100 {
                app.client.send(now, channel, &[1; 5_000]).unwrap();
            }
        }
    });
    pair.net.run_for(secs(5));
    let bytes = |channel| {
        let received = pair.server().received.iter().filter(|message| message.channel == channel);
        received.map(|message| message.bytes.len()).sum::<usize>()
    };
    assert_eq!(bytes(UNORDERED), 500_000);
    assert!((85_000..=105_000).contains(&bytes(ORDERED)), "{}", bytes(ORDERED));
}

#[test]
fn a_full_queue_is_reported_and_then_its_room() {
    let small = Channel { queue: 10_000, ..Channel::new(ChannelMode::ReliableOrdered, 5_000) };
    let mut pair = ChannelPair::connect(1, link(), &ChannelTable::new(vec![small]).unwrap());
    let client = pair.client;
    let sent = pair.net.with(client, |app, now| [0; 3].map(|_| app.client.send(now, ORDERED, &[1; 5_000]).err()));
    assert_eq!(sent, [None, None, Some(SendError::WouldBlock)]);
    pair.net.run_for(secs(1));
    assert_eq!(pair.client().events.last().map(|(_, event)| event), Some(&ClientEvent::Writable));
    pair.net.with(client, |app, now| app.client.send(now, ORDERED, &[1; 5_000])).unwrap();
    let sent = pair.net.with(client, |app, now| app.client.send(now, ORDERED, &[1; 5_001]));
    assert_eq!(sent, Err(SendError::TooLarge { limit: 5_000, length: 5_001 }));
}

#[test]
fn what_was_sent_before_a_close_arrives() {
    for is_client in [true, false] {
        let mut pair = ChannelPair::connect(1, link(), &table(60_000));
        if is_client {
            pair.net.with(pair.client, |app, now| {
                app.client.send(now, ORDERED, &vec![3; 60_000]).unwrap();
                app.client.close(now);
                assert_eq!(app.client.send(now, ORDERED, b"x"), Err(SendError::Closed));
            });
        } else {
            pair.net.with(pair.server, |app, now| {
                let player = app.player();
                app.server.send(now, player, ORDERED, &vec![3; 60_000]).unwrap();
                app.server.disconnect(now, player, "the round is over");
            });
        }
        pair.net.run_for(secs(5));
        let received = if is_client { &pair.server().received } else { &pair.client().received };
        assert!(received.len() == 1 && received[0].bytes.len() == 60_000);
        let last = pair.client().events.last().map(|(_, event)| event.clone());
        let reason = DisconnectReason::ClosedByPeer("the round is over".into());
        let reason = if is_client { DisconnectReason::Closed } else { reason };
        assert_eq!(last, Some(ClientEvent::Disconnected(reason)));
        assert!(matches!(pair.server().events.last(), Some((_, ServerEvent::Disconnected(..)))));
        assert_eq!(pair.server().server.stats().players, 0);
    }
}

#[test]
fn a_client_that_reconnects_agrees_on_the_table_again() {
    let channels = table(1_000);
    let server = rallypoint_session_proto::EndpointConfig::for_game("tag").channels(channels.clone());
    let mut config = ClientConfig::new("alice", "tag").channels(channels);
    config.reconnect = true;
    let mut pair = ChannelPair::start(1, link(), server, config);
    pair.wait_for_player();
    let (client, server) = (pair.client, pair.server);
    pair.net.with(client, |app, now| app.client.send(now, ORDERED, b"before")).unwrap();
    pair.net.run_for(ms(500));
    pair.net.partition(client, server, true);
    pair.net.run_for(secs(15));
    pair.net.partition(client, server, false);
    pair.net.run_for(secs(20));
    assert!(pair.client().client.is_connected());
    pair.net.with(client, |app, now| app.client.send(now, ORDERED, b"after")).unwrap();
    pair.net.with(server, |app, now| app.server.send(now, app.player(), EXPIRING, b"hi")).unwrap();
    pair.net.run_for(secs(1));
    let received: Vec<&[u8]> = pair.server().received.iter().map(|message| &message.bytes[..]).collect();
    assert_eq!(received, [&b"before"[..], b"after"]);
    assert_eq!(pair.client().received.last().map(|message| &message.bytes[..]), Some(&b"hi"[..]));
    let is_connected = |event: &ClientEvent| *event == ClientEvent::Connected;
    assert_eq!(pair.client().events.iter().filter(|(_, event)| is_connected(event)).count(), 2);
}
