//! The table compared with the registry, and with a subscriber that only receives changes.

use super::*;
use crate::verify::Verification;
use proptest::prelude::*;
use rallypoint_lobby_proto::{Config, HashKeys, Registry};
use rallypoint_wire::lobby::{Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};

/// Start of all tests, in seconds since 1970.
const START: u64 = 1_800_000_000;

/// A registry, its table, and a subscriber of the table.
struct Fixture {
    now: Instant,
    registry: Registry,
    table: ServerTable,
    /// The state of a subscriber that has applied every change, and nothing else.
    received: BTreeMap<PublicId, Arc<ServerRecord>>,
}

impl Fixture {
    fn new() -> Self {
        Self::with_scope(TableScope::All)
    }

    fn with_scope(scope: TableScope) -> Self {
        let now = Instant::now();
        let registry = Registry::new(Config::default(), HashKeys::default(), now).unwrap();
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(START);
        let table = ServerTable::new(now, WallClock::new(now, wall), scope);
        Self { now, registry, table, received: BTreeMap::new() }
    }

    fn register(&mut self, number: u8, list: u8, name: &str, players: u16) {
        self.register_with(number, list, &[("name", name)], players);
    }

    fn register_with(&mut self, number: u8, list: u8, entries: &[(&str, &str)], players: u16) {
        let mut table = TableBuf::new();
        for (key, value) in entries {
            table.push(key.as_bytes(), value.as_bytes()).unwrap();
        }
        let id = ServerId::from_bytes([number; 16]);
        let list = ListId::from_bytes([list; 16]);
        let occupancy = Occupancy { players, bots: 1, slots: 20, password: false };
        let port = (1_000 + u16::from(number)).try_into().unwrap();
        let mut datagram = Vec::new();
        Registration::new(id, list, Transport::Udp, port, occupancy, table.as_table()).unwrap().emit(&mut datagram);
        self.registry.handle_datagram(self.now, ([192, 0, 2, number], 5_000).into(), &datagram);
    }

    fn unregister(&mut self, number: u8) {
        let mut datagram = Vec::new();
        Unregister { server_id: ServerId::from_bytes([number; 16]) }.emit(&mut datagram);
        self.registry.handle_datagram(self.now, ([192, 0, 2, number], 5_000).into(), &datagram);
    }

    /// Passes events on to the table, or loses them and lets it read the whole list.
    fn pass_events(&mut self, are_lost: bool) {
        while let Some(event) = self.registry.poll_event() {
            if !are_lost && self.table.is_relevant(&event) {
                self.table.handle_event(&event);
            }
        }
        if are_lost {
            self.registry.publish(self.now);
            self.table.handle_list(&self.registry.lists().snapshot());
        }
    }

    fn wait(&mut self, time: Duration) -> Option<TableUpdate> {
        self.now += time;
        self.registry.handle_timeout(self.now);
        self.pass_events(false);
        let before = Arc::clone(self.table.published());
        let update = self.table.handle_timeout(self.now)?;
        assert!(update.snapshot.version() > before.version());
        let mut computed = by_id(&before);
        apply(&mut computed, &update.snapshot.changes_since(&before));
        assert!(is_same(&computed, &by_id(&update.snapshot)), "changes can be computed from the snapshots");
        apply(&mut self.received, &update.changes);
        Some(update)
    }

    /// Checks that registry, table and subscriber agree.
    fn check(&mut self) {
        self.wait(PUBLISH_INTERVAL);
        self.registry.publish(self.now);
        let lists = self.registry.lists().snapshot();
        let snapshot = Arc::clone(self.table.published());
        let listed: BTreeMap<_, _> =
            lists.lists().flat_map(|(_, list)| list.servers()).map(|listing| (listing.public_id(), listing)).collect();
        let in_table: Vec<_> = snapshot.records().map(|record| record.id).collect();
        assert_eq!(in_table, listed.keys().copied().collect::<Vec<_>>(), "sorted by ID");
        let mut lists: BTreeMap<ListId, Totals> = BTreeMap::new();
        for record in snapshot.records() {
            assert!(record.displays_like(&ServerRecord::new(listed[&record.id], &self.table.clock)));
            assert!(Arc::ptr_eq(snapshot.record(record.id).unwrap(), record));
            lists.entry(record.list).or_default().add(record);
        }
        assert_eq!(*snapshot.lists(), lists);
        assert_eq!(snapshot.totals().players, lists.values().map(|totals| totals.players).sum::<u64>());
        assert_eq!(snapshot.len(), listed.len());
        assert!(is_same(&self.received, &by_id(&snapshot)), "a subscriber knows the same as a reader");
    }
}

fn by_id(snapshot: &TableSnapshot) -> BTreeMap<PublicId, Arc<ServerRecord>> {
    snapshot.records().map(|record| (record.id, Arc::clone(record))).collect()
}

/// Applies changes as a subscriber does.
fn apply(servers: &mut BTreeMap<PublicId, Arc<ServerRecord>>, changes: &[TableChange]) {
    for change in changes {
        let record = Arc::clone(change.record());
        match change {
            TableChange::Listed(_) => assert!(servers.insert(record.id, record).is_none(), "it was not listed"),
            TableChange::Changed(_) => assert!(servers.insert(record.id, record).is_some(), "it was listed"),
            TableChange::Unlisted(..) => assert!(servers.remove(&record.id).is_some(), "it was listed"),
        }
    }
}

fn is_same(one: &BTreeMap<PublicId, Arc<ServerRecord>>, other: &BTreeMap<PublicId, Arc<ServerRecord>>) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|((_, one), (_, other))| one.displays_like(other))
}

#[derive(Clone, Debug)]
enum Step {
    Register { number: u8, list: u8, name: String, players: u16 },
    Unregister(u8),
    Wait(u64),
    LoseEvents,
    Check,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..12u8, 0..3u8, "[ab]{0,2}", 0..4u16)
            .prop_map(|(number, list, name, players)| Step::Register { number, list, name, players }),
        2 => (0..12u8).prop_map(Step::Unregister),
        2 => (0..300u64).prop_map(Step::Wait),
        1 => (30_000..80_000u64).prop_map(Step::Wait),
        1 => Just(Step::LoseEvents),
        1 => Just(Step::Check),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn readers_and_subscribers_know_what_the_registry_knows(steps in steps()) {
        let mut fixture = Fixture::new();
        for step in steps {
            match step {
                Step::Register { number, list, name, players } => fixture.register(number, list, &name, players),
                Step::Unregister(number) => fixture.unregister(number),
                Step::Wait(ms) => drop(fixture.wait(Duration::from_millis(ms))),
                Step::LoseEvents => fixture.pass_events(true),
                Step::Check => fixture.check(),
            }
        }
        fixture.check();
    }
}

#[test]
fn many_events_of_a_server_are_one_change() {
    let mut fixture = Fixture::new();
    fixture.register(1, 1, "first", 0);
    fixture.wait(PUBLISH_INTERVAL);
    for players in 0..50 {
        fixture.register(1, 1, "a name", players);
    }
    fixture.register(2, 1, "comes and goes", 0);
    fixture.unregister(2);
    let update = fixture.wait(PUBLISH_INTERVAL).unwrap();
    assert_eq!(update.changes.len(), 1);
}

#[test]
fn snapshots_are_at_least_a_tenth_of_a_second_apart() {
    let mut fixture = Fixture::new();
    fixture.register(1, 1, "a", 0);
    assert!(fixture.wait(Duration::ZERO).is_some(), "the first change is published at once");
    fixture.register(1, 1, "b", 0);
    assert!(fixture.wait(PUBLISH_INTERVAL / 2).is_none());
    assert_eq!(fixture.table.poll_timeout(), fixture.now + PUBLISH_INTERVAL / 2);
    assert!(fixture.wait(PUBLISH_INTERVAL / 2).is_some());
    assert!(fixture.wait(PUBLISH_INTERVAL).is_none(), "nothing has changed");
}

#[test]
fn a_verification_result_outlives_the_next_registration_and_is_dropped_with_the_server() {
    let mut fixture = Fixture::new();
    fixture.register(1, 1, "a", 0);
    let id = fixture.wait(PUBLISH_INTERVAL).unwrap().snapshot.records().next().unwrap().id;
    fixture.table.handle_verification(VerificationResult::new(id, Verification::Differs));
    let update = fixture.wait(PUBLISH_INTERVAL).unwrap();
    assert_eq!(update.snapshot.record(id).unwrap().verification, Verification::Differs);
    assert_eq!(update.changes.len(), 1, "the verification is a change");
    let verification = |update: Option<TableUpdate>| update.unwrap().snapshot.record(id).unwrap().verification;
    fixture.register(1, 1, "b", 0);
    assert_eq!(verification(fixture.wait(PUBLISH_INTERVAL)), Verification::Differs);
    fixture.unregister(1);
    fixture.wait(Duration::from_secs(10));
    fixture.register(1, 1, "b", 0);
    assert_eq!(verification(fixture.wait(PUBLISH_INTERVAL)), Verification::NotProbed);
    assert_eq!(fixture.table.results.len(), 0);
}

#[test]
fn a_server_that_moves_leaves_its_list_before_it_is_listed_in_another() {
    let mut fixture = Fixture::new();
    fixture.register(1, 9, "moves", 0);
    fixture.wait(PUBLISH_INTERVAL);
    fixture.register(1, 1, "moves", 0);
    let changes = fixture.wait(PUBLISH_INTERVAL).unwrap().changes;
    let [TableChange::Unlisted(before, UnlistReason::Moved), TableChange::Listed(after)] = &changes[..] else {
        panic!("{changes:?}");
    };
    assert_eq!((before.list, after.list), (ListId::from_bytes([9; 16]), ListId::from_bytes([1; 16])));
}

#[test]
fn an_early_result_is_applied_when_the_server_is_listed() {
    let mut fixture = Fixture::new();
    fixture.register(1, 1, "a", 0);
    fixture.registry.publish(fixture.now);
    let lists = fixture.registry.lists().snapshot();
    let id = lists.lists().flat_map(|(_, list)| list.servers()).next().unwrap().public_id();
    fixture.table.handle_verification(VerificationResult::new(id, Verification::Verified));
    let update = fixture.wait(PUBLISH_INTERVAL).unwrap();
    assert_eq!(update.snapshot.record(id).unwrap().verification, Verification::Verified);
    assert!(matches!(&update.changes[..], [TableChange::Listed(record)] if record.id == id));
}

#[test]
fn latency_and_wall_clock_are_refreshed_once_a_minute() {
    let mut fixture = Fixture::new();
    fixture.register(1, 1, "one", 3);
    fixture.check();
    let record = |fixture: &Fixture| Arc::clone(fixture.table.published().records().next().unwrap());
    let wait_a_minute = |fixture: &mut Fixture| {
        for _ in 0..=ShardIndex::COUNT {
            // It registers again, so that its lease does not expire.
            fixture.register(1, 1, "one", 3);
            assert!(fixture.wait(REFRESH_INTERVAL).is_none_or(|update| update.changes.is_empty()));
        }
    };
    let before = record(&fixture);
    wait_a_minute(&mut fixture);
    assert!(Arc::ptr_eq(&before, &record(&fixture)), "nothing has changed");
    let listing = before.listing.as_ref().unwrap();
    listing.set_latency(Duration::from_millis(23));
    wait_a_minute(&mut fixture);
    assert_eq!(record(&fixture).latency, Some(Duration::from_millis(23)));
    // The clock is set by a little, then by much.
    for (offset, since) in [(3, START), (1_000_000, START + 1_000_000)] {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(START + offset) + (fixture.now - listing.since());
        fixture.table.handle_wall_clock(fixture.now, wall);
        wait_a_minute(&mut fixture);
        assert_eq!(record(&fixture).since, since);
    }
}

#[test]
fn a_table_of_verifiable_servers_contains_no_others() {
    let mut fixture = Fixture::with_scope(TableScope::Verifiable);
    // A protocol that the registry does not know, so that it lists the server without a check.
    let verifiable = [("name", "a"), ("x-query", "other")];
    fixture.register(1, 1, "not verifiable", 0);
    fixture.register_with(2, 1, &verifiable, 0);
    let names = |fixture: &Fixture| {
        fixture.table.published().records().map(|record| record.name.to_string()).collect::<Vec<_>>()
    };
    fixture.wait(PUBLISH_INTERVAL);
    assert_eq!(names(&fixture), ["a"]);
    fixture.register(2, 1, "a", 0);
    fixture.wait(PUBLISH_INTERVAL);
    assert!(names(&fixture).is_empty(), "it does not state any more how to query it");
    fixture.register_with(2, 1, &verifiable, 0);
    fixture.wait(PUBLISH_INTERVAL);
    fixture.unregister(2);
    fixture.wait(Duration::from_secs(10));
    assert!(names(&fixture).is_empty());
    fixture.register_with(3, 1, &verifiable, 0);
    fixture.pass_events(true);
    fixture.wait(PUBLISH_INTERVAL);
    assert_eq!(names(&fixture), ["a"], "the whole list is filtered, too");
}
