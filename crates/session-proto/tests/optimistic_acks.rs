//! A peer that acks messages before it has received them, to be sent more than its path carries, is disconnected; one whose
//! acks are forged is not (W79).

use crate::common;

use common::{bottleneck::Source, forge::*, *};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_netsim::{Link, Network, Node};
use rallypoint_session_proto::{Client, DisconnectReason, Encryption, Endpoint, ONLY_CHANNEL};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::{Duration, Instant},
};

/// How a receiver lies in its acks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// Everything up to the newest number that arrived: no loss shows.
    HidesLoss,
    /// Everything up to that number, after a while: a loss seems to be reordering.
    HidesLossLater,
    /// Also the next numbers, which have not arrived and may not even be sent.
    AcksAhead,
    /// Everything, and requests what is missing, as if another had forged the acks.
    AcksAndRequests,
}

/// A client that is honest until it is in a session, and then acks as it likes.
struct Liar {
    client: Client,
    lie: Lie,
    newest: u32,
    received: BTreeMap<u32, ()>,
    out: Vec<Vec<u8>>,
    later: Vec<(Instant, Vec<u8>)>,
}

impl Machine for Liar {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        if bytes[0] != PLAIN || !self.client.is_connected() {
            self.client.handle_datagram(now, from, bytes);
            return;
        }
        let number = u32::from_le_bytes(bytes[5..9].try_into().unwrap());
        let first = self.newest.min(number);
        let holes: Vec<u32> = (first + 1..number).filter(|hole| !self.received.contains_key(hole)).collect();
        self.received.insert(number, ());
        self.newest = self.newest.max(number);
        match self.lie {
            Lie::HidesLoss => self.out.push(number_list(ACK, holes.into_iter().take(60).chain([number]))),
            Lie::HidesLossLater => {
                self.out.push(number_list(ACK, [number]));
                if !holes.is_empty() {
                    self.later.push((now + ms(15), number_list(ACK, holes.into_iter().take(60))));
                }
            }
            Lie::AcksAhead => self.out.push(number_list(ACK, first + 1..=(number + 4).min(first + 60))),
            Lie::AcksAndRequests => {
                if !holes.is_empty() {
                    self.out.push(number_list(RESEND, holes.iter().copied().take(60)));
                }
                self.out.push(number_list(ACK, holes.into_iter().take(60).chain([number])));
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.client.handle_timeout(now);
        let due = self.later.iter().take_while(|(at, _)| *at <= now).count();
        self.out.extend(self.later.drain(..due).map(|(_, bytes)| bytes));
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(bytes) = self.out.pop() {
            out.extend_from_slice(&bytes);
            return Some(Transmit::one(SERVER.into(), bytes.len()));
        }
        while self.client.poll_event().is_some() {}
        self.client.poll_transmit(now, out)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let later = self.later.first().map(|(at, _)| *at);
        [later, self.client.poll_timeout()].into_iter().flatten().min()
    }
}

/// A download to a liar through 4 Mbit/s.
struct Flood {
    net: Network,
    server: Node<Source>,
    liar: Node<Liar>,
}

impl Flood {
    fn start(seed: u64, lie: Lie) -> Self {
        let mut net = Network::new(seed);
        net.set_default_link(Link::default().delay(ms(25)).bottleneck(4_000_000, 25_000));
        let endpoint = Endpoint::new(server_config(), [seed as u8; 32]).unwrap();
        let server = net.add(SERVER, Source::new(endpoint));
        let client = Client::new(net.now(), SERVER.into(), client_config(Encryption::Plain), [2; 32]).unwrap();
        let liar = Liar { client, lie, newest: 0, received: BTreeMap::new(), out: Vec::new(), later: Vec::new() };
        let liar = net.add(CLIENT, liar);
        Self { net, server, liar }
    }

    /// Bytes that are sent in this time.
    fn run_for(&mut self, time: Duration) -> u64 {
        let sent = |flood: &Self| flood.net.counters(flood.server, flood.liar).sent.bytes;
        let before = sent(self);
        self.net.run_for(time);
        sent(self) - before
    }
}

#[test]
fn w79_a_peer_that_acks_what_it_has_not_received_is_disconnected() {
    for seed in 1..=8 {
        for lie in [Lie::HidesLoss, Lie::HidesLossLater] {
            let mut flood = Flood::start(seed, lie);
            let sent = flood.run_for(secs(10));
            let reasons = flood.net.machine(flood.server).disconnects.clone();
            println!("seed {seed}, {lie:?}: {sent} bytes, {reasons:?}");
            assert_eq!(reasons, [DisconnectReason::FalseAcks], "seed {seed}, {lie:?}, {sent} bytes");
            // It could receive 5 MB in that time.
            assert!(sent < 8_000_000, "seed {seed}, {lie:?}: {sent} bytes");
        }
    }
}

#[test]
fn w79_a_peer_that_lies_in_other_ways_gains_little() {
    for seed in 1..=4 {
        // An ack of a number that was never sent is dropped, so the second one mostly gets nothing.
        for lie in [Lie::AcksAndRequests, Lie::AcksAhead] {
            let mut flood = Flood::start(seed, lie);
            let sent = flood.run_for(secs(20));
            let reasons = flood.net.machine(flood.server).disconnects.clone();
            println!("seed {seed}, {lie:?}: {sent} bytes, {reasons:?}");
            // It could receive 10 MB in that time.
            assert!(sent < 20_000_000, "seed {seed}, {lie:?}: {sent} bytes, {reasons:?}");
        }
    }
}

#[test]
fn w79_forged_acks_of_messages_that_were_not_sent_end_no_session() {
    for seed in 1..=4 {
        let link = Link::default().delay(ms(25)).loss(0.01).bottleneck(16_000_000, 100_000);
        let mut pair = Pair::plain(seed, link);
        let tap = Wiretap::attach(&mut pair.net);
        let mut sent = 0;
        let mut seen = BTreeSet::new();
        let mut forged = 0;
        for _ in 0..20_000 {
            pair.net.with(pair.server, |app, now| {
                let player = app.player();
                while app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(sent, 400)).is_ok() {
                    sent += 1;
                }
            });
            // Someone on the path acks each number that is left out.
            let numbers = tap.sent(SERVER, &[PLAIN]);
            tap.clear();
            let before = seen.last().copied().unwrap_or(0);
            seen.extend(numbers.iter().map(|bytes| u32::from_le_bytes(bytes[5..9].try_into().unwrap())));
            let newest = seen.last().copied().unwrap_or(0);
            for number in (before..newest).filter(|number| !seen.contains(number)).collect::<Vec<_>>() {
                forged += 1;
                pair.net.inject(CLIENT, SERVER, &number_list(ACK, [number]));
            }
            pair.net.run_for(ms(1));
        }
        assert_eq!(pair.server().disconnects(), [], "seed {seed}");
        let received = pair.client().received.len() * 400 / 20;
        println!("seed {seed}: {forged} forged acks, {received} bytes per second");
        assert!(forged > 3 && received > 1_500_000, "seed {seed}: {forged} forged acks, {received} bytes per second");
    }
}
