//! A session survives a NAT that sends its datagrams from two addresses in turn (W53).

mod common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, Encryption, ServerEvent};
use std::{net::SocketAddr, time::Instant};

/// Bytes of the IP and UDP headers.
const HEADERS: usize = 28;

/// A client behind a NAT that chooses one of several addresses for each datagram. The network takes 20 ms each way.
struct Alternating {
    now: Instant,
    server: ServerApp,
    client: Client,
    addrs: Vec<SocketAddr>,
    /// Number of datagrams in a row that the NAT sends from one address; 0 for a random choice.
    run: usize,
    sent: u64,
    to_server: Vec<(Instant, SocketAddr, Vec<u8>)>,
    to_client: Vec<(Instant, Vec<u8>)>,
    received: Vec<u32>,
    /// Bytes sent to the server from each address, and received at each, headers included.
    bytes: Vec<(usize, usize)>,
}

impl Alternating {
    fn connect(encryption: Encryption) -> Self {
        let now = Instant::now();
        let client = Client::new(now, SERVER.into(), client_config(encryption), [7; 32]).unwrap();
        let mut alternating = Self {
            now,
            server: ServerApp::new(server_config()),
            client,
            addrs: vec![addr(1)],
            run: 1,
            sent: 0,
            to_server: Vec::new(),
            to_client: Vec::new(),
            received: Vec::new(),
            bytes: vec![(0, 0); 8],
        };
        (0..500).for_each(|_| alternating.step());
        assert!(alternating.client.is_connected());
        alternating
    }

    /// Lets a millisecond pass.
    fn step(&mut self) {
        self.now += ms(1);
        let Self { now, .. } = *self;
        let mut datagram = Vec::new();
        self.client.handle_timeout(now);
        while self.client.poll_transmit(now, &mut datagram).is_some() {
            let turn = match self.run {
                0 => (self.sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize,
                run => self.sent as usize / run,
            };
            let from = turn % self.addrs.len();
            self.sent += 1;
            self.bytes[from].0 += datagram.len() + HEADERS;
            self.to_server.push((now + ms(20), self.addrs[from], std::mem::take(&mut datagram)));
        }
        while self.to_server.first().is_some_and(|(at, ..)| *at <= now) {
            let (_, from, bytes) = self.to_server.remove(0);
            self.server.handle_datagram(now, from, &bytes);
        }
        self.server.handle_timeout(now);
        self.server.poll(now);
        while let Some(transmit) = self.server.poll_transmit(now, &mut datagram) {
            if let Some(at) = self.addrs.iter().position(|addr| *addr == transmit.to) {
                for part in transmit.datagrams(&datagram) {
                    self.bytes[at].1 += part.len() + HEADERS;
                    self.to_client.push((now + ms(20), part.to_vec()));
                }
            }
            datagram.clear();
        }
        while self.to_client.first().is_some_and(|(at, _)| *at <= now) {
            let (_, bytes) = self.to_client.remove(0);
            self.client.handle_datagram(now, SERVER.into(), &bytes);
        }
        while self.client.poll_event().is_some() {}
        while let Some(message) = self.client.recv() {
            self.received.push(number_of(message));
        }
    }

    /// Plays for a while: 60 messages per second each way.
    fn play(&mut self, first: u32, count: u32) {
        for number in first..first + count {
            self.client.send(self.now, &numbered(number, 60)).unwrap();
            let player = self.server.player();
            self.server.endpoint.send(self.now, player, &numbered(number, 60)).unwrap();
            (0..16).for_each(|_| self.step());
        }
    }

    fn assert_alive(&mut self, count: u32) {
        (0..1_000).for_each(|_| self.step());
        assert_eq!(self.server.disconnects(), []);
        assert!(self.client.is_connected());
        let at_server = self.server.received.values().next().unwrap();
        assert!(at_server.iter().map(|(_, message)| number_of(message)).eq(0..count));
        assert!(self.received.iter().copied().eq(0..count));
    }
}

fn addr(port: u16) -> SocketAddr {
    ([10, 0, 1, 1], port).into()
}

#[test]
fn w53_a_session_behind_a_nat_that_alternates_two_addresses_lives() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        for (addrs, run) in [(2, 1), (2, 0), (2, 7), (3, 0), (4, 2)] {
            let mut session = Alternating::connect(encryption.clone());
            session.play(0, 60);
            session.addrs = (1..=addrs).map(addr).collect();
            session.run = run;
            session.play(60, 60 * 25);
            session.assert_alive(60 * 26);
            let stats = session.client.connection().unwrap().stats();
            assert!(stats.resends < 100, "{addrs} addresses, {run} in a row: {stats:?}");
            let moves =
                session.server.events.iter().filter(|(_, event)| matches!(event, ServerEvent::Moved(..))).count();
            assert!(moves < 20, "{moves} moves");
        }
    }
}

#[test]
fn w53_a_session_that_alternates_between_two_new_addresses_lives() {
    let mut session = Alternating::connect(Encryption::Plain);
    session.play(0, 60);
    session.addrs = vec![addr(2), addr(3)];
    session.play(60, 60 * 25);
    session.assert_alive(60 * 26);
}

#[test]
fn w53_a_session_that_alternated_still_follows_its_client() {
    let mut session = Alternating::connect(Encryption::Plain);
    session.addrs = vec![addr(1), addr(2)];
    session.play(0, 60 * 5);
    session.addrs = vec![addr(2)];
    session.play(60 * 5, 60 * 2);
    let player = session.server.player();
    let connection = session.server.endpoint.connection(player).unwrap();
    assert_eq!((connection.peer(), connection.validated_peer()), (addr(2), addr(2)));
    session.addrs = vec![addr(3)];
    session.play(60 * 7, 60 * 20);
    session.assert_alive(60 * 27);
}

#[test]
fn w53_an_address_that_is_used_in_turn_is_no_amplifier() {
    // The client sends every second datagram with the address of a victim, while it is sent as much as possible.
    let mut session = Alternating::connect(Encryption::Plain);
    session.play(0, 60);
    session.addrs = vec![addr(1), addr(2)];
    session.bytes = vec![(0, 0); 8];
    for _ in 0..20_000 {
        let player = session.server.player();
        while session.server.endpoint.send(session.now, player, &numbered(0, 400)).is_ok() {}
        let _ = session.client.send(session.now, &[1]);
        session.to_client.clear();
        session.step();
        // The client acks everything that it may have been sent, without having received it.
        if session.server.disconnects().is_empty() && session.server.endpoint.players().next().is_some() {
            continue;
        }
        break;
    }
    let (sent, received) = session.bytes[1];
    assert!(received <= 3 * sent, "{received} bytes for {sent}");
}
