//! The registry of the lobby under scripts of operations: its invariants hold, every datagram has one outcome, and the
//! published lists are valid replies.

use rallypoint_lobby_proto::{
    Ban, BanList, BanSubject, CheckResult, CheckTarget, Config, Event, HashKeys, ListingOrigin, Mapping, NamePattern,
    NetworkSet, ProbedServer, RegistrationOutcome, Registry, SaveFileWriter, UnlistReason,
    doors::{DOORS, DatagramDoor, Datagrams, Door},
};
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport, Unregister, blocks};
use std::{
    net::SocketAddr,
    time::{Duration, Instant, SystemTime},
};

/// The first byte selects the configuration; the rest are operations.
pub fn run(data: &[u8]) {
    let mut script = Script(data);
    let mut world = World::new(script.byte());
    // Longer scripts find nothing new.
    for _ in 0..400 {
        if script.0.is_empty() {
            break;
        }
        world.step(&mut script);
        world.check();
    }
    world.end();
}

const SOURCES: [&str; 8] = [
    "9.9.9.1:9",
    "9.9.9.2:9",
    "192.168.0.1:9",
    "[2620:fe::1]:9",
    "[2620:fe::2]:9",
    "[::ffff:9.9.9.1]:9",
    "127.0.0.1:9",
    "0.0.0.0:9",
];

/// Labels of probed servers.
const LABELS: [&str; 3] = ["one", "two", "three"];

/// Bytes that are read as choices; after the last byte, all choices are 0.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    fn source(&mut self) -> SocketAddr {
        SOURCES[usize::from(self.byte()) % SOURCES.len()].parse().expect("an address")
    }

    /// A registration of one of few servers at one of few endpoints, so that they often conflict.
    fn registration(&mut self) -> Vec<u8> {
        let who = self.byte();
        let what = self.byte();
        let more = self.byte();
        let mut table = TableBuf::new();
        let name: &[u8] = if more & 0xe0 == 0xe0 { b"casino" } else { b"server" };
        let query: Option<&[u8]> = match more & 3 {
            1 => Some(b"session"),
            2 => Some(b"session:7"),
            3 => Some(b"bloodmasters"),
            _ => None,
        };
        let protocol = [what & 0xf0; 16];
        let filler = [b'x'; 3_000];
        let keys = [
            (&b"name"[..], Some(name)),
            (b"x-query", query),
            (b"protocol_id", (more & 4 != 0).then_some(&protocol[..])),
            (b"x-filler", (more & 8 != 0).then_some(&filler[..])),
        ];
        for (key, value) in keys {
            value.into_iter().for_each(|value| table.push(key, value).expect("it fits"));
        }
        let transport = if what & 1 == 0 { Transport::Tcp } else { Transport::Udp };
        let lobby = match what >> 1 & 3 {
            0 => ListId::GANG_GARRISON_2,
            n => ListId::from_bytes([n; 16]),
        };
        let port = 1 + u16::from(what >> 3 & 3);
        let occupancy = Occupancy { players: u16::from(what >> 5), ..Occupancy::default() };
        let id = server_id(who);
        let port = port.try_into().expect("not 0");
        let mut bytes = Vec::new();
        let new = Registration::new(id, lobby, transport, port, occupancy, table.as_table());
        new.expect("a valid registration").emit(&mut bytes);
        bytes
    }

    fn config(&mut self) -> Config {
        config(self.byte())
    }
}

fn server_id(number: u8) -> ServerId {
    ServerId::from_bytes([number % 8; 16])
}

fn config(choice: u8) -> Config {
    let is_set = |bit: u8| choice & 1 << bit != 0;
    let mut config = Config { allow_private: !is_set(0), ..Config::default() };
    // Small tables are created faster.
    config.limits.max_entries = 64;
    config.checks.enabled = !is_set(1);
    (config.checks.keep, config.checks.retry) = (Duration::from_secs(40), Duration::from_secs(7));
    if is_set(2) {
        (config.checks.in_flight, config.checks.waiting, config.checks.per_network) = (1, 4, 4);
    }
    if is_set(3) {
        let caps = &mut config.caps;
        (caps.per_address, caps.per_list, caps.total, caps.lists) = (2, 3, 4, 2);
        (caps.lists_per_network, caps.memory) = (1, 1 << 20);
        config.named_lists = [ListId::GANG_GARRISON_2].into_iter().collect();
    }
    if is_set(4) {
        let from = "192.168.0.0/16".parse().expect("a network");
        let to = "9.9.9.1".parse().expect("an address");
        config.address_map = [Mapping { from, port: None, to, to_port: None }].into_iter().collect();
    }
    if is_set(5) {
        let network = BanSubject::Network("9.9.9.2/32".parse().expect("a network"));
        let ban = |subject| Ban { subject, reason: "".into(), until: None };
        let bans = [network, BanSubject::Name(NamePattern::new("cas*"))].map(ban);
        config.bans = BanList::new(bans, Instant::now(), SystemTime::UNIX_EPOCH);
    }
    if is_set(6) {
        config.lease = Duration::from_secs(1);
    }
    if is_set(7) {
        let all = ["0.0.0.0/0", "::/0"].map(|network| network.parse().expect("a network"));
        config.limit_exempt = all.into_iter().collect::<NetworkSet>();
    }
    config
}

/// The doors of the table that the registry does not serve itself.
fn doors() -> Vec<(&'static str, Box<dyn DatagramDoor>)> {
    let start = |door: &&Door| match door.sockets.as_ref()?.datagrams {
        Some(Datagrams::Protocol(start)) => Some((door.name, start(&HashKeys::default()))),
        _ => None,
    };
    DOORS.iter().filter_map(start).collect()
}

struct World {
    registry: Registry,
    now: Instant,
    /// The doors that the registry does not serve itself.
    doors: Vec<(&'static str, Box<dyn DatagramDoor>)>,
    checks: Vec<CheckTarget>,
    /// Number of datagrams.
    datagrams: u64,
}

impl World {
    fn new(choice: u8) -> Self {
        let now = Instant::now();
        let registry = Registry::new(config(choice), HashKeys::default(), now).expect("a configuration");
        Self { registry, now, doors: doors(), checks: Vec::new(), datagrams: 0 }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.byte() % 18 {
            0..=5 => {
                let from = script.source();
                let bytes = script.registration();
                self.send(from, &bytes);
            }
            6 => {
                let mut bytes = Vec::new();
                Unregister { server_id: server_id(script.byte()) }.emit(&mut bytes);
                self.send(script.source(), &bytes);
            }
            7 => self.wait(Duration::from_millis(u64::from(script.byte()) * 37)),
            8 => self.wait(Duration::from_secs(script.byte().into())),
            9 | 10 => self.report(script.byte()),
            11 => self.registry.set_config(self.now, script.config()).expect("a configuration"),
            12 => self.batch(script),
            13 => {
                let from = script.source();
                let count = script.byte();
                let bytes = script.bytes(count.into());
                self.send(from, bytes);
                for (_, door) in &mut self.doors {
                    door.handle_datagram(&mut self.registry, self.now, from, bytes);
                    self.datagrams += 1;
                }
            }
            14 => self.restart(script.config()),
            15 => self.probe(script),
            16 => {
                let label = LABELS[usize::from(script.byte()) % LABELS.len()];
                self.registry.remove_probed(self.now, label, UnlistReason::Unwatched);
            }
            _ => self.poll(),
        }
    }

    fn send(&mut self, from: SocketAddr, bytes: &[u8]) {
        let outcome = self.registry.handle_datagram(self.now, from, bytes);
        self.datagrams += 1;
        let past = self.registry.recent_outcomes(from.ip());
        assert!(past.len() <= 16 && past.is_sorted_by_key(|past| past.at));
        assert!(outcome.code() != "listed" || past.iter().any(|past| past.outcome == RegistrationOutcome::Listed));
    }

    /// A server that does not register, at an endpoint that another one may have.
    fn probe(&mut self, script: &mut Script<'_>) {
        let mut table = TableBuf::new();
        table.push(b"name", &[script.byte() % 4]).expect("a short name");
        let choice = usize::from(script.byte());
        let watched = ProbedServer {
            label: LABELS[choice % LABELS.len()].into(),
            origin: [ListingOrigin::Announced, ListingOrigin::Watched][choice / 4 % 2],
            door: None,
            list: ListId::from_bytes([script.byte() % 3; 16]),
            ips: (0..choice / 8 % 3).map(|_| script.source().ip()).collect(),
            port: (1 + u16::from(script.byte() % 3)).try_into().expect("a port"),
            occupancy: Occupancy::default(),
            table,
            latency: Duration::from_millis(1),
            lease: Duration::from_secs(u64::from(script.byte() % 128)),
        };
        self.registry.handle_probed(self.now, &watched);
    }

    fn batch(&mut self, script: &mut Script<'_>) {
        let count = script.byte() % 40;
        let batch: Vec<_> = (0..count).map(|_| (script.source(), script.registration())).collect();
        self.registry.handle_datagrams(self.now, batch.iter().map(|(from, bytes)| (*from, &bytes[..])));
        self.datagrams += u64::from(count);
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        let mut calls = 0;
        while let Some(at) = self.registry.poll_timeout().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.registry.handle_timeout(self.now);
            calls += 1;
            assert!(calls < 100_000, "it wants to be called again and again");
        }
        self.now = end;
    }

    fn report(&mut self, choice: u8) {
        self.poll();
        if !self.checks.is_empty() {
            let target = self.checks.swap_remove(usize::from(choice >> 1) % self.checks.len());
            let verdict =
                if choice & 1 == 0 { CheckResult::Reachable(Duration::ZERO) } else { CheckResult::Unreachable };
            self.registry.handle_check(self.now, target, verdict);
        }
    }

    fn poll(&mut self) {
        while let Some(event) = self.registry.poll_event() {
            if let Event::Check(request) = event {
                self.checks.push(request.target);
            }
        }
    }

    fn restart(&mut self, config: Config) {
        let mut saver = SaveFileWriter::new();
        while !self.registry.save_next(self.now, &mut saver, 3) {}
        let save = saver.finish();
        let listed = self.registry.stats().listed;
        self.registry = Registry::new(config, HashKeys::default(), self.now).expect("a configuration");
        let restored = self.registry.restore(self.now, &save).expect("a valid save");
        assert!(restored <= listed && self.registry.stats().listed == restored);
        (self.checks, self.datagrams) = (Vec::new(), 0);
    }

    fn check(&mut self) {
        self.registry.check_invariants();
        let stats = self.registry.stats();
        assert_eq!(stats.outcomes.iter().sum::<u64>(), self.datagrams);
        assert!(stats.listed <= stats.registered);
        self.registry.publish(self.now);
        let mut listed = 0;
        for (id, list) in self.registry.lists().snapshot().lists() {
            let reply: Vec<u8> = list.pieces().flatten().copied().collect();
            let blocks: Vec<_> = blocks(&reply).map(|block| block.expect("a block")).collect();
            assert!(blocks.iter().eq(list.servers().map(|listing| listing.block()).collect::<Vec<_>>().iter()));
            assert!(list.servers().all(|listing| listing.list_id() == *id));
            assert!(!blocks.is_empty());
            listed += blocks.len();
        }
        assert_eq!(listed, stats.listed);
    }

    /// Without further registrations, all servers expire.
    fn end(&mut self) {
        self.wait(Duration::from_secs(150));
        self.check();
        let stats = self.registry.stats();
        assert_eq!((stats.registered, stats.listed, stats.lists), (0, 0, 0));
        // All checks in flight get a result in the end.
        self.poll();
        while !self.checks.is_empty() {
            self.report(1);
            self.poll();
        }
        assert_eq!(self.registry.stats().checks.waiting, 0);
    }
}
