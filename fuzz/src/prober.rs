//! The prober under arbitrary traffic at any pace: one report for each target, no empty datagrams, nothing sent to other
//! addresses, and no reply accepted from an address that was not probed.

use rallypoint_machine::Machine;
use rallypoint_query_proto::{
    Probe, ProbeOutcome, ProbeResult, Prober, ProberConfig, Protocol, Responder, ResponderConfig, ServerInfo,
    ServerQuery,
};
use std::{
    collections::HashMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The first two bytes are the configuration, followed by steps of two bytes, operation and server, some with arguments:
/// * probe a server;
/// * advance the time (duration);
/// * a server replies to the last query that it was sent, intact or damaged (position);
/// * an arbitrary datagram arrives from a server's address (length, bytes), or from another one;
/// * the network reports that a server's port is closed, quoting the last datagram sent there or other bytes;
/// * cancel a probe;
/// * take the reports.
pub fn run(data: &[u8]) {
    let Some((&[limits, times], mut script)) = data.split_first_chunk() else { return };
    let config = ProberConfig {
        packets_per_second: 1 << (limits >> 4),
        max_in_flight: 1 + usize::from(limits & 7),
        max_targets: 32,
        retries: times & 15,
        deadline: Duration::from_millis(1 << (times >> 4)),
        retry_after: Duration::from_millis(1 + u64::from(limits & 8)),
        ..ProberConfig::default()
    };
    let mut world = World::new(config);
    while let Some((&[what, who], rest)) = script.split_first_chunk() {
        script = rest;
        match what % 10 {
            0 | 1 => world.ask(who),
            2 => world.advance(Duration::from_millis(u64::from(who).pow(2))),
            3 => world.answer(who, None),
            4 => world.answer(who, take(&mut script, 2).first_chunk().copied()),
            5 => world.arrive(server(who), take(&mut script, usize::from(what / 10))),
            6 => world.arrive(([198, 51, 100, who], 4000).into(), take(&mut script, usize::from(what / 10))),
            7 if what < 50 => world.refuse(who, None),
            7 => world.refuse(who, Some(take(&mut script, usize::from(what / 10) - 5))),
            8 => world.cancel(who),
            _ => world.take_reports(),
        }
        world.send();
    }
    world.finish();
}

fn take<'a>(script: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = script.split_at(count.min(script.len()));
    *script = rest;
    taken
}

/// Sixteen servers, at eight addresses.
fn server(who: u8) -> SocketAddr {
    ([192, 0, 2, who % 8], 4000).into()
}

fn question(who: u8) -> ServerQuery {
    let number = usize::from(who / 8);
    let protocol = Protocol::ALL[number % Protocol::ALL.len()];
    if (number / Protocol::ALL.len()).is_multiple_of(2) { protocol.info() } else { protocol.players() }
}

struct World {
    prober: Prober,
    responder: Responder,
    now: Instant,
    asked: u64,
    /// Number of open probes of each server, and number of reports.
    open: HashMap<Probe, u64>,
    reports: u64,
    /// The last datagram sent to each server.
    queries: HashMap<SocketAddr, Vec<u8>>,
    /// Whether a datagram ever arrived from this server.
    heard: HashMap<SocketAddr, bool>,
    /// Whether the network ever reported this port as closed.
    refused: HashMap<SocketAddr, bool>,
}

impl World {
    fn new(config: ProberConfig) -> Self {
        let player = |name: &str| rallypoint_query_proto::Player { name: name.into(), ..Default::default() };
        let info = ServerInfo {
            name: Some("server".into()),
            player_list: Some(vec![player("a"), player("b"), player("a")]),
            ..ServerInfo::default()
        };
        let responder = Responder::new(ResponderConfig { max_addresses: 8, ..ResponderConfig::default() }, 7, &info);
        Self {
            prober: Prober::new(config, [7; 32]).expect("the configuration is in range"),
            responder: responder.expect("the configuration is in range"),
            now: Instant::now(),
            asked: 0,
            open: HashMap::new(),
            reports: 0,
            queries: HashMap::new(),
            heard: HashMap::new(),
            refused: HashMap::new(),
        }
    }

    fn ask(&mut self, who: u8) {
        let target = Probe { address: server(who), query: question(who), tag: who.into() };
        if self.prober.enqueue(target).is_ok() {
            self.asked += 1;
            *self.open.entry(target).or_default() += 1;
        }
    }

    fn advance(&mut self, time: Duration) {
        self.now += time;
        self.prober.handle_timeout(self.now);
    }

    /// Replies, optionally with one byte changed (position and value).
    fn answer(&mut self, who: u8, damage: Option<[u8; 2]>) {
        let Some(query) = self.queries.get(&server(who)) else { return };
        self.responder.handle_datagram(self.now, ([203, 0, 113, 1], 1).into(), query);
        let mut out = Vec::new();
        while self.responder.poll_transmit(self.now, &mut out).is_some() {
            if let Some([place, byte]) = damage {
                let place = usize::from(place) % out.len();
                out[place] = byte;
            }
            self.arrive(server(who), &out);
            out.clear();
        }
    }

    fn arrive(&mut self, from: SocketAddr, bytes: &[u8]) {
        self.heard.insert(from, true);
        self.prober.handle_datagram(self.now, from, bytes);
    }

    fn refuse(&mut self, who: u8, quoted: Option<&[u8]>) {
        let quoted = quoted.or_else(|| self.queries.get(&server(who)).map(Vec::as_slice));
        self.refused.insert(server(who), true);
        self.prober.handle_refused(server(who), quoted.unwrap_or_default());
    }

    fn cancel(&mut self, who: u8) {
        let target = Probe { address: server(who), query: question(who), tag: who.into() };
        let before = self.prober.in_flight();
        if self.prober.cancel(&target) {
            assert_eq!(self.prober.in_flight(), before - 1);
            self.asked -= 1;
            *self.open.get_mut(&target).expect("probed before") -= 1;
        }
    }

    fn send(&mut self) {
        let mut out = Vec::new();
        while let Some(transmit) = self.prober.poll_transmit(self.now, &mut out) {
            assert_eq!(transmit.len, out.len());
            assert!(!out.is_empty(), "an empty datagram makes servers deaf");
            assert!(self.open.keys().any(|target| target.address == transmit.to), "only who is asked");
            self.queries.insert(transmit.to, std::mem::take(&mut out));
        }
        assert!(self.prober.in_flight() <= self.prober.config().max_in_flight);
        assert!(self.prober.queued() <= 32);
    }

    fn take_reports(&mut self) {
        while let Some(ProbeResult { probe: target, outcome, retries, .. }) = self.prober.poll_event() {
            self.reports += 1;
            let open = self.open.get_mut(&target).filter(|open| **open > 0).expect("probed and not yet reported");
            *open -= 1;
            assert!(retries <= self.prober.config().retries);
            match outcome {
                ProbeOutcome::TimedOut => {}
                ProbeOutcome::Refused => {
                    assert!(self.refused.contains_key(&target.address), "the network never reported it");
                }
                _ => assert!(self.heard.contains_key(&target.address), "nothing ever came from there"),
            }
            if let ProbeOutcome::Answered(answer) = outcome {
                assert!(answer.round_trip.time <= self.prober.config().deadline);
                assert!(answer.raw.datagrams().count() > 0);
            }
        }
    }

    /// Runs until all probes have ended, with one report for each.
    fn finish(mut self) {
        for _ in 0..100_000 {
            self.take_reports();
            self.send();
            if self.prober.is_idle() {
                break;
            }
            let next = self.prober.poll_timeout().expect("a prober that is not idle has a timeout");
            self.advance(next.saturating_duration_since(self.now));
        }
        assert!(self.prober.is_idle(), "it comes to an end");
        assert_eq!(self.prober.poll_timeout(), None);
        assert_eq!(self.reports, self.asked);
        let stats = self.prober.stats();
        assert_eq!(stats.complete + stats.partial + stats.unreadable + stats.timed_out + stats.refused, self.asked);
        assert!(stats.unsolicited + stats.wrong_echo + stats.malformed + stats.redundant <= stats.received);
    }
}
