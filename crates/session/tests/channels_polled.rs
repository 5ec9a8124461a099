//! Channels in game loops: messages of each mode, long ones, receipts, broadcast, login decisions, tokens, mismatched peers.

use crate::common;

use common::{all_encryptions, client_options, key, server_options, until};
use rallypoint_session::{
    Channel, ChannelFault, ChannelIndex, ChannelMessage, ChannelMode, ChannelTable, ClientChannels, ClientEvent,
    ConnectError, Connection, DisconnectReason, Encryption, LoginError, PlayerId, PolledChannelClient,
    PolledChannelServer, PolledClient, PolledServer, SendError, ServerChannels, ServerEvent, SessionConfigError,
    SetupError, TokenError, TokenIssuer,
};
use std::{
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();
const POSITIONS: ChannelIndex = ChannelIndex::new(1).unwrap();
const MAP: ChannelIndex = ChannelIndex::new(2).unwrap();
const ALERTS: ChannelIndex = ChannelIndex::new(3).unwrap();

fn table() -> ChannelTable {
    let channels = [
        Channel { receipts: true, ..Channel::new(ChannelMode::ReliableOrdered, 1_000) },
        Channel::new(ChannelMode::Sequenced, 100),
        Channel { max_to_server: 0, ..Channel::new(ChannelMode::ReliableUnordered, 1_000_000) },
        Channel::new(ChannelMode::Expiring, 1_000),
    ];
    ChannelTable::new(channels).unwrap()
}

struct Pair {
    server: PolledChannelServer,
    client: PolledChannelClient,
    message: ChannelMessage,
}

impl Pair {
    fn new(encryption: Encryption, server: ServerChannels, client: ClientChannels) -> Self {
        let server = PolledChannelServer::bind(server_options(), server).unwrap();
        let addr = addr(&server);
        let client = PolledChannelClient::connect(addr, client_options(encryption), client).unwrap();
        Self { server, client, message: ChannelMessage::default() }
    }

    fn connected(encryption: Encryption) -> (Self, PlayerId) {
        let mut pair = Self::new(encryption, table().into(), table().into());
        let ServerEvent::Connected(new) = pair.server_event() else { panic!() };
        assert_eq!((&*new.username, &*new.game), ("alice", "test"));
        assert_eq!(pair.client_event(), ClientEvent::Connected);
        (pair, new.player)
    }

    fn server_event(&mut self) -> ServerEvent {
        let mut event = None;
        until("the server has an event", || {
            self.client.poll();
            self.server.poll();
            event = self.server.next_event(&mut self.message);
            event.is_some()
        });
        event.unwrap()
    }

    fn client_event(&mut self) -> ClientEvent {
        let mut event = None;
        until("the client has an event", || {
            self.server.poll();
            self.client.poll();
            event = self.client.next_event(&mut self.message);
            event.is_some()
        });
        event.unwrap()
    }
}

fn addr(server: &PolledChannelServer) -> SocketAddr {
    server.local_addrs().next().unwrap()
}

#[test]
fn messages_of_every_channel_arrive_plain_and_encrypted() {
    for encryption in all_encryptions() {
        let (mut pair, player) = Pair::connected(encryption);
        for channel in [CHAT, POSITIONS, ALERTS] {
            pair.client.send(channel, b"to the server").unwrap();
            pair.client.flush();
            assert_eq!(pair.server_event(), ServerEvent::Message(player));
            assert_eq!((pair.message.channel, &*pair.message.bytes), (channel, &b"to the server"[..]));
        }
        let map: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
        pair.server.send(player, MAP, &map).unwrap();
        until("the map has arrived", || {
            pair.server.poll();
            pair.client.poll();
            let event = pair.client.next_event(&mut pair.message);
            event == Some(ClientEvent::Message) && pair.message.channel == MAP
        });
        assert_eq!(pair.message.bytes, map);
        assert!(pair.server.stats(player).is_some() && pair.client.stats().is_some());
    }
}

#[test]
fn receipts_name_the_message_that_the_application_has_read() {
    let (mut pair, player) = Pair::connected(Encryption::Encrypted);
    let sent = pair.client.send(CHAT, b"hello").unwrap();
    assert_eq!(pair.server_event(), ServerEvent::Message(player));
    assert_eq!(pair.client_event(), ClientEvent::Receipt(sent));
    let sent = pair.server.send(player, CHAT, b"hello").unwrap();
    assert_eq!(pair.client_event(), ClientEvent::Message);
    assert_eq!(pair.server_event(), ServerEvent::Receipt(player, sent));
    let mut sent = Vec::new();
    pair.server.broadcast_with([player], CHAT, &b"all"[..], |player, result| sent.push((player, result.unwrap())));
    assert_eq!(pair.client_event(), ClientEvent::Message);
    assert_eq!(pair.server_event(), ServerEvent::Receipt(player, sent[0].1));
    assert_eq!((sent.len(), sent[0].0), (1, player));
}

#[test]
fn a_broadcast_reaches_all_players_and_reports_those_it_does_not() {
    let mut server = PolledChannelServer::bind(server_options(), table()).unwrap();
    let addr = addr(&server);
    let mut clients: Vec<_> = (0..3)
        .map(|_| PolledChannelClient::connect(addr, client_options(Encryption::Encrypted), table()).unwrap())
        .collect();
    let mut message = ChannelMessage::default();
    until("all are connected", || {
        server.poll();
        clients.iter_mut().for_each(PolledChannelClient::poll);
        while server.next_event(&mut message).is_some() {}
        server.players().count() == 3
    });
    let left = server.players().next().unwrap();
    server.disconnect(left, "bye");
    let mut refused = Vec::new();
    let all: Vec<_> = clients.iter().map(|_| left).take(1).chain(server.players()).collect();
    server.broadcast_to(all, CHAT, &b"hello"[..], |player, error| refused.push((player, error)));
    assert_eq!(refused, [(left, SendError::Closed)]);
    let mut received = 0;
    until("the others have received it", || {
        server.poll();
        for client in &mut clients {
            client.poll();
            while let Some(event) = client.next_event(&mut message) {
                received += usize::from(event == ClientEvent::Message && message.bytes == b"hello");
            }
        }
        received == 2
    });
}

#[test]
fn the_application_accepts_and_refuses_players_with_a_reason() {
    let channels = || ServerChannels { decides_logins: true, ..table().into() };
    let mut pair = Pair::new(Encryption::Encrypted, channels(), table().into());
    let ServerEvent::LoginRequest(request) = pair.server_event() else { panic!() };
    assert!(pair.server.players().next().is_none());
    assert!(pair.server.accept_login(request.new.player));
    assert_eq!(pair.client_event(), ClientEvent::Connected);

    let mut pair = Pair::new(Encryption::Encrypted, channels(), table().into());
    let ServerEvent::LoginRequest(request) = pair.server_event() else { panic!() };
    pair.server.disconnect(request.new.player, "members only");
    assert_eq!(pair.client_event(), ClientEvent::LoginFailed(LoginError::Refused("members only".into())));
}

#[test]
fn w113_tokens_are_verified_with_the_time_of_day() {
    let issuer = TokenIssuer::from_seed([7; 32]).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let server = || ServerChannels { token_issuer: Some(issuer.public()), ..table().into() };
    let client = |expires| ClientChannels {
        token: Some(issuer.issue(&key().public(), "alice", expires, b"17").unwrap()),
        ..table().into()
    };
    let pinned = Encryption::Pinned(key().public());
    let mut pair = Pair::new(pinned.clone(), server(), client(now + 3_600));
    assert_eq!(pair.client_event(), ClientEvent::Connected);
    let mut pair = Pair::new(pinned, server(), client(now - 1));
    let ClientEvent::LoginFailed(LoginError::Refused(reason)) = pair.client_event() else { panic!() };
    assert_eq!(reason, TokenError::Expired.to_string());
    // A token is never sent to a server that may be an impostor.
    let options = client_options(Encryption::Encrypted);
    let error = PolledChannelClient::connect(addr(&pair.server), options, client(now + 3_600)).unwrap_err();
    let expected = SessionConfigError::Token(TokenError::NotPinned);
    assert!(matches!(error, ConnectError::Setup(SetupError::Config(config)) if config == expected));
}

#[test]
fn w110_a_peer_with_another_table_or_without_channels_is_refused_with_a_reason() {
    let other = ChannelTable::new([Channel::new(ChannelMode::ReliableOrdered, 1_000)]).unwrap();
    let mut pair = Pair::new(Encryption::Encrypted, table().into(), other.into());
    let ClientEvent::LoginFailed(LoginError::Refused(reason)) = pair.client_event() else { panic!() };
    assert_eq!(reason, ChannelFault::Table(0).to_string());

    // A client without channels, and a server without them.
    let mut server = PolledChannelServer::bind(server_options(), table()).unwrap();
    let mut client = PolledClient::connect(addr(&server), client_options(Encryption::Encrypted)).unwrap();
    let mut event = None;
    until("the login is refused", || {
        server.poll();
        client.poll();
        event = client.next_event(&mut Vec::new());
        event.is_some()
    });
    let refused = |reason: &str| Some(ClientEvent::LoginFailed(LoginError::Refused(reason.into())));
    assert_eq!(event, refused("this server requires channels"));

    let mut server = PolledServer::bind(server_options()).unwrap();
    let addr = server.local_addrs().next().unwrap();
    let mut client = PolledChannelClient::connect(addr, client_options(Encryption::Encrypted), table()).unwrap();
    let mut event = None;
    until("the login is refused", || {
        server.poll();
        client.poll();
        event = client.next_event(&mut ChannelMessage::default());
        event.is_some()
    });
    assert_eq!(event, refused("this server has no channels"));
}

#[test]
fn a_stream_and_channels_are_not_used_together() {
    let mut options = server_options();
    options.stream = Some(1_000);
    let error = PolledChannelServer::bind(options, table()).unwrap_err();
    assert!(matches!(error, SetupError::StreamWithChannels), "{error}");
    let mut options = client_options(Encryption::Plain);
    options.stream = Some(1_000);
    let error = PolledChannelClient::connect("127.0.0.1:9", options, table()).unwrap_err();
    assert!(error.to_string().contains("either a stream or channels"), "{error}");
}

#[test]
fn closing_sends_what_is_queued_and_reports_that_it_was_acknowledged() {
    let (mut pair, player) = Pair::connected(Encryption::Encrypted);
    for number in 0..200u8 {
        pair.client.send(CHAT, &[number; 900]).unwrap();
    }
    assert!(!pair.client.is_delivered());
    pair.client.close();
    for number in 0..200u8 {
        // That the client seems to leave is reported at once; its end, after its messages.
        while pair.server_event() == ServerEvent::Closing(player) {}
        assert_eq!(pair.message.bytes, [number; 900]);
    }
    until("the client is closed", || {
        pair.server.poll();
        pair.client.poll();
        pair.client.is_closed()
    });
    assert!(pair.client.is_delivered());
}

#[test]
fn the_state_of_connections_is_read_as_in_async_programs() {
    let (pair, player) = Pair::connected(Encryption::Encrypted);
    let Pair { server, client, .. } = &pair;
    assert!(client.is_delivered());
    assert_eq!(client.with_connection(Connection::cipher), server.with_connection(player, Connection::cipher));
    assert_eq!((client.is_encrypted(), server.is_encrypted(player)), (Some(true), Some(true)));
    assert_eq!(server.peer_addr(player).map(|addr| addr.port()), Some(client.local_addr().port()));
    assert_eq!(server.validated_addr(player), server.peer_addr(player));
}

#[test]
fn a_server_shuts_down_with_a_reason_when_its_queues_are_sent() {
    let (Pair { mut server, mut client, mut message }, player) = Pair::connected(Encryption::Encrypted);
    server.send(player, MAP, &[7; 300_000]).unwrap();
    let player = std::thread::spawn(move || {
        let mut received = 0;
        loop {
            client.poll();
            match client.next_event(&mut message) {
                Some(ClientEvent::Message) => received += message.bytes.len(),
                Some(ClientEvent::Disconnected(reason)) => return (received, reason),
                _ => client.wait(std::time::Duration::from_secs(1)),
            }
        }
    });
    server.shutdown("good night");
    assert_eq!(player.join().unwrap(), (300_000, DisconnectReason::ClosedByPeer("good night".into())));
}
