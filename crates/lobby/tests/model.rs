//! The registry against a naive model of the rulings, on random scripts.
//!
//! The model keeps everything in plain vectors and looks through all of it every time. It knows the rulings and the one
//! thing that the registry is allowed to be inexact in: leases and verdicts end on a grid of 250 ms.

mod support;
use proptest::prelude::*;
use rallypoint_lobby::{
    Ban, Banned, CheckKind, Config, Event, Listing, Mapping, NamePattern, Outcome, Registry, Saver, Target, Verdict,
};
use rallypoint_wire::lobby::{LobbyId, Transport};
use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use support::*;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Op {
    Register {
        from: usize,
        server: Says,
    },
    Unregister {
        from: usize,
        id: u128,
    },
    Wait(Duration),
    /// The check that was asked for longest ago, or a later one, is done.
    Verdict {
        which: usize,
        is_good: bool,
    },
    Set(Knobs),
    Restart,
}

/// What a registration says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Says {
    id: u128,
    lobby: u32,
    is_tcp: bool,
    port: u16,
    players: u16,
    query: Option<&'static str>,
    has_bad_name: bool,
}

/// What is configured.
#[derive(Clone, Copy, Debug)]
struct Knobs {
    lease: u64,
    allow_private: bool,
    checks: bool,
    is_exempt: bool,
    is_mapped: bool,
    bans_network: bool,
    bans_name: bool,
    has_small_caps: bool,
}

const SOURCES: [&str; 7] =
    ["203.0.113.1", "203.0.113.2", "192.168.0.1", "2001:db8::1", "2001:db8::2", "::ffff:203.0.113.1", "0.0.0.0"];
const PRIVATE: &str = "192.168.0.1";
const BANNED: &str = "203.0.113.2";
const EXEMPT: &str = "2001:db8::2";
/// What the private source is called outside, and it is somebody else's address.
const OUTSIDE: &str = "203.0.113.1";
const BAD_NAME: &str = "casino";
const KEEP: Duration = secs(40);
const RETRY: Duration = secs(7);
/// The time limit of a check, and what the registry waits beyond it.
const OVERDUE: Duration = secs(15);
const QUERIES: [Option<&str>; 4] = [None, Some("session"), Some("session:7"), Some("gamespy")];

impl Says {
    fn server(&self) -> Server {
        let mut server = if self.is_tcp { tcp(self.id) } else { udp(self.id) };
        server = server.port(self.port).players(self.players).lobby(lobby(self.lobby));
        if self.has_bad_name {
            server = server.name(BAD_NAME);
        }
        if let Some(query) = self.query {
            server = server.key("x-query", query);
        }
        server
    }

    fn transport(&self) -> Transport {
        if self.is_tcp { Transport::Tcp } else { Transport::Udp }
    }

    /// L12 and E1: what to check for a server at this place.
    fn target(&self, inside: (IpAddr, u16)) -> Option<Target> {
        let (kind, port) = match (self.is_tcp, self.query) {
            (true, _) => (CheckKind::Connect, inside.1),
            (false, Some("session")) => (CheckKind::Session, inside.1),
            (false, Some("session:7")) => (CheckKind::Session, 7),
            (false, _) => return None,
        };
        Some(Target { addr: SocketAddr::new(inside.0, port), kind })
    }
}

impl Knobs {
    fn config(&self) -> Config {
        let mut config = Config { lease: secs(self.lease), allow_private: self.allow_private, ..Config::default() };
        config.limit_exempt = networks(&["0.0.0.0/0", "::/0"]);
        config.limits.max_entries = 8;
        config.checks.enabled = self.checks;
        (config.checks.keep, config.checks.retry) = (KEEP, RETRY);
        (config.checks.per_address, config.checks.per_network) = (1_000_000, 1_000_000);
        (config.checks.in_flight, config.checks.waiting) = (1_000_000, 1_000_000);
        if self.is_exempt {
            config.checks.exempt = networks(&[&format!("{EXEMPT}/128")]);
        }
        if self.is_mapped {
            let from = format!("{PRIVATE}/32").parse().unwrap();
            config.address_map = [Mapping { from, port: None, to: ip(OUTSIDE), to_port: None }].into_iter().collect();
        }
        let network = Banned::Network(format!("{BANNED}/32").parse().unwrap());
        let name = Banned::Name(NamePattern::new(BAD_NAME));
        let ban = |who| Ban { who, reason: String::new(), until: None };
        let bans = [(self.bans_network, network), (self.bans_name, name)];
        config.bans = bans.into_iter().filter(|(is_set, _)| *is_set).map(|(_, who)| ban(who)).collect();
        if self.has_small_caps {
            let caps = &mut config.caps;
            (caps.per_address, caps.per_lobby, caps.total, caps.lobbies) = (2, 3, 4, 2);
        }
        config
    }

    fn caps(&self) -> [usize; 4] {
        if self.has_small_caps { [2, 3, 4, 2] } else { [32, 1_000_000, 1_000_000, 10_000] }
    }

    fn outside(&self, inside: (IpAddr, u16)) -> (IpAddr, u16) {
        if self.is_mapped && inside.0 == ip(PRIVATE) { (ip(OUTSIDE), inside.1) } else { inside }
    }

    fn is_private(&self, outside: (IpAddr, u16)) -> bool {
        !self.allow_private && outside.0 == ip(PRIVATE)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Checking,
    Unreachable,
    Listed,
}

#[derive(Clone, Copy, Debug)]
struct Endpoint {
    inside: (IpAddr, u16),
    outside: (IpAddr, u16),
    ends: Instant,
    state: State,
    /// Since when it is listed under a verdict that has to be renewed.
    stale_since: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Entry {
    says: Says,
    /// IPv4 and IPv6.
    endpoints: [Option<Endpoint>; 2],
}

/// What the list shows of an endpoint: address, port, and whether it is TCP.
type Place = (IpAddr, u16, bool);

struct Model {
    began: Instant,
    knobs: Knobs,
    entries: Vec<Entry>,
    unregistered: Vec<(u128, Instant)>,
    verdicts: Vec<(Target, bool, Instant)>,
    /// Checks that somebody waits for, and which family of whom.
    waiters: Vec<(Target, u128, usize)>,
    /// Checks that are under way, and when they are overdue.
    under_way: Vec<(Target, Instant)>,
    outcomes: [u64; Outcome::CODES.len()],
}

impl Model {
    /// The first point of the grid that is not before `at`.
    fn grid(&self, at: Instant) -> Instant {
        let grains = (at - self.began).as_nanos().div_ceil(GRAIN.as_nanos());
        self.began + GRAIN * grains as u32
    }

    /// The last point of the grid that has been reached.
    fn reached(&self, now: Instant) -> Instant {
        self.began + GRAIN * ((now - self.began).as_nanos() / GRAIN.as_nanos()) as u32
    }

    fn verdict(&self, now: Instant, target: Target) -> Option<bool> {
        let reached = self.reached(now);
        self.verdicts
            .iter()
            .find(|(known, _, until)| *known == target && reached < *until)
            .map(|(_, is_good, _)| *is_good)
    }

    fn target(&self, entry: &Entry, family: usize) -> Option<Target> {
        let endpoint = entry.endpoints[family]?;
        let is_exempt = self.knobs.is_exempt && endpoint.inside.0 == ip(EXEMPT);
        if !self.knobs.checks || is_exempt { None } else { entry.says.target(endpoint.inside) }
    }

    fn find(&self, id: u128) -> Option<usize> {
        self.entries.iter().position(|entry| entry.says.id == id)
    }

    fn remove(&mut self, at: usize) {
        let entry = self.entries.swap_remove(at);
        self.waiters.retain(|(_, id, _)| *id != entry.says.id);
    }

    fn register(&mut self, now: Instant, from: IpAddr, says: Says) -> Outcome {
        let from = from.to_canonical();
        if from == ip("0.0.0.0") {
            return Outcome::InvalidSource;
        }
        if self.knobs.bans_network && from == ip(BANNED) || self.knobs.bans_name && says.has_bad_name {
            return Outcome::Banned;
        }
        // L11
        if self.unregistered.iter().any(|(id, until)| *id == says.id && now < *until) {
            return Outcome::JustUnregistered;
        }
        let inside = (from, says.port);
        let outside = self.knobs.outside(inside);
        if self.knobs.is_private(outside) {
            return Outcome::PrivateSource;
        }
        // L8
        let known = self.find(says.id);
        let replaced = self.entries.iter().position(|entry| {
            let is_there = entry.endpoints.iter().flatten().any(|endpoint| endpoint.outside == outside);
            is_there && entry.says.is_tcp == says.is_tcp && entry.says.id != says.id
        });
        if let Some(refused) = self.at_cap(from, says, known, replaced) {
            return refused;
        }
        if let Some(replaced) = replaced {
            self.remove(replaced);
        }
        let at = self.find(says.id).unwrap_or_else(|| {
            self.entries.push(Entry { says, endpoints: [None; 2] });
            self.entries.len() - 1
        });
        let before = self.entries[at].clone();
        let is_new_in_lobby = self.shown(&before).is_none() || before.says.lobby != says.lobby;
        self.update(now, at, says, inside, outside);
        let entry = &self.entries[at];
        let family = usize::from(from.is_ipv6());
        match entry.endpoints[family].unwrap().state {
            State::Listed if is_new_in_lobby => Outcome::Listed,
            State::Listed if self.shown(&before) != self.shown(entry) => Outcome::Changed,
            State::Listed => Outcome::Refreshed,
            State::Checking => Outcome::Checking,
            State::Unreachable => Outcome::Unreachable,
        }
    }

    fn update(&mut self, now: Instant, at: usize, says: Says, inside: (IpAddr, u16), outside: (IpAddr, u16)) {
        let family = usize::from(inside.0.is_ipv6());
        let old = self.entries[at].clone();
        // The other endpoint goes along with a change of transport, unless somebody else is there.
        if old.says.is_tcp != says.is_tcp {
            let place = old.endpoints[1 - family].map(|endpoint| endpoint.outside);
            let is_there =
                |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| Some(endpoint.outside) == place);
            let is_other = |entry: &&Entry| entry.says.id != says.id && entry.says.is_tcp == says.is_tcp;
            if place.is_some() && self.entries.iter().filter(is_other).any(is_there) {
                self.entries[at].endpoints[1 - family] = None;
            }
        }
        let probe = |says: &Says, place| says.target(place);
        let any_place = (inside.0, 1);
        let is_other_form = probe(&old.says, any_place) != probe(&says, any_place);
        let is_other_place = old.endpoints[family].is_none_or(|endpoint| endpoint.inside != inside);
        let state = old.endpoints[family].map_or(State::Checking, |endpoint| endpoint.state);
        let ends = self.grid(now + secs(self.knobs.lease));
        let entry = &mut self.entries[at];
        entry.says = says;
        let stale_since = old.endpoints[family].and_then(|endpoint| endpoint.stale_since);
        entry.endpoints[family] = Some(Endpoint { inside, outside, ends, state, stale_since });
        for at_family in [0, 1] {
            let Some(endpoint) = self.entries[at].endpoints[at_family] else { continue };
            let is_void = is_other_form || at_family == family && is_other_place;
            if is_void || at_family == family && endpoint.state != State::Listed {
                let state = match self.target(&self.entries[at], at_family) {
                    None => State::Listed,
                    Some(target) => match self.verdict(now, target) {
                        Some(true) => State::Listed,
                        Some(false) => State::Unreachable,
                        None => {
                            self.waiters.push((target, says.id, at_family));
                            State::Checking
                        }
                    },
                };
                self.entries[at].endpoints[at_family].as_mut().unwrap().state = state;
            }
        }
    }

    fn at_cap(&self, from: IpAddr, says: Says, known: Option<usize>, replaced: Option<usize>) -> Option<Outcome> {
        let [per_address, per_lobby, total, lobbies] = self.knobs.caps();
        let is_ours = |at: usize| Some(at) == known || Some(at) == replaced;
        // What there would be without those that this registration is about.
        let others: Vec<&Entry> =
            (0..).zip(&self.entries).filter(|(at, _)| !is_ours(*at)).map(|(_, entry)| entry).collect();
        let is_in = |entry: &Entry| entry.says.lobby == says.lobby;
        let is_from = |entry: &Entry| entry.endpoints.iter().flatten().any(|endpoint| endpoint.inside.0 == from);
        let ours: Vec<&Entry> = known.into_iter().chain(replaced).map(|at| &self.entries[at]).collect();
        if ours.is_empty() && others.len() >= total {
            return Some(Outcome::RegistryFull);
        }
        let in_lobby = others.iter().filter(|entry| is_in(entry)).count();
        if in_lobby >= per_lobby && !ours.iter().any(|entry| is_in(entry)) {
            return Some(Outcome::LobbyFull);
        }
        let open: BTreeSet<u32> = others.iter().map(|entry| entry.says.lobby).collect();
        let is_open = open.contains(&says.lobby) || ours.iter().any(|entry| is_in(entry));
        if !is_open && open.len() >= lobbies {
            return Some(Outcome::TooManyLobbies);
        }
        let is_full = others.iter().filter(|entry| is_from(entry)).count() >= per_address;
        (is_full && !ours.iter().any(|entry| is_from(entry))).then_some(Outcome::AddressFull)
    }

    fn unregister(&mut self, now: Instant, from: IpAddr, id: u128) -> Outcome {
        match self.find(id) {
            _ if from == ip("0.0.0.0") => Outcome::InvalidSource,
            _ if self.knobs.bans_network && from == ip(BANNED) => Outcome::Banned,
            None => Outcome::NotRegistered,
            Some(at) => {
                self.remove(at);
                self.unregistered.push((id, now + secs(3)));
                Outcome::Unregistered
            }
        }
    }

    /// A check is done. Endpoints that wait for it are settled; those that are listed may or may not have asked again, which
    /// `is_shown` tells.
    fn settle(&mut self, now: Instant, target: Target, is_good: bool, is_shown: impl Fn(Place) -> bool) {
        self.under_way.retain(|(known, _)| *known != target);
        let until = self.grid(now + if is_good { KEEP } else { RETRY });
        self.verdicts.retain(|(known, ..)| *known != target);
        self.verdicts.push((target, is_good, until));
        let (told, waiters) = std::mem::take(&mut self.waiters).into_iter().partition(|(known, ..)| *known == target);
        self.waiters = waiters;
        let told: Vec<(Target, u128, usize)> = told;
        for at in 0..self.entries.len() {
            for family in [0, 1] {
                if self.target(&self.entries[at], family) != Some(target) {
                    continue;
                }
                let Says { id, is_tcp, .. } = self.entries[at].says;
                let is_told = told.iter().any(|(_, waiter, _)| *waiter == id);
                let Some(endpoint) = &mut self.entries[at].endpoints[family] else { continue };
                endpoint.state = match endpoint.state {
                    State::Listed if is_good || is_shown((endpoint.outside.0, endpoint.outside.1, is_tcp)) => {
                        State::Listed
                    }
                    State::Listed => State::Unreachable,
                    _ if is_told && is_good => State::Listed,
                    _ if is_told => State::Unreachable,
                    state => state,
                };
            }
        }
    }

    fn timeout(&mut self, now: Instant, is_shown: impl Fn(Place) -> bool) {
        let reached = self.reached(now);
        while let Some(&(target, _)) = self.under_way.iter().find(|(_, overdue)| *overdue <= reached) {
            self.settle(now, target, false, &is_shown);
        }
        for at in (0..self.entries.len()).rev() {
            for endpoint in &mut self.entries[at].endpoints {
                *endpoint = endpoint.filter(|endpoint| endpoint.ends > reached);
            }
            if self.entries[at].endpoints.iter().all(Option::is_none) {
                self.remove(at);
            }
        }
    }

    fn set(&mut self, knobs: Knobs) {
        self.knobs = knobs;
        for at in (0..self.entries.len()).rev() {
            let entry = &mut self.entries[at];
            let is_from_banned = entry.endpoints.iter().flatten().any(|endpoint| endpoint.inside.0 == ip(BANNED));
            let is_banned = knobs.bans_network && is_from_banned || knobs.bans_name && entry.says.has_bad_name;
            for endpoint in &mut entry.endpoints {
                *endpoint = endpoint.filter(|endpoint| !knobs.is_private(endpoint.outside));
            }
            if is_banned || entry.endpoints.iter().all(Option::is_none) {
                self.remove(at);
            }
        }
    }

    fn restart(&mut self, now: Instant) {
        self.began = now;
        (self.waiters, self.under_way, self.verdicts, self.unregistered) = Default::default();
        self.outcomes = Default::default();
        let lease = secs(self.knobs.lease);
        for entry in &mut self.entries {
            for endpoint in &mut entry.endpoints {
                *endpoint = endpoint.filter(|endpoint| endpoint.state == State::Listed);
            }
        }
        self.entries.retain(|entry| entry.endpoints.iter().any(Option::is_some));
        for at in 0..self.entries.len() {
            for family in [0, 1] {
                let Some(Endpoint { ends, .. }) = self.entries[at].endpoints[family] else { continue };
                let left = Duration::from_millis(ends.saturating_duration_since(now).as_millis() as u64);
                let ends = self.grid(now + left.clamp(secs(35), lease.max(secs(35))));
                let endpoint = self.entries[at].endpoints[family].as_mut().unwrap();
                (endpoint.ends, endpoint.stale_since) = (ends, None);
            }
        }
    }

    /// What the list shows of an entry, if it is there.
    fn shown(&self, entry: &Entry) -> Option<String> {
        let listed = |family: usize| {
            entry.endpoints[family].filter(|endpoint| endpoint.state == State::Listed).map(|endpoint| endpoint.outside)
        };
        let endpoints: Vec<_> =
            [listed(1), listed(0)].into_iter().flatten().map(|at| SocketAddr::from(at).to_string()).collect();
        let Says { id, players, has_bad_name, .. } = entry.says;
        let name = if has_bad_name { BAD_NAME.to_owned() } else { format!("server {id}") };
        let query = entry.says.query.unwrap_or_default();
        let transport = entry.says.transport().as_str();
        (!endpoints.is_empty()).then(|| format!("{} {transport} {name} {players} {query}", endpoints.join(" ")))
    }

    fn list(&self, lobby: u32) -> Vec<String> {
        let entries = self.entries.iter().filter(|entry| entry.says.lobby == lobby);
        let mut list: Vec<_> = entries.filter_map(|entry| self.shown(entry)).collect();
        list.sort();
        list
    }
}

/// The registry and the model side by side.
struct Both {
    registry: Registry,
    model: Model,
    now: Instant,
}

impl Both {
    fn new() -> Self {
        let knobs = Knobs {
            lease: 70,
            allow_private: true,
            checks: true,
            is_exempt: false,
            is_mapped: false,
            bans_network: false,
            bans_name: false,
            has_small_caps: false,
        };
        let now = Instant::now();
        let model = Model {
            began: now,
            knobs,
            entries: Vec::new(),
            unregistered: Vec::new(),
            verdicts: Vec::new(),
            waiters: Vec::new(),
            under_way: Vec::new(),
            outcomes: Default::default(),
        };
        Self { registry: Registry::new(knobs.config(), SEED, now).unwrap(), model, now }
    }

    fn run(&mut self, op: &Op) {
        match *op {
            Op::Register { from, server } => {
                let outcome = self.send(SOURCES[from], &server.server().datagram());
                let expected = self.model.register(self.now, ip(SOURCES[from]), server);
                self.compare_outcome(outcome, expected);
            }
            Op::Unregister { from, id } => {
                let outcome = self.send(SOURCES[from], &unregister(id));
                let expected = self.model.unregister(self.now, ip(SOURCES[from]).to_canonical(), id);
                self.compare_outcome(outcome, expected);
            }
            Op::Wait(time) => self.wait(time),
            Op::Verdict { which, is_good } => {
                let under_way = &self.model.under_way;
                if let Some(&(target, _)) = under_way.get(which % under_way.len().max(1)) {
                    let verdict = if is_good { REACHABLE } else { Verdict::Unreachable };
                    self.registry.handle_check(self.now, target, verdict);
                    let shown = self.shown_places();
                    self.model.settle(self.now, target, is_good, |place| shown.contains(&place));
                }
            }
            Op::Set(knobs) => {
                self.registry.set_config(self.now, knobs.config()).unwrap();
                self.model.set(knobs);
            }
            Op::Restart => self.restart(),
        }
        self.take_checks();
        self.compare();
    }

    fn send(&mut self, from: &str, bytes: &[u8]) -> Outcome {
        self.registry.handle_datagram(self.now, SocketAddr::new(ip(from), 9), bytes)
    }

    fn compare_outcome(&mut self, outcome: Outcome, expected: Outcome) {
        assert_eq!(outcome, expected);
        self.model.outcomes[expected.index()] += 1;
        assert_eq!(self.registry.stats().outcomes, self.model.outcomes);
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.registry.poll_timeout().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.registry.handle_timeout(self.now);
            let reached = self.model.reached(self.now);
            let is_any_overdue = self.model.under_way.iter().any(|(_, overdue)| *overdue <= reached);
            let shown = if is_any_overdue { self.shown_places() } else { BTreeSet::new() };
            self.model.timeout(self.now, |place| shown.contains(&place));
            self.take_checks();
        }
        self.now = end;
    }

    fn restart(&mut self) {
        let mut saver = Saver::new();
        while !self.registry.save_some(self.now, &mut saver, 1) {}
        // In which order they come back is nobody's business, so all of them have to fit.
        self.model.knobs.has_small_caps = false;
        self.registry = Registry::new(self.model.knobs.config(), SEED, self.now).unwrap();
        self.registry.restore(self.now, &saver.finish()).unwrap();
        self.model.restart(self.now);
    }

    /// Which endpoints the list shows, as soon as it is published.
    fn shown_places(&mut self) -> BTreeSet<Place> {
        self.registry.publish(self.now);
        let lists = self.registry.lists().directory();
        let listings = lists.lobbies().flat_map(|(_, list)| list.listings());
        let places = |listing: &Arc<Listing>| {
            let is_tcp = listing.block().transport == Transport::Tcp;
            listing.block().endpoints().map(move |at| (at.ip(), at.port(), is_tcp))
        };
        listings.flat_map(places).collect()
    }

    /// The checks that the registry wants are those that somebody waits for, and those of listed servers whose verdict is
    /// too old.
    fn take_checks(&mut self) {
        let mut targets = BTreeSet::new();
        while let Some(event) = self.registry.poll_event() {
            if let Event::Check(request) = event {
                let Target { addr, kind } = request.target;
                assert!(targets.insert((addr, kind as u8)), "one check per target");
                let model = &self.model;
                assert!(model.under_way.iter().all(|(known, _)| *known != request.target), "one check per target");
                assert_eq!(model.verdict(self.now, request.target), None, "the verdict is known");
                let wants = |entry: &Entry, family| model.target(entry, family) == Some(request.target);
                assert!(model.entries.iter().any(|entry| wants(entry, 0) || wants(entry, 1)), "nobody's {request:?}");
                let overdue = model.reached(self.now) + OVERDUE;
                self.model.under_way.push((request.target, overdue));
            }
        }
        for (target, id, family) in &self.model.waiters {
            let is_under_way = self.model.under_way.iter().any(|(known, _)| known == target);
            let entry = self.model.entries.iter().find(|entry| entry.says.id == *id).unwrap();
            let is_wanted = self.model.target(entry, *family) == Some(*target);
            assert!(is_under_way || !is_wanted, "{target:?} is waited for and not checked");
        }
        self.expect_renewals();
    }

    /// Whoever is listed under a verdict that is too old is checked again within a lease.
    fn expect_renewals(&mut self) {
        let model = &mut self.model;
        for at in 0..model.entries.len() {
            for family in [0, 1] {
                let target = model.target(&model.entries[at], family);
                let is_fresh = target.is_none_or(|target| {
                    model.verdict(self.now, target).is_some()
                        || model.under_way.iter().any(|(known, _)| *known == target)
                });
                let Some(endpoint) = &mut model.entries[at].endpoints[family] else { continue };
                let is_stale = endpoint.state == State::Listed && !is_fresh;
                endpoint.stale_since = is_stale.then(|| endpoint.stale_since.unwrap_or(self.now));
                let waits = endpoint.stale_since.map_or(Duration::ZERO, |since| self.now - since);
                assert!(waits <= secs(129), "{target:?} has not been checked again for {waits:?}");
            }
        }
    }

    fn compare(&mut self) {
        self.registry.check_invariants();
        self.registry.publish(self.now);
        let stats = self.registry.stats();
        let mut listed = 0;
        for lobby in 0..4 {
            let list = self.model.list(lobby);
            listed += list.len();
            assert_eq!(published_lines(&self.registry, support::lobby(lobby)), list, "lobby {lobby}");
        }
        let lobbies: BTreeSet<u32> = self.model.entries.iter().map(|entry| entry.says.lobby).collect();
        assert_eq!(stats.registered, self.model.entries.len());
        assert_eq!((stats.listed, stats.lobbies), (listed, lobbies.len()));
    }
}

fn published_lines(registry: &Registry, lobby: LobbyId) -> Vec<String> {
    published(registry, lobby);
    let list = registry.lists().lobby(&lobby);
    let show = |listing: &Arc<Listing>| {
        let block = listing.block();
        let query = String::from_utf8_lossy(block.table.get(b"x-query").unwrap_or_default());
        format!("{} {} {query}", line(listing), block.occupancy.players)
    };
    let mut lines: Vec<_> = list.listings().map(show).collect();
    lines.sort();
    lines
}

fn says() -> impl Strategy<Value = Says> {
    let bad_name = prop::bool::weighted(0.05);
    let query = prop::sample::select(QUERIES.to_vec());
    (0u128..5, 0u32..4, any::<bool>(), 1u16..4, 0u16..2, query, bad_name).prop_map(
        |(id, lobby, is_tcp, port, players, query, has_bad_name)| {
            // Often the same, so that there are refreshes.
            let lobby = lobby.saturating_sub(1);
            Says { id, lobby, is_tcp, port, players, query, has_bad_name }
        },
    )
}

fn knobs() -> impl Strategy<Value = Knobs> {
    let rarely = || prop::bool::weighted(0.2);
    let lease = prop::sample::select(vec![1, 10, 70, 70, 300]);
    (
        lease,
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.8),
        any::<bool>(),
        any::<bool>(),
        rarely(),
        rarely(),
        any::<bool>(),
    )
        .prop_map(
            |(lease, allow_private, checks, is_exempt, is_mapped, bans_network, bans_name, has_small_caps)| Knobs {
                lease,
                allow_private,
                checks,
                is_exempt,
                is_mapped,
                bans_network,
                bans_name,
                has_small_caps,
            },
        )
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        50 => (0..SOURCES.len(), says()).prop_map(|(from, server)| Op::Register { from, server }),
        5 => (0..SOURCES.len(), 0u128..5).prop_map(|(from, id)| Op::Unregister { from, id }),
        15 => (0u64..4_000).prop_map(|time| Op::Wait(ms(time))),
        5 => (0u64..100).prop_map(|time| Op::Wait(secs(time))),
        2 => (0u64..1_000_000_000).prop_map(|time| Op::Wait(Duration::from_nanos(time))),
        15 => (0usize..4, any::<bool>()).prop_map(|(which, is_good)| Op::Verdict { which, is_good }),
        3 => knobs().prop_map(Op::Set),
        1 => Just(Op::Restart),
    ]
}

/// Scripts in which the same registrations come again and again, as they do in life.
fn script() -> impl Strategy<Value = Vec<Op>> {
    let repeated = proptest::collection::vec((0..SOURCES.len(), says()), 1..6);
    (repeated, proptest::collection::vec((op(), any::<prop::sample::Index>(), 0u8..3), 1..150)).prop_map(
        |(repeated, ops)| {
            let pick = |(op, which, chance): (Op, prop::sample::Index, u8)| match op {
                Op::Register { .. } if chance > 0 => {
                    let (from, server) = repeated[which.index(repeated.len())];
                    Op::Register { from, server }
                }
                op => op,
            };
            ops.into_iter().map(pick).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn l8_to_l12_the_registry_does_what_the_naive_model_does(script in script()) {
        let mut both = Both::new();
        script.iter().for_each(|op| both.run(op));
    }
}
