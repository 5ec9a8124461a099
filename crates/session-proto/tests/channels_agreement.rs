//! Both sides agree on the table of channels before the first message, or the session ends with a reason (W110).

use crate::common;

use common::{
    channels::{self, ChannelPair, EXPIRING, ORDERED, SEQUENCED, UNORDERED, table},
    *,
};
use rallypoint_machine::Machine;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{
    Channel, ChannelFault, ChannelMode, ChannelTable, ChannelTableError, Client, ClientConfig, ClientEvent,
    DisconnectReason, Encryption, EndpointConfig, LoginError, ONLY_CHANNEL, ServerEvent,
};

fn link() -> Link {
    Link::default().delay(ms(20))
}

#[test]
fn w110_a_session_with_channels_carries_messages_of_every_mode_and_size() {
    let mut pair = ChannelPair::connect(1, link(), &table(20_000));
    let (client, server) = (pair.client, pair.server);
    for channel in [ORDERED, UNORDERED, SEQUENCED, EXPIRING] {
        for length in [0, 1, 461, 462, 480, 481, 20_000] {
            pair.net.with(client, |app, now| app.client.send(now, channel, &vec![7; length])).unwrap();
            pair.net.with(server, |app, now| app.server.send(now, app.player(), channel, &vec![7; length])).unwrap();
            pair.net.run_for(secs(1));
            for received in [&pair.server().received, &pair.client().received] {
                let last = received.last().expect("a message");
                assert_eq!((last.channel, &last.bytes), (channel, &vec![7; length]), "{channel:?}, {length} bytes");
            }
        }
    }
    let player = pair.server().player();
    let connected = |event: &ServerEvent| match event {
        ServerEvent::Connected(new) => (new.player, &*new.username, &*new.game) == (player, "alice", "tag"),
        _ => false,
    };
    assert!(pair.server().events.iter().any(|(_, event)| connected(event)));
}

#[test]
fn w110_a_client_with_another_table_learns_which_channel_differs() {
    let ours = ChannelTable::new(vec![Channel::new(ChannelMode::ReliableOrdered, 100); 3]).unwrap();
    let mut other = vec![Channel::new(ChannelMode::ReliableOrdered, 100); 3];
    other[1].max_to_server = 101;
    let receipts = Channel { receipts: true, ..Channel::new(ChannelMode::ReliableOrdered, 100) };
    let sequenced = Channel::new(ChannelMode::Sequenced, 100);
    let first = Channel::new(ChannelMode::ReliableOrdered, 100);
    for (channels, different) in [
        (other, 1),
        (vec![first; 2], 2),
        (vec![first; 4], 3),
        (vec![first, first, receipts], 2),
        (vec![sequenced, first, first], 0),
    ] {
        let theirs = ChannelTable::new(channels).unwrap();
        let server = EndpointConfig::for_game("tag").channels(ours.clone());
        let client = ClientConfig::new("alice", "tag").channels(theirs);
        let mut pair = ChannelPair::start(2, link(), server, client);
        pair.net.run_for(secs(5));
        let text = ChannelFault::Table(different).to_string();
        assert_eq!(text, format!("the tables of channels differ at channel {different}"));
        let [(_, ClientEvent::LoginFailed(LoginError::Refused(reason)))] = &pair.client().events[..] else {
            panic!("{:?}", pair.client().events);
        };
        assert_eq!(*reason, text);
        assert_eq!(pair.server().events, [], "the application never learns of the player");
        assert_eq!(pair.server().server.stats().players, 0);
    }
}

#[test]
fn w110_priorities_rates_and_ages_are_the_senders_own() {
    let ours = table(100);
    let mut channels: Vec<Channel> = ours.iter().map(|(_, channel)| *channel).collect();
    for channel in &mut channels {
        *channel = Channel { priority: 9, rate: Some(5_000), max_age: secs(1), queue: 5_000, ..*channel };
    }
    let server = EndpointConfig::for_game("tag").channels(ours);
    let client = ClientConfig::new("alice", "tag").channels(ChannelTable::new(channels).unwrap());
    let mut pair = ChannelPair::start(3, link(), server, client);
    pair.wait_for_player();
}

#[test]
fn w110_a_plain_client_and_a_server_with_channels_refuse_each_other() {
    let server = EndpointConfig::for_game("tag").channels(table(100));
    let client = ClientConfig::new("alice", "tag").channels(table(100));
    let mut pair = ChannelPair::start(4, link(), server, client.clone());
    let mut plain = Client::new(pair.net.now(), SERVER.into(), ClientConfig::new("bob", "tag"), [3; 32]).unwrap();
    let node = pair.net.add(([10, 0, 1, 2], 1000), {
        while plain.poll_event().is_some() {}
        plain
    });
    pair.net.run_for(secs(6));
    let refused = |reason: &str| [ClientEvent::LoginFailed(LoginError::Refused(reason.into()))];
    let events: Vec<_> = pair.net.take_events(node).into_iter().map(|(_, event)| event).collect();
    assert_eq!(events, refused("this server requires channels"));

    let mut plain = Pair::start(5, link(), server_config(), client_config(Encryption::Plain));
    let app = channels::ClientApp::new(plain.net.now(), client, 7);
    let node = plain.net.add(([10, 0, 1, 3], 1000), app);
    plain.net.run_for(secs(6));
    let events: Vec<_> = plain.net.machine(node).events.iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(events, refused("this server has no channels"));
}

#[test]
fn w110_a_peer_without_a_hello_is_disconnected() {
    // A client that names the game of a server with channels and sends something else.
    let server = EndpointConfig::for_game("tag").channels(table(100));
    let mut pair = ChannelPair::start(6, link(), server, ClientConfig::new("alice", "tag").channels(table(100)));
    let node = pair.net.add(([10, 0, 1, 2], 1000), {
        let now = pair.net.now();
        ClientApp::new(now, SERVER.into(), ClientConfig::new("bob", "tag+m1"), 3)
    });
    pair.net.run_for(secs(1));
    pair.net.with(node, |app, now| app.client.send(now, ONLY_CHANNEL, b"\x00\x00\x00hello")).unwrap();
    pair.net.run_for(secs(5));
    let reason = DisconnectReason::ClosedByPeer("the first message is not a hello".into());
    assert!(pair.net.machine(node).has(&ClientEvent::Disconnected(reason)));
    assert_eq!(pair.server().server.players().count(), 1);

    // One that sends nothing at all keeps its slot for 10 s.
    let node = pair.net.add(([10, 0, 1, 3], 1000), {
        let now = pair.net.now();
        ClientApp::new(now, SERVER.into(), ClientConfig::new("carol", "tag+m1"), 4)
    });
    pair.net.run_for(secs(9));
    assert_eq!(pair.server().server.stats().players, 2);
    pair.net.run_for(secs(3));
    assert_eq!(pair.server().server.stats().players, 1);
    let reason = DisconnectReason::ClosedByPeer("the first message is not a hello".into());
    assert!(pair.net.machine(node).has(&ClientEvent::Disconnected(reason)));
}

#[test]
fn w112_the_application_decides_who_may_join() {
    let server = EndpointConfig { decides_logins: true, ..EndpointConfig::for_game("tag").channels(table(100)) };
    let client = ClientConfig::new("alice", "tag").channels(table(100));
    for is_accepted in [true, false] {
        let mut pair = ChannelPair::start(7, link(), server.clone(), client.clone());
        pair.net.run_for(secs(1));
        assert!(pair.client().events.is_empty() && !pair.client().client.is_connected());
        let [(_, ServerEvent::LoginRequest(request))] = &pair.server().events[..] else {
            panic!("{:?}", pair.server().events);
        };
        assert_eq!((&*request.new.username, &request.token), ("alice", &None));
        let player = request.new.player;
        pair.net.with(pair.server, |app, now| {
            if is_accepted {
                assert!(app.server.accept_login(now, player) && !app.server.accept_login(now, player));
            } else {
                assert!(app.server.disconnect(now, player, "you are banned until Friday"));
            }
        });
        pair.net.run_for(secs(5));
        let events: Vec<&ClientEvent> = pair.client().events.iter().map(|(_, event)| event).collect();
        if is_accepted {
            assert_eq!(events, [&ClientEvent::Connected]);
            assert!(matches!(pair.server().events[1].1, ServerEvent::Connected(_)));
        } else {
            let refused = LoginError::Refused("you are banned until Friday".into());
            assert_eq!(events, [&ClientEvent::LoginFailed(refused)]);
            let end = ServerEvent::Disconnected(player, DisconnectReason::Closed);
            assert_eq!(pair.server().events[1].1, end);
        }
    }
}

#[test]
fn w112_a_client_that_is_closed_before_it_is_accepted_reports_the_end_of_its_session() {
    let server = EndpointConfig { decides_logins: true, ..EndpointConfig::for_game("tag").channels(table(100)) };
    let client = ClientConfig::new("alice", "tag").channels(table(100));
    let mut pair = ChannelPair::start(8, link(), server, client);
    pair.net.run_for(secs(1));
    pair.net.with(pair.client, |app, now| app.client.close(now));
    pair.net.run_for(secs(5));
    assert!(pair.client().client.is_closed());
    let events: Vec<&ClientEvent> = pair.client().events.iter().map(|(_, event)| event).collect();
    assert_eq!(events, [&ClientEvent::Disconnected(DisconnectReason::Closed)]);
    let [(_, ServerEvent::LoginRequest(_)), (_, ServerEvent::Disconnected(_, reason))] = &pair.server().events[..]
    else {
        panic!("{:?}", pair.server().events);
    };
    assert_eq!(*reason, DisconnectReason::ClosedByPeer(String::new()));
}

#[test]
fn a_table_that_makes_no_sense_is_an_error() {
    let channel = Channel::new(ChannelMode::Sequenced, 100);
    let error = |channel| ChannelTable::new(vec![channel]).unwrap_err();
    assert_eq!(ChannelTable::new(vec![]), Err(ChannelTableError::Count(0)));
    assert_eq!(ChannelTable::new(vec![channel; 33]), Err(ChannelTableError::Count(33)));
    assert!(ChannelTable::new(vec![channel; 32]).is_ok());
    let too_large = ChannelTableError::Size { channel: 0, size: 65_537, limit: 65_536 };
    assert_eq!(error(Channel { max_to_server: 65_537, ..channel }), too_large);
    assert_eq!(error(Channel { max_to_server: 0, max_to_client: 0, ..channel }), ChannelTableError::NoDirection(0));
    assert_eq!(error(Channel { receipts: true, ..channel }), ChannelTableError::Receipts(0));
    assert_eq!(error(Channel { rate: Some(999), ..channel }), ChannelTableError::Range(0));
    assert_eq!(error(Channel { max_age: secs(61), ..channel }), ChannelTableError::Range(0));
}
