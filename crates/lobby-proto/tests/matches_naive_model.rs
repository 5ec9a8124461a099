//! The registry against a naive model of the rulings, on random scripts.
//!
//! The model keeps everything in plain vectors and scans all of them every time. It implements the rulings and the one
//! inexactness that the registry is allowed: leases and check results end on a grid of 250 ms.

use crate::naive;
use crate::support;
use naive::*;
use proptest::prelude::*;
use rallypoint_lobby_proto::{CheckResult, Event, ListedServer, RegistrationOutcome, Registry, SaveFileWriter};
use rallypoint_wire::lobby::{ListId, Transport};
use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use support::*;

/// One operation.
#[derive(Clone, Debug)]
enum Op {
    Register {
        from: usize,
        server: RegistrationData,
    },
    Unregister {
        from: usize,
        id: u128,
    },
    Wait(Duration),
    /// The oldest requested check, or a later one, is done.
    CheckResult {
        which: usize,
        is_good: bool,
    },
    Set(Settings),
    Restart,
}

/// The registry and the model side by side.
struct Both {
    registry: Registry,
    model: Model,
    now: Instant,
}

impl Both {
    fn new() -> Self {
        let settings = Settings {
            lease: 70,
            allow_private: true,
            checks: true,
            is_exempt: false,
            is_mapped: false,
            bans_network: false,
            bans_name: false,
            bans_server: false,
        };
        let now = Instant::now();
        let model = Model {
            began: now,
            settings,
            entries: Vec::new(),
            unregistered: Vec::new(),
            check_results: Vec::new(),
            waiters: Vec::new(),
            reserved: Vec::new(),
            under_way: Vec::new(),
            outcomes: Default::default(),
        };
        Self { registry: Registry::new(settings.config(), KEYS, now).unwrap(), model, now }
    }

    fn run(&mut self, op: &Op) {
        let mapped = self.model.mapped();
        match *op {
            Op::Register { from, server } => {
                let proven: Vec<_> = (0..5).filter(|&id| self.registry.is_proven(udp(id).server_id())).collect();
                let kept: Vec<_> = (0..5).filter(|&id| self.registry.is_kept(udp(id).server_id())).collect();
                let outcome = self.send(SOURCES[from], &server.server().datagram());
                let is_proven = |id| proven.contains(&id);
                let is_kept = |id| kept.contains(&id);
                let expected = self.model.register(self.now, ip(SOURCES[from]), server, is_proven, is_kept);
                self.compare_outcome(outcome, expected);
            }
            Op::Unregister { from, id } => {
                let outcome = self.send(SOURCES[from], &unregister(id));
                let expected = self.model.unregister(self.now, ip(SOURCES[from]).to_canonical(), id);
                self.compare_outcome(outcome, expected);
            }
            Op::Wait(time) => self.wait(time),
            Op::CheckResult { which, is_good } => {
                let under_way = &self.model.under_way;
                if let Some(&(target, _)) = under_way.get(which % under_way.len().max(1)) {
                    let check_result = if is_good { REACHABLE } else { CheckResult::Unreachable };
                    self.registry.handle_check(self.now, target, check_result);
                    let shown = self.shown_places();
                    self.model.settle(self.now, target, is_good, |place| shown.contains(&place));
                }
            }
            Op::Set(settings) => {
                self.registry.set_config(self.now, settings.config()).unwrap();
                self.model.set(self.now, settings);
            }
            Op::Restart => self.restart(),
        }
        if !matches!(op, Op::Restart) {
            self.model.reserve_left(self.now, mapped);
        }
        self.take_checks();
        self.compare();
    }

    fn send(&mut self, from: &str, bytes: &[u8]) -> RegistrationOutcome {
        self.registry.handle_datagram(self.now, SocketAddr::new(ip(from), 9), bytes)
    }

    fn compare_outcome(&mut self, outcome: RegistrationOutcome, expected: RegistrationOutcome) {
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
            assert_eq!(self.registry.stats().registered, self.model.entries.len(), "leases that ended");
            self.take_checks();
        }
        self.now = end;
    }

    fn restart(&mut self) {
        let mut saver = SaveFileWriter::new();
        while !self.registry.save_next(self.now, &mut saver, 1) {}
        self.registry = Registry::new(self.model.settings.config(), KEYS, self.now).unwrap();
        self.registry.restore(self.now, &saver.finish()).unwrap();
        self.model.restart(self.now);
    }

    /// The endpoints that the list shows after it is published.
    fn shown_places(&mut self) -> BTreeSet<ListedEndpoint> {
        self.registry.publish(self.now);
        let lists = self.registry.lists().snapshot();
        let listings = lists.lists().flat_map(|(_, list)| list.servers());
        let places = |listing: &Arc<ListedServer>| {
            let is_tcp = listing.block().transport == Transport::Tcp;
            let query = String::from_utf8_lossy(listing.block().table.get(b"x-query").unwrap_or_default()).into_owned();
            listing.block().endpoints().map(move |at| (at.ip(), at.port(), is_tcp, query.clone()))
        };
        listings.flat_map(places).collect()
    }

    /// The registry requests the checks that entries wait for, and those of listed servers whose result is outdated.
    fn take_checks(&mut self) {
        let mut targets = std::collections::HashSet::new();
        while let Some(event) = self.registry.poll_event() {
            if let Event::Check(request) = event {
                assert!(targets.insert(request.target), "one check per target");
                let model = &self.model;
                assert!(model.under_way.iter().all(|(known, _)| *known != request.target), "one check per target");
                assert_eq!(model.check_result(self.now, request.target), None, "the result is known");
                let wants = |entry: &Entry, family| model.target(entry, family) == Some(request.target);
                assert!(
                    model.entries.iter().any(|entry| wants(entry, 0) || wants(entry, 1)),
                    "no entry waits for {request:?}"
                );
                let overdue = model.reached(self.now) + OVERDUE;
                self.model.under_way.push((request.target, overdue));
            }
        }
        for (target, id, family) in &self.model.waiters {
            let is_under_way = self.model.under_way.iter().any(|(known, _)| known == target);
            let entry = self.model.entries.iter().find(|entry| entry.data.id == *id).unwrap();
            let is_wanted = self.model.target(entry, *family) == Some(*target);
            assert!(is_under_way || !is_wanted, "{target:?} is waited for and not checked");
        }
        self.expect_renewals();
    }

    /// A listed server whose result is outdated is checked again within a lease.
    fn expect_renewals(&mut self) {
        let model = &mut self.model;
        for at in 0..model.entries.len() {
            for family in [0, 1] {
                let target = model.target(&model.entries[at], family);
                let is_fresh = target.is_none_or(|target| {
                    model.check_result(self.now, target).is_some()
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
        let lobbies: BTreeSet<u32> = self.model.entries.iter().map(|entry| entry.data.lobby).collect();
        assert_eq!(stats.registered, self.model.entries.len());
        assert_eq!((stats.listed, stats.lists), (listed, lobbies.len()));
    }
}

fn published_lines(registry: &Registry, lobby: ListId) -> Vec<String> {
    published(registry, lobby);
    let list = registry.lists().list(&lobby);
    let show = |listing: &Arc<ListedServer>| {
        let block = listing.block();
        let query = String::from_utf8_lossy(block.table.get(b"x-query").unwrap_or_default());
        format!("{} {} {query}", line(listing), block.occupancy.players)
    };
    let mut lines: Vec<_> = list.servers().map(show).collect();
    lines.sort();
    lines
}

fn registration() -> impl Strategy<Value = RegistrationData> {
    let bad_name = prop::bool::weighted(0.05);
    let query = prop::sample::select(QUERIES.to_vec());
    (0u128..5, 0u32..4, any::<bool>(), 1u16..4, 0u16..2, query, bad_name).prop_map(
        |(id, lobby, is_tcp, port, players, query, has_bad_name)| {
            // Often the same data, so that there are refreshes.
            let lobby = lobby.saturating_sub(1);
            RegistrationData { id, lobby, is_tcp, port, players, query, has_bad_name }
        },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let rarely = || prop::bool::weighted(0.2);
    let lease = prop::sample::select(vec![1, 10, 70, 70, 300]);
    (
        lease,
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.8),
        any::<bool>(),
        any::<bool>(),
        (rarely(), rarely(), rarely()),
    )
        .prop_map(|(lease, allow_private, checks, is_exempt, is_mapped, bans)| Settings {
            lease,
            allow_private,
            checks,
            is_exempt,
            is_mapped,
            bans_network: bans.0,
            bans_name: bans.1,
            bans_server: bans.2,
        })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        50 => (0..SOURCES.len(), registration()).prop_map(|(from, server)| Op::Register { from, server }),
        5 => (0..SOURCES.len(), 0u128..5).prop_map(|(from, id)| Op::Unregister { from, id }),
        15 => (0u64..4_000).prop_map(|time| Op::Wait(ms(time))),
        5 => (0u64..100).prop_map(|time| Op::Wait(secs(time))),
        2 => (0u64..1_000_000_000).prop_map(|time| Op::Wait(Duration::from_nanos(time))),
        15 => (0usize..4, any::<bool>()).prop_map(|(which, is_good)| Op::CheckResult { which, is_good }),
        3 => settings().prop_map(Op::Set),
        1 => Just(Op::Restart),
    ]
}

/// Scripts in which the same registrations are repeated, as in reality.
fn script() -> impl Strategy<Value = Vec<Op>> {
    let repeated = proptest::collection::vec((0..SOURCES.len(), registration()), 1..6);
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
    #[test]
    fn l8_to_l12_the_registry_agrees_with_the_naive_model(script in script()) {
        let mut both = Both::new();
        script.iter().for_each(|op| both.run(op));
    }
}
