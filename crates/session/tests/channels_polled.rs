//! Channels in game loops: messages of each mode, long ones, receipts, broadcast, login decisions, tokens, mismatched peers.

use crate::common;

use common::{all_encryptions, client_event, client_options, key, server_event, server_options, until};
use rallypoint_session::{
    Channel, ChannelFault, ChannelIndex, ChannelMode, ChannelTable, ClientEvent, ClientOptions, ConnectError,
    Connection, DisconnectReason, Encryption, LoginError, PlayerId, PolledClient, PolledServer, SendError, ServerEvent,
    ServerOptions, SessionConfigError, SetupError, TokenError, TokenIssuer,
};
use std::time::{SystemTime, UNIX_EPOCH};

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
    server: PolledServer,
    client: PolledClient,
}

fn with_channels() -> (ServerOptions, ClientOptions) {
    (server_options().channels(table()), client_options(Encryption::Encrypted).channels(table()))
}

impl Pair {
    fn new(server: ServerOptions, client: ClientOptions) -> Self {
        let server = PolledServer::bind(server).unwrap();
        let client = PolledClient::connect(server.local_addrs()[0], client).unwrap();
        Self { server, client }
    }

    fn connected(encryption: Encryption) -> (Self, PlayerId) {
        let (server, client) = with_channels();
        let mut pair = Self::new(server, client.encryption(encryption));
        let ServerEvent::Connected(new) = pair.server_event() else { panic!() };
        assert_eq!((&*new.username, &*new.game), ("alice", "test"));
        assert_eq!(pair.client_event(), ClientEvent::Connected);
        (pair, new.player)
    }

    fn server_event(&mut self) -> ServerEvent<'static> {
        let mut event = None;
        until("the server has an event", || {
            self.client.poll();
            self.server.poll();
            event = self.server.next_event().map(server_event);
            event.is_some()
        });
        event.unwrap()
    }

    fn client_event(&mut self) -> ClientEvent<'static> {
        let mut event = None;
        until("the client has an event", || {
            self.server.poll();
            self.client.poll();
            event = self.client.next_event().map(client_event);
            event.is_some()
        });
        event.unwrap()
    }
}

#[test]
fn messages_of_every_channel_arrive_plain_and_encrypted() {
    for encryption in all_encryptions() {
        let (mut pair, player) = Pair::connected(encryption);
        for channel in [CHAT, POSITIONS, ALERTS] {
            pair.client.send(channel, b"to the server").unwrap();
            pair.client.flush();
            assert_eq!(pair.server_event(), ServerEvent::Message { player, channel, bytes: b"to the server" });
        }
        let map: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
        pair.server.send(player, MAP, &map).unwrap();
        until("the map has arrived", || {
            pair.server.poll();
            pair.client.poll();
            let event = pair.client.next_event();
            event == Some(ClientEvent::Message { channel: MAP, bytes: &map })
        });
        assert!(pair.server.stats(player).is_some() && pair.client.stats().is_some());
    }
}

#[test]
fn receipts_name_the_message_that_the_application_has_read() {
    let (mut pair, player) = Pair::connected(Encryption::Encrypted);
    let sent = pair.client.send(CHAT, b"hello").unwrap();
    assert_eq!(pair.server_event(), ServerEvent::Message { player, channel: CHAT, bytes: b"hello" });
    assert_eq!(pair.client_event(), ClientEvent::Receipt(sent));
    let sent = pair.server.send(player, CHAT, b"hello").unwrap();
    assert_eq!(pair.client_event(), ClientEvent::Message { channel: CHAT, bytes: b"hello" });
    assert_eq!(pair.server_event(), ServerEvent::Receipt(player, sent));
    let mut sent = Vec::new();
    pair.server.broadcast_with([player], CHAT, &b"all"[..], |player, result| sent.push((player, result.unwrap())));
    assert_eq!(pair.client_event(), ClientEvent::Message { channel: CHAT, bytes: b"all" });
    assert_eq!(pair.server_event(), ServerEvent::Receipt(player, sent[0].1));
    assert_eq!((sent.len(), sent[0].0), (1, player));
}

#[test]
fn a_broadcast_reaches_all_players_and_reports_those_it_does_not() {
    let (server, client) = with_channels();
    let mut server = PolledServer::bind(server).unwrap();
    let addr = server.local_addrs()[0];
    let mut clients: Vec<_> = (0..3).map(|_| PolledClient::connect(addr, client.clone()).unwrap()).collect();
    until("all are connected", || {
        server.poll();
        clients.iter_mut().for_each(PolledClient::poll);
        while server.next_event().is_some() {}
        server.players().len() == 3
    });
    let left = server.players()[0];
    server.disconnect(left, "bye");
    let mut refused = Vec::new();
    let all: Vec<_> = clients.iter().map(|_| left).take(1).chain(server.players()).collect();
    server.broadcast_with(all, CHAT, &b"hello"[..], |player, sent| {
        refused.extend(sent.err().map(|error| (player, error)));
    });
    assert_eq!(refused, [(left, SendError::Closed)]);
    let mut received = 0;
    until("the others have received it", || {
        server.poll();
        for client in &mut clients {
            client.poll();
            while let Some(event) = client.next_event() {
                received += usize::from(event == ClientEvent::Message { channel: CHAT, bytes: b"hello" });
            }
        }
        received == 2
    });
}

#[test]
fn the_application_accepts_and_refuses_players_with_a_reason() {
    let (server, client) = with_channels();
    let server = server.decides_logins();
    let mut pair = Pair::new(server.clone(), client.clone());
    let ServerEvent::LoginRequest(request) = pair.server_event() else { panic!() };
    assert!(pair.server.players().is_empty());
    assert!(pair.server.accept_login(request.new.player));
    assert_eq!(pair.client_event(), ClientEvent::Connected);

    let mut pair = Pair::new(server, client);
    let ServerEvent::LoginRequest(request) = pair.server_event() else { panic!() };
    pair.server.disconnect(request.new.player, "members only");
    assert_eq!(pair.client_event(), ClientEvent::LoginFailed(LoginError::Refused("members only".into())));
}

#[test]
fn w113_tokens_are_verified_with_the_time_of_day() {
    let issuer = TokenIssuer::from_seed([7; 32]).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let server = || server_options().channels(table()).tokens(issuer.public());
    let client = |expires| {
        let token = issuer.issue(&key().public(), "alice", expires, b"17").unwrap();
        client_options(Encryption::Encrypted).channels(table()).token(token)
    };
    let pinned = key().public();
    let mut pair = Pair::new(server(), client(now + 3_600).pinned(pinned));
    assert_eq!(pair.client_event(), ClientEvent::Connected);
    let mut pair = Pair::new(server(), client(now - 1).pinned(pinned));
    let ClientEvent::LoginFailed(LoginError::Refused(reason)) = pair.client_event() else { panic!() };
    assert_eq!(reason, TokenError::Expired.to_string());
    // A token is never sent to a server that may be an impostor.
    let error = PolledClient::connect(pair.server.local_addrs()[0], client(now + 3_600)).unwrap_err();
    let expected = SessionConfigError::Token(TokenError::NotPinned);
    assert!(matches!(error, ConnectError::Setup(SetupError::Config(config)) if config == expected));
}

#[test]
fn w110_a_peer_with_another_table_or_without_channels_is_refused_with_a_reason() {
    let other = ChannelTable::new([Channel::new(ChannelMode::ReliableOrdered, 1_000)]).unwrap();
    let mut pair = Pair::new(server_options().channels(table()), client_options(Encryption::Encrypted).channels(other));
    let ClientEvent::LoginFailed(LoginError::Refused(reason)) = pair.client_event() else { panic!() };
    assert_eq!(reason, ChannelFault::Table(0).to_string());

    // A client without channels, and a server without them.
    let mut server = PolledServer::bind(server_options().channels(table())).unwrap();
    let mut client = PolledClient::connect(server.local_addrs()[0], client_options(Encryption::Encrypted)).unwrap();
    let mut event = None;
    until("the login is refused", || {
        server.poll();
        client.poll();
        event = client.next_event().map(client_event);
        event.is_some()
    });
    let refused = |reason: &str| Some(ClientEvent::LoginFailed(LoginError::Refused(reason.into())));
    assert_eq!(event, refused("this server requires channels"));

    let mut server = PolledServer::bind(server_options()).unwrap();
    let options = client_options(Encryption::Encrypted).channels(table());
    let mut client = PolledClient::connect(server.local_addrs()[0], options).unwrap();
    let mut event = None;
    until("the login is refused", || {
        server.poll();
        client.poll();
        event = client.next_event().map(client_event);
        event.is_some()
    });
    assert_eq!(event, refused("this server has no channels"));
}

#[test]
fn tokens_and_decisions_about_logins_need_channels() {
    let error = PolledServer::bind(server_options().stream(1_000).decides_logins()).unwrap_err();
    assert!(
        matches!(error, SetupError::Config(SessionConfigError::NeedsChannels { setting: "decides_logins" })),
        "{error}"
    );
    let issuer = TokenIssuer::from_seed([7; 32]).unwrap();
    let error = PolledServer::bind(server_options().tokens(issuer.public())).unwrap_err();
    assert!(matches!(error, SetupError::Config(SessionConfigError::NeedsChannels { setting: "tokens" })), "{error}");
    let token = issuer.issue(&key().public(), "alice", 1, b"").unwrap();
    let options = client_options(Encryption::Pinned(key().public())).token(token);
    let error = PolledClient::connect("127.0.0.1:9", options).unwrap_err();
    assert!(error.to_string().contains("token needs channels"), "{error}");
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
        let event = loop {
            match pair.server_event() {
                ServerEvent::Closing(_) => {}
                event => break event,
            }
        };
        assert_eq!(event, ServerEvent::Message { player, channel: CHAT, bytes: &[number; 900] });
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
    let (Pair { mut server, mut client }, player) = Pair::connected(Encryption::Encrypted);
    server.send(player, MAP, &[7; 300_000]).unwrap();
    let player = std::thread::spawn(move || {
        let mut received = 0;
        loop {
            client.poll();
            match client.next_event() {
                Some(ClientEvent::Message { bytes, .. }) => received += bytes.len(),
                Some(ClientEvent::Disconnected(reason)) => return (received, reason),
                _ => client.wait(std::time::Duration::from_secs(1)),
            }
        }
    });
    server.shutdown("good night");
    assert_eq!(player.join().unwrap(), (300_000, DisconnectReason::ClosedByPeer("good night".into())));
}
