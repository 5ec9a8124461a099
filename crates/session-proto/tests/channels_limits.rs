//! Limits that a server or a client sets on its own sending: the memory of queues (W124), and the rate of a session.

use crate::common;

use common::{
    SERVER,
    channels::{ChannelPair, ClientApp, EXPIRING, ORDERED, SEQUENCED, ServerApp, UNORDERED, table},
    ms, number_of, numbered, secs,
};
use rallypoint_netsim::{Link, Network, Node, NodeId};
use rallypoint_session_proto::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, ClientConfig, Encryption, EndpointConfig, PlayerId, SendError,
    ServerEvent,
};
use std::time::Duration;

const MEMORY: usize = 16 << 20;

fn client(net: &mut Network, number: u8) -> Node<ClientApp> {
    let mut config = ClientConfig::new(&number.to_string(), "tag").channels(table(60_000));
    config.encryption = Encryption::Plain;
    let app = ClientApp::new(net.now(), config, number);
    net.add(([10, 0, 1, number], 1_000), app)
}

/// Sends to a player on all channels until each is full. Returns the number of bytes.
fn fill(app: &mut ServerApp, now: std::time::Instant, player: PlayerId) -> usize {
    let mut sent = 0;
    for channel in [ORDERED, UNORDERED, EXPIRING, SEQUENCED] {
        // A sequenced channel has one message, and the others are full at some point.
        for _ in 0..if channel == SEQUENCED { 1 } else { usize::MAX } {
            match app.server.send(now, player, channel, &[7; 4_000]) {
                Ok(_) => sent += 4_000,
                Err(error) => {
                    assert_eq!(error, SendError::WouldBlock);
                    break;
                }
            }
        }
    }
    sent
}

#[test]
fn w124_the_queues_of_silent_players_take_bounded_memory_and_leave_room_for_others() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(5)));
    let mut config = EndpointConfig::for_game("tag").channels(table(60_000));
    config.memory = MEMORY;
    config.max_players = 255;
    let server = net.add(SERVER, ServerApp::new(config));
    let live = client(&mut net, 255);
    let silent: Vec<Node<ClientApp>> = (1..255).map(|number| client(&mut net, number)).collect();
    net.run_for(secs(2));
    assert_eq!(net.machine(server).server.players().count(), 255);
    silent.iter().for_each(|client| net.isolate(*client, true));
    let is_live = |app: &ServerApp, player: PlayerId| {
        app.server.connection(player).unwrap().peer().ip().to_string() == "10.0.1.255"
    };
    let queued: usize = net.with(server, |app, now| {
        let players: Vec<PlayerId> = app.server.players().filter(|player| !is_live(app, *player)).collect();
        players.into_iter().map(|player| fill(app, now, player)).sum()
    });
    net.run_for(ms(200));
    let memory = net.machine(server).server.stats().memory;
    assert!((MEMORY / 16..MEMORY / 2).contains(&queued), "{queued} bytes");
    assert!(memory <= MEMORY, "{memory} bytes");
    // The one who reads has a part of its own, and the rest when the others have left.
    let live_id = net.machine(server).server.players().find(|player| is_live(net.machine(server), *player)).unwrap();
    let sent = net.with(server, |app, now| {
        [4_000, 60_000].map(|length| app.server.send(now, live_id, ORDERED, &vec![5; length]).err())
    });
    assert_eq!(sent, [None, Some(SendError::WouldBlock)]);
    assert!(!net.machine(server).server.has_room(live_id, ORDERED, 60_000));
    net.run_for(ms(500));
    assert_eq!(net.machine(live).received.iter().map(|message| message.bytes.len()).collect::<Vec<_>>(), [4_000]);
    net.run_for(secs(30));
    assert_eq!(net.machine(server).server.players().count(), 1);
    let is_writable = |(_, event): &(_, ServerEvent)| *event == ServerEvent::Writable(live_id);
    assert!(net.machine(server).events.iter().any(is_writable));
    assert!(net.machine(server).server.has_room(live_id, ORDERED, 60_000));
    net.with(server, |app, now| app.server.send(now, live_id, ORDERED, &vec![5; 60_000])).unwrap();
    net.run_for(secs(5));
    assert_eq!(net.machine(live).received.len(), 2);
    assert!(net.machine(server).server.stats().memory < 100_000);
}

#[test]
fn w124_messages_without_bytes_fill_a_queue() {
    let channels = [ChannelMode::ReliableOrdered, ChannelMode::Expiring]
        .map(|mode| Channel { queue: 64_000, ..Channel::new(mode, 100) });
    let mut pair = ChannelPair::connect(1, Link::default().delay(ms(5)), &ChannelTable::new(channels).unwrap());
    pair.net.isolate(pair.client, true);
    for channel in [ORDERED, UNORDERED] {
        let sent = pair.net.with(pair.server, |app, now| {
            let player = app.player();
            (0..100_000).take_while(|_| app.server.send(now, player, channel, &[]).is_ok()).count()
        });
        assert_eq!(sent, 1_000, "each counts as 64 bytes");
    }
}

#[test]
fn w124_a_broadcast_is_not_counted_for_each_player() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(ms(5)));
    let mut config = EndpointConfig::for_game("tag").channels(table(60_000));
    config.memory = 4 << 20;
    let server = net.add(SERVER, ServerApp::new(config));
    let clients: Vec<Node<ClientApp>> = (1..=60).map(|number| client(&mut net, number)).collect();
    net.run_for(secs(2));
    // Counted for each player, this would be more than seven times the share of the queues.
    let refused = net.with(server, |app, now| {
        let players: Vec<PlayerId> = app.server.players().collect();
        let mut refused = 0;
        app.server.broadcast(now, players, ORDERED, vec![9; 60_000], |_, sent| {
            refused += usize::from(sent.is_err());
        });
        refused
    });
    assert_eq!(refused, 0);
    net.run_for(secs(10));
    assert!(clients.iter().all(|client| net.machine(*client).received.len() == 1));
}

/// Bytes per second of the datagrams of one side, whose application sends more than `send_rate` on a channel.
fn wire_rate(channel: ChannelIndex, is_upload: bool, loss: f64, send_rate: Option<u32>) -> f64 {
    let mut server = EndpointConfig::for_game("tag").channels(table(5_000));
    let mut client = ClientConfig::new("alice", "tag").channels(table(5_000));
    if is_upload {
        client.connection.send_rate = send_rate;
    } else {
        server.connection.send_rate = send_rate;
    }
    let mut pair = ChannelPair::start(1, Link::default().delay(ms(25)).loss(loss), server, client);
    pair.wait_for_player();
    let nodes: [NodeId; 2] = [pair.client.into(), pair.server.into()];
    let [from, to] = if is_upload { nodes } else { [nodes[1], nodes[0]] };
    let mut before = 0;
    for frame in 0..1_200 {
        if frame == 200 {
            before = pair.net.counters(from, to).sent.bytes;
        }
        for size in [100, 100, 1_200] {
            // A full queue refuses them.
            let _ = if is_upload {
                pair.net.with(pair.client, |app, now| app.client.send(now, channel, &numbered(frame, size)))
            } else {
                pair.net
                    .with(pair.server, |app, now| app.server.send(now, app.player(), channel, &numbered(frame, size)))
            };
        }
        pair.net.run_for(ms(10));
    }
    (pair.net.counters(from, to).sent.bytes - before) as f64 / 10.0
}

#[test]
fn a_session_keeps_to_its_rate_in_every_mode_and_with_loss() {
    for channel in [ORDERED, UNORDERED, SEQUENCED, EXPIRING] {
        for (is_upload, loss) in [(true, 0.0), (false, 0.0), (true, 0.05), (false, 0.1)] {
            let rate = wire_rate(channel, is_upload, loss, Some(40_000));
            println!("{channel:?}, {is_upload}, {loss}: {rate}");
            // Acks and credits are not limited, and are few here.
            assert!((34_000.0..41_000.0).contains(&rate), "{channel:?}, upload {is_upload}, {loss}: {rate}");
        }
    }
    assert!(wire_rate(UNORDERED, true, 0.0, None) > 100_000.0);
}

#[test]
fn positions_are_early_in_a_session_with_a_rate() {
    let mut server = EndpointConfig::for_game("tag").channels(table(60_000));
    server.connection.send_rate = Some(50_000);
    let client = ClientConfig::new("alice", "tag").channels(table(60_000));
    let mut pair = ChannelPair::start(1, Link::default().delay(ms(25)), server, client);
    pair.wait_for_player();
    let mut sent_at = Vec::new();
    for number in 0..600 {
        sent_at.push(pair.net.now());
        pair.net.with(pair.server, |app, now| {
            let player = app.player();
            app.server.send(now, player, SEQUENCED, &numbered(number, 40)).unwrap();
            while app.server.send(now, player, ORDERED, &[7; 10_000]).is_ok() {}
        });
        pair.net.run_for(Duration::from_micros(16_667));
    }
    let positions = pair.client().received.iter().filter(|message| message.channel == SEQUENCED);
    let mut delays: Vec<Duration> =
        positions.map(|message| message.at - sent_at[number_of(&message.bytes) as usize]).collect();
    delays.sort_unstable();
    assert!(delays.len() > 580, "{}", delays.len());
    // A datagram of the download takes 10 ms at this rate.
    assert!(delays[delays.len() * 99 / 100] < ms(50), "{:?}", delays[delays.len() * 99 / 100]);
}
