//! A server that does not follow the message layer is left by its client, which knows why (W112).

use crate::common;

use common::{
    channels::{self, table},
    *,
};
use rallypoint_netsim::{Link, Network, Node};
use rallypoint_session_proto::{
    ChannelFault, ClientConfig, ClientEvent, DisconnectReason, EndpointConfig, LoginError, ONLY_CHANNEL,
};
use rallypoint_wire::session::channels::{RecordWriter, TableEntry};

const SIZE: usize = 5_000;

/// Body of every fragment but the last of an encrypted message to the client.
const FRAGMENT: usize = 480 - 7;

/// A server that sends what the test gives it, and an honest client.
struct Attack {
    net: Network,
    server: Node<ServerApp>,
    client: Node<channels::ClientApp>,
}

impl Attack {
    fn start() -> Self {
        let mut net = Network::new(1);
        net.set_default_link(Link::default().delay(ms(5)));
        let server = net.add(SERVER, ServerApp::new(EndpointConfig::for_game("tag+m1")));
        let config = ClientConfig::new("alice", "tag").channels(table(SIZE));
        let client = net.add(CLIENT, channels::ClientApp::new(net.now(), config, 2));
        net.run_for(secs(1));
        Self { net, server, client }
    }

    fn send(&mut self, payload: &[u8]) {
        self.net.with(self.server, |app, now| {
            let player = app.endpoint.players().next().expect("a player");
            app.endpoint.send(now, player, ONLY_CHANNEL, payload).unwrap();
        });
        self.net.run_for(ms(20));
    }

    /// Sends a payload after a valid hello, and returns why the client has left.
    fn fault_of(payload: &[u8]) -> ChannelFault {
        let mut attack = Self::start();
        attack.send(&hello());
        assert!(attack.net.machine(attack.client).client.is_connected());
        attack.send(payload);
        attack.net.run_for(secs(2));
        let events = &attack.net.machine(attack.client).events;
        let [(_, ClientEvent::Connected), (_, ClientEvent::Disconnected(DisconnectReason::Channels(fault)))] =
            events[..]
        else {
            panic!("{payload:02x?}: {events:?}");
        };
        fault
    }
}

fn hello() -> Vec<u8> {
    let size = SIZE as u32;
    let entries = [0, 1, 2, 3].map(|mode| TableEntry { mode, max_to_server: size, max_to_client: size });
    let mut writer = RecordWriter::new(480);
    assert!(writer.hello(&entries, &[]));
    writer.finish().to_vec()
}

fn fragment(index: u16, count: u16, length: usize) -> Vec<u8> {
    let header = [&b"\x40\0\0"[..], &index.to_le_bytes(), &count.to_le_bytes()].concat();
    [header, vec![7; length]].concat()
}

#[test]
fn w112_a_client_leaves_a_server_that_sends_what_no_correct_server_does() {
    for (payload, fault) in [
        (b"\xc0\0\0".to_vec(), ChannelFault::Malformed("kind")),
        (b"\x20\xff\xff\0\0".to_vec(), ChannelFault::Malformed("record")),
        (hello(), ChannelFault::Malformed("second hello")),
        (b"\x1f\0\0x".to_vec(), ChannelFault::Channel(31)),
        (b"\x00\x00\x40x".to_vec(), ChannelFault::OutOfRange(0)),
        (b"\x01\xff\xffx".to_vec(), ChannelFault::OutOfRange(1)),
        (fragment(0, u16::MAX, FRAGMENT), ChannelFault::TooLarge(0)),
        (fragment(0, 3, 464 - 7), ChannelFault::OutOfRange(0)),
        // A message that the client never sent.
        (b"\x82\0\x01\0".to_vec(), ChannelFault::OutOfRange(0)),
        (b"\x81\0\0\0".to_vec(), ChannelFault::OutOfRange(0)),
    ] {
        assert_eq!(Attack::fault_of(&payload), fault, "{payload:02x?}");
    }
}

#[test]
fn w110_a_client_leaves_a_server_whose_hello_is_not_its_own() {
    let mut other_version = hello();
    other_version[1] = 2;
    let mut other_table = hello();
    other_table[10] ^= 1;
    for (payload, fault) in [
        (b"\x00\0\0x".to_vec(), ChannelFault::NoHello),
        (other_version, ChannelFault::Version(2)),
        (other_table, ChannelFault::Table(1)),
        ([b"\xa0\x1f\0", &hello()[1..], b"\0\0\0x"].concat(), ChannelFault::Malformed("hello")),
    ] {
        let mut attack = Attack::start();
        attack.send(&payload);
        attack.send(&hello());
        attack.net.run_for(secs(2));
        let events: Vec<_> = attack.net.machine(attack.client).events.iter().map(|(_, event)| event.clone()).collect();
        assert_eq!(events, [ClientEvent::LoginFailed(LoginError::Channels(fault))]);
    }
    let mut attack = Attack::start();
    attack.net.run_for(secs(12));
    let events: Vec<_> = attack.net.machine(attack.client).events.iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(events, [ClientEvent::LoginFailed(LoginError::Channels(ChannelFault::NoHello))]);
}
