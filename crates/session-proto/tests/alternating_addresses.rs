//! A session survives a NAT that sends its datagrams from two addresses in turn (W53).

use crate::common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, Encryption, ONLY_CHANNEL, ServerEvent};
use std::{net::SocketAddr, time::Instant};

/// Bytes of the IP and UDP headers.
const HEADERS: usize = 28;

/// How the NAT chooses an address.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// Another one after this number of datagrams.
    Datagrams(u64),
    /// Another one after this number of milliseconds.
    Time(u64),
    Random,
}

/// A client behind a NAT that chooses one of several addresses for each datagram. The network takes 20 ms each way.
struct Alternating {
    now: Instant,
    server: ServerApp,
    client: Client,
    addrs: Vec<SocketAddr>,
    choice: Choice,
    start: Instant,
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
            choice: Choice::Datagrams(1),
            start: now,
            sent: 0,
            to_server: Vec::new(),
            to_client: Vec::new(),
            received: Vec::new(),
            bytes: vec![(0, 0); 16],
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
            let turn = match self.choice {
                Choice::Datagrams(count) => self.sent / count,
                Choice::Time(time) => (now - self.start).as_millis() as u64 / time,
                Choice::Random => self.sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32,
            };
            let from = turn as usize % self.addrs.len();
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
        while let Some((_, message)) = self.client.recv() {
            self.received.push(number_of(message));
        }
    }

    /// Plays for a while: 60 messages per second each way.
    fn play(&mut self, first: u32, count: u32) {
        for number in first..first + count {
            self.client.send(self.now, ONLY_CHANNEL, &numbered(number, 60)).unwrap();
            let player = self.server.player();
            self.server.endpoint.send(self.now, player, ONLY_CHANNEL, &numbered(number, 60)).unwrap();
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
        let choices = [
            (2, Choice::Datagrams(1)),
            (2, Choice::Datagrams(7)),
            (2, Choice::Time(16)),
            (2, Choice::Time(300)),
            (2, Choice::Random),
            (3, Choice::Random),
            (4, Choice::Datagrams(2)),
        ];
        for (addrs, choice) in choices {
            let mut session = Alternating::connect(encryption.clone());
            session.play(0, 60);
            session.addrs = (1..=addrs).map(addr).collect();
            session.choice = choice;
            session.play(60, 60 * 25);
            session.assert_alive(60 * 26);
            let stats = session.client.connection().unwrap().stats();
            assert!(stats.resends < 100, "{addrs} addresses, {choice:?}: {stats:?}");
            let moves =
                session.server.events.iter().filter(|(_, event)| matches!(event, ServerEvent::Moved(..))).count();
            assert!(moves < 20, "{moves} moves");
        }
    }
}

#[test]
fn w53_a_session_behind_a_nat_that_alternates_many_addresses_lives() {
    let mut missed = Vec::new();
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        for (addrs, interval) in [(6, 16), (10, 16), (16, 16), (6, 100), (10, 100), (6, 500)] {
            let mut session = Alternating::connect(encryption.clone());
            session.play(0, 60);
            session.addrs = (1..=addrs).map(addr).collect();
            let count = 60 + 40_000 / interval;
            for number in 60..count {
                let _ = session.client.send(session.now, ONLY_CHANNEL, &numbered(number, 60));
                let Some(player) = session.server.endpoint.players().next() else { break };
                let _ = session.server.endpoint.send(session.now, player, ONLY_CHANNEL, &numbered(number, 60));
                (0..interval).for_each(|_| session.step());
            }
            (0..1_000).for_each(|_| session.step());
            let at_server = session.server.received.values().next().unwrap().len();
            let at_client = session.received.len();
            if [at_server, at_client] != [count as usize; 2] {
                let ends = session.server.disconnects();
                missed.push(format!(
                    "{addrs} addresses, {interval} ms, {encryption:?}: {at_server} and {at_client} of {count}, {ends:?}"
                ));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// A download of 2 MB to a client that sends nothing itself. Returns the number of messages that arrive in 60 s.
fn download(encryption: Encryption, addrs: u16, choice: Choice) -> (u32, Alternating) {
    let mut session = Alternating::connect(encryption);
    session.play(0, 60);
    (0..1_000).for_each(|_| session.step());
    session.received.clear();
    session.addrs = (1..=addrs).map(addr).collect();
    session.choice = choice;
    let mut next = 0;
    for _ in 0..60_000 {
        let Some(player) = session.server.endpoint.players().next() else { break };
        while next < DOWNLOAD
            && session.server.endpoint.send(session.now, player, ONLY_CHANNEL, &numbered(next, 400)).is_ok()
        {
            next += 1;
        }
        session.step();
        if session.received.len() as u32 == DOWNLOAD {
            break;
        }
    }
    (session.received.len() as u32, session)
}

/// Number of messages of a download.
const DOWNLOAD: u32 = 5_000;

#[test]
fn w53_a_download_through_a_nat_that_alternates_addresses_arrives() {
    let mut missed = Vec::new();
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        for addrs in [2, 3, 4, 6] {
            for choice in [Choice::Datagrams(1), Choice::Datagrams(3), Choice::Time(16), Choice::Random] {
                let (received, session) = download(encryption.clone(), addrs, choice);
                let time = session.now - session.start;
                println!("{encryption:?}, {addrs} addresses, {choice:?}: {received} in {time:?}");
                if received < DOWNLOAD {
                    missed.push(format!(
                        "{encryption:?}, {addrs} addresses, {choice:?}: {received} of {DOWNLOAD}, {:?}",
                        session.server.disconnects()
                    ));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
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
        // It receives nothing, so its session times out.
        let Some(player) = session.server.endpoint.players().next() else { break };
        while session.server.endpoint.send(session.now, player, ONLY_CHANNEL, &numbered(0, 400)).is_ok() {}
        let _ = session.client.send(session.now, ONLY_CHANNEL, &[1]);
        session.to_client.clear();
        session.step();
    }
    let (sent, received) = session.bytes[1];
    assert!(received <= 3 * sent, "{received} bytes for {sent}");
}

/// Another host than that of `addr`.
fn host(number: u16) -> SocketAddr {
    ([10, 0, number as u8, 1], 1).into()
}

#[test]
fn w53_a_session_behind_a_nat_that_alternates_hosts_lives() {
    let mut missed = Vec::new();
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        for (client_every, server_every) in
            [(16, 16), (16, 33), (33, 16), (50, 50), (100, 100), (16, 0), (100, 16), (0, 16), (0, 100)]
        {
            for (addrs, choice) in [
                (2, Choice::Datagrams(1)),
                (2, Choice::Datagrams(2)),
                (2, Choice::Datagrams(7)),
                (2, Choice::Time(16)),
                (2, Choice::Random),
                (3, Choice::Datagrams(1)),
                (3, Choice::Random),
                (4, Choice::Datagrams(1)),
                (4, Choice::Datagrams(2)),
            ] {
                let mut session = Alternating::connect(encryption.clone());
                session.play(0, 60);
                (0..200).for_each(|_| session.step());
                session.received.clear();
                session.addrs = vec![addr(1)];
                session.addrs.extend((2..=addrs).map(host));
                session.choice = choice;
                let mut sent = [0; 2];
                for time in 0..25_000 {
                    if client_every > 0 && time % client_every == 0 {
                        let _ = session.client.send(session.now, ONLY_CHANNEL, &numbered(sent[0], 60));
                        sent[0] += 1;
                    }
                    let Some(player) = session.server.endpoint.players().next() else { break };
                    if server_every > 0 && time % server_every == 0 {
                        let _ = session.server.endpoint.send(session.now, player, ONLY_CHANNEL, &numbered(sent[1], 60));
                        sent[1] += 1;
                    }
                    session.step();
                }
                (0..5_000).for_each(|_| session.step());
                let at_server = session.server.received.values().next().map_or(0, |all| all.len() - 60);
                let at_client = session.received.len();
                if [at_server as u32, at_client as u32] != sent {
                    let ends = session.server.disconnects();
                    missed.push(format!(
                        "{encryption:?}, messages every {client_every} and {server_every} ms, {addrs} hosts, {choice:?}: {at_server}, {at_client} of {sent:?}, {ends:?}"
                    ));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
