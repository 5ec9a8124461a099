//! A server with channels can serve players without them: one channel, as a stream (W115).

use crate::common;

use common::{
    channels::{ChannelPair, ORDERED, SEQUENCED, table},
    *,
};
use rallypoint_netsim::{Link, Node};
use rallypoint_session_proto::{
    ClientConfig, ClientEvent, DisconnectReason, EndpointConfig, LoginError, ONLY_CHANNEL, PlayerId, SendError,
    ServerEvent, SessionConfigError, StaticKey, StreamReader, StreamWriter, TokenError, TokenIssuer, TokenVerifier,
    WallClock,
};

fn server() -> EndpointConfig {
    EndpointConfig { plain_channel: Some(ORDERED), ..EndpointConfig::for_game("tag").channels(table(5_000)) }
}

struct Mixed {
    pair: ChannelPair,
    plain: Node<ClientApp>,
}

impl Mixed {
    fn start(server: EndpointConfig) -> Self {
        let client = ClientConfig::new("alice", "tag").channels(table(5_000));
        let mut pair = ChannelPair::start(1, Link::default().delay(ms(5)), server, client);
        let app = ClientApp::new(pair.net.now(), SERVER.into(), ClientConfig::new("bob", "tag"), 9);
        let plain = pair.net.add(([10, 0, 9, 9], 999), app);
        pair.net.run_for(secs(1));
        Self { pair, plain }
    }

    fn plain_player(&mut self) -> PlayerId {
        let server = &self.pair.server().server;
        server.players().find(|player| !server.has_channels(*player)).expect("a player without channels")
    }
}

#[test]
fn w115_a_player_without_channels_has_one_as_a_stream() {
    let mut mixed = Mixed::start(server());
    let player = mixed.plain_player();
    assert_eq!(mixed.pair.server().server.players().count(), 2);
    // To the server: a long message and a short one.
    let mut writer = StreamWriter::new(5_000);
    writer.write(&[3; 4_000]).unwrap();
    writer.write(b"hello").unwrap();
    mixed
        .pair
        .net
        .with(mixed.plain, |app, now| writer.flush(464, |part| app.client.send(now, ONLY_CHANNEL, part).map(drop)))
        .unwrap();
    mixed.pair.net.run_for(secs(1));
    let received: Vec<_> = mixed.pair.server().received.iter().map(|received| &received.bytes[..]).collect();
    assert_eq!(received, [&[3; 4_000][..], b"hello"]);
    // To the player, alone and with all others.
    let (one, all) = mixed.pair.net.with(mixed.pair.server, |app, now| {
        let one = app.server.send(now, player, ORDERED, &[4; 3_000]);
        let players: Vec<_> = app.server.players().collect();
        let mut refused = Vec::new();
        app.server.broadcast(now, players, ORDERED, &b"everyone"[..], |_, sent| refused.extend(sent.err()));
        assert_eq!(app.server.send(now, player, SEQUENCED, b"position"), Err(SendError::NoChannel));
        (one, refused)
    });
    assert!(one.is_ok() && all.is_empty());
    mixed.pair.net.run_for(secs(1));
    let mut reader = StreamReader::new(5_000);
    for (_, message) in &mixed.pair.net.machine(mixed.plain).received {
        reader.push(message).unwrap();
    }
    assert_eq!(reader.next_frame().unwrap(), Some(&[4; 3_000][..]));
    assert_eq!(reader.next_frame().unwrap(), Some(&b"everyone"[..]));
    assert_eq!(mixed.pair.client().received.len(), 1);
}

#[test]
fn w115_a_full_stream_reports_when_there_is_room_and_is_sent_before_the_session_is_closed() {
    let mut config = server();
    config.connection.window = 64;
    let mut mixed = Mixed::start(config);
    let player = mixed.plain_player();
    let sent = mixed.pair.net.with(mixed.pair.server, |app, now| {
        let sent = (0..100).take_while(|_| app.server.send(now, player, ORDERED, &[4; 3_000]).is_ok()).count();
        assert_eq!(app.server.send(now, player, ORDERED, &[4; 3_000]), Err(SendError::WouldBlock));
        sent
    });
    mixed.pair.net.run_for(secs(1));
    let is_writable = |(_, event): &(_, ServerEvent)| *event == ServerEvent::Writable(player);
    assert!(mixed.pair.server().events.iter().any(is_writable));
    mixed.pair.net.with(mixed.pair.server, |app, now| {
        app.server.send(now, player, ORDERED, b"last").unwrap();
        app.server.disconnect(now, player, "bye");
    });
    mixed.pair.net.run_for(secs(3));
    let app = mixed.pair.net.machine(mixed.plain);
    let bytes: usize = app.received.iter().map(|(_, message)| message.len()).sum();
    assert_eq!(bytes, sent * 3_002 + 5);
    let end = ClientEvent::Disconnected(DisconnectReason::ClosedByPeer("bye".into()));
    assert!(app.events.iter().any(|(_, event)| *event == end));
}

#[test]
fn w115_a_message_of_a_plain_player_that_is_too_long_ends_its_session() {
    let mut mixed = Mixed::start(server());
    mixed
        .pair
        .net
        .with(mixed.plain, |app, now| app.client.send(now, ONLY_CHANNEL, &[0xff, 0xff, 0xff, 0x01, 1]))
        .unwrap();
    mixed.pair.net.run_for(secs(2));
    let app = mixed.pair.net.machine(mixed.plain);
    let reason = "a message on channel 0 that is larger than the channel allows";
    let end = ClientEvent::Disconnected(DisconnectReason::ClosedByPeer(reason.into()));
    assert!(app.events.iter().any(|(_, event)| *event == end), "{:?}", app.events);
}

#[test]
fn w115_players_without_channels_are_refused_unless_the_server_has_a_channel_for_them() {
    let mixed = Mixed::start(EndpointConfig { plain_channel: None, ..server() });
    assert_eq!(mixed.pair.server().server.players().count(), 1);
    let events = &mixed.pair.net.machine(mixed.plain).events;
    assert!(events.iter().any(|(_, event)| matches!(event, ClientEvent::LoginFailed(LoginError::Refused(_)))));
    // The channel has to be reliable and ordered.
    let config = EndpointConfig { plain_channel: Some(SEQUENCED), ..server() };
    let error = rallypoint_session_proto::Endpoint::new(config, [1; 32]).unwrap_err();
    assert!(matches!(error, SessionConfigError::Channels(_)), "{error}");
}

#[test]
fn w115_w113_a_server_that_requires_tokens_has_no_players_without_channels() {
    let issuer = TokenIssuer::from_seed([7; 32]).unwrap();
    let mut config = server();
    config.static_key = Some(StaticKey::from_bytes([9; 32]).unwrap());
    let clock = WallClock { at: std::time::Instant::now(), unix_seconds: 1_000 };
    config.tokens = Some(TokenVerifier { issuer: issuer.public(), clock });
    let mut mixed = Mixed::start(config);
    mixed.pair.net.run_for(secs(2));
    assert_eq!(mixed.pair.server().server.players().count(), 0);
    let app = mixed.pair.net.machine(mixed.plain);
    let end = ClientEvent::Disconnected(DisconnectReason::ClosedByPeer(TokenError::Missing.to_string()));
    assert!(app.events.iter().any(|(_, event)| *event == end), "{:?}", app.events);
}
