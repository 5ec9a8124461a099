//! The book against the registry itself, and against somebody who only hears the events.

use super::*;
use proptest::prelude::*;
use rallypoint_lobby_proto::{Config, HashKeys, Registry};
use rallypoint_wire::lobby::{Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};
use serde_json::Value;

/// When all of this begins, in seconds since 1970.
const START: u64 = 1_800_000_000;

/// A registry and the book of it.
struct Pair {
    now: Instant,
    registry: Registry,
    book: Book,
    /// What a listener knows: it has heard every batch, and nothing else.
    heard: BTreeMap<String, Value>,
    last: Cursor,
}

impl Pair {
    fn new() -> Self {
        let now = Instant::now();
        let registry = Registry::new(Config::default(), HashKeys::default(), now).unwrap();
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(START);
        let book = Book::new(now, Calendar::new(now, wall), 7);
        let last = book.published().cursor();
        Self { now, registry, book, heard: BTreeMap::new(), last }
    }

    fn register(&mut self, number: u8, lobby: u8, name: &str, players: u16) {
        let mut table = TableBuf::new();
        table.push(b"name", name.as_bytes()).unwrap();
        let (id, lobby) = (ServerId::from_bytes([number; 16]), LobbyId::from_bytes([lobby; 16]));
        let occupancy = Occupancy { players, bots: 1, slots: 20, password: false };
        let port = (1_000 + u16::from(number)).try_into().unwrap();
        let mut datagram = Vec::new();
        Registration::new(id, lobby, Transport::Udp, port, occupancy, table.as_table()).unwrap().emit(&mut datagram);
        self.registry.handle_datagram(self.now, ([192, 0, 2, number], 5_000).into(), &datagram);
    }

    fn unregister(&mut self, number: u8) {
        let mut datagram = Vec::new();
        Unregister { server_id: ServerId::from_bytes([number; 16]) }.emit(&mut datagram);
        self.registry.handle_datagram(self.now, ([192, 0, 2, number], 5_000).into(), &datagram);
    }

    /// What happened is passed on, or some of it is lost and the list is read again.
    fn pass_on(&mut self, is_lost: bool) {
        while let Some(event) = self.registry.poll_event() {
            if !is_lost {
                self.book.handle_event(&event);
            }
        }
        if is_lost {
            self.registry.publish(self.now);
            self.book.handle_directory(&self.registry.lists().snapshot());
        }
    }

    fn wait(&mut self, time: Duration) -> Option<Published> {
        self.now += time;
        self.registry.handle_timeout(self.now);
        self.pass_on(false);
        let published = self.book.handle_timeout(self.now)?;
        if let Some(batch) = &published.batch {
            assert_eq!(batch.before(), self.last, "no number is left out");
            self.last = batch.last();
            assert_eq!(batch.last(), published.snapshot.cursor());
            self.hear(&batch.after(0, None).concat());
        }
        Some(published)
    }

    fn hear(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap();
        for event in text.split("\n\n").filter(|event| !event.is_empty()) {
            let [_, name, data] = event.lines().collect::<Vec<_>>()[..] else { panic!("{event}") };
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            let id = data["id"].as_str().unwrap().to_owned();
            match name {
                "event: listed" => assert_eq!(self.heard.insert(id, data), None, "it was not there"),
                "event: changed" => assert!(self.heard.insert(id, data).is_some(), "it was there"),
                "event: unlisted" => assert!(self.heard.remove(&id).is_some(), "it was there"),
                _ => panic!("{name}"),
            }
        }
    }

    /// All three know the same.
    fn check(&mut self) {
        self.wait(PUBLISH_EVERY);
        self.registry.publish(self.now);
        let directory = self.registry.lists().snapshot();
        let snapshot = Arc::clone(self.book.published());
        let listed: BTreeMap<_, _> = directory
            .lobbies()
            .flat_map(|(_, list)| list.servers())
            .map(|listing| (listing.public_id(), listing))
            .collect();
        let shown: Vec<_> = snapshot.rows().map(|row| row.id).collect();
        assert_eq!(shown, listed.keys().copied().collect::<Vec<_>>(), "in the order of IDs");
        let mut lobbies: BTreeMap<LobbyId, Totals> = BTreeMap::new();
        for row in snapshot.rows() {
            assert_eq!(row.json(), Row::of(listed[&row.id], &self.book.calendar).json());
            assert!(Arc::ptr_eq(snapshot.row(row.id).unwrap(), row));
            lobbies.entry(row.lobby).or_default().add(row);
        }
        assert_eq!(*snapshot.lobbies(), lobbies);
        assert_eq!(snapshot.totals().players, lobbies.values().map(|totals| totals.players).sum::<u64>());
        assert_eq!(snapshot.len(), listed.len());
        let told: Vec<Value> = snapshot.rows().map(|row| serde_json::from_slice(row.json()).unwrap()).collect();
        assert_eq!(self.heard.values().cloned().collect::<Vec<_>>(), told, "who listens knows the same as who reads");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Register { number: u8, lobby: u8, name: String, players: u16 },
    Unregister(u8),
    Wait(u64),
    Lose,
    Check,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..12u8, 0..3u8, "[ab]{0,2}", 0..4u16)
            .prop_map(|(number, lobby, name, players)| Step::Register { number, lobby, name, players }),
        2 => (0..12u8).prop_map(Step::Unregister),
        2 => (0..300u64).prop_map(Step::Wait),
        1 => (30_000..80_000u64).prop_map(Step::Wait),
        1 => Just(Step::Lose),
        1 => Just(Step::Check),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn readers_and_listeners_know_what_the_registry_knows(steps in steps()) {
        let mut pair = Pair::new();
        for step in steps {
            match step {
                Step::Register { number, lobby, name, players } => pair.register(number, lobby, &name, players),
                Step::Unregister(number) => pair.unregister(number),
                Step::Wait(ms) => drop(pair.wait(Duration::from_millis(ms))),
                Step::Lose => pair.pass_on(true),
                Step::Check => pair.check(),
            }
        }
        pair.check();
    }
}

#[test]
fn many_changes_are_one_event() {
    let mut pair = Pair::new();
    pair.register(1, 1, "first", 0);
    pair.wait(PUBLISH_EVERY);
    for players in 0..50 {
        pair.register(1, 1, "a name", players);
    }
    pair.register(2, 1, "comes and goes", 0);
    pair.unregister(2);
    let published = pair.wait(PUBLISH_EVERY).unwrap();
    assert_eq!(published.batch.unwrap().len(), 1);
}

#[test]
fn snapshots_are_a_tenth_of_a_second_apart() {
    let mut pair = Pair::new();
    pair.register(1, 1, "a", 0);
    assert!(pair.wait(Duration::ZERO).is_some(), "the first change is told at once");
    pair.register(1, 1, "b", 0);
    assert!(pair.wait(PUBLISH_EVERY / 2).is_none());
    assert_eq!(pair.book.poll_timeout(), pair.now + PUBLISH_EVERY / 2);
    assert!(pair.wait(PUBLISH_EVERY / 2).is_some());
    assert!(pair.wait(PUBLISH_EVERY).is_none(), "nothing has happened");
}

#[test]
fn what_a_server_says_outlives_its_next_registration_and_ends_with_it() {
    let mut pair = Pair::new();
    pair.register(1, 1, "a", 0);
    let id = pair.wait(PUBLISH_EVERY).unwrap().snapshot.rows().next().unwrap().id;
    pair.book.handle_told(Told::new(id, Verified::Differs));
    let published = pair.wait(PUBLISH_EVERY).unwrap();
    assert_eq!(published.snapshot.row(id).unwrap().verified, Verified::Differs);
    assert_eq!(published.batch.unwrap().len(), 1, "the verdict is an event");
    pair.register(1, 1, "b", 0);
    assert_eq!(pair.wait(PUBLISH_EVERY).unwrap().snapshot.row(id).unwrap().verified, Verified::Differs);
    pair.unregister(1);
    pair.wait(Duration::from_secs(10));
    pair.register(1, 1, "b", 0);
    assert_eq!(pair.wait(PUBLISH_EVERY).unwrap().snapshot.row(id).unwrap().verified, Verified::Unasked);
    assert!(pair.book.told.is_empty());
}

#[test]
fn whoever_moves_is_gone_before_it_comes() {
    let mut pair = Pair::new();
    pair.register(1, 9, "moves", 0);
    pair.register(2, 1, "stays", 0);
    pair.wait(PUBLISH_EVERY);
    pair.register(1, 1, "moves", 0);
    pair.register(2, 1, "changes", 0);
    // Who listens to it all checks the order.
    let batch = pair.wait(PUBLISH_EVERY).unwrap().batch.unwrap();
    let of = |number: u8| String::from_utf8(batch.after(0, Some(LobbyId::from_bytes([number; 16]))).concat()).unwrap();
    assert!(of(9).contains("event: unlisted") && of(9).contains("\"why\":\"moved\""), "{}", of(9));
    assert!(of(1).contains("event: listed") && of(1).contains("event: changed"), "{}", of(1));
}

#[test]
fn one_lobby_is_a_slice_of_all() {
    let mut pair = Pair::new();
    for number in 0..9 {
        pair.register(number, number % 3, "a", 0);
    }
    let batch = pair.wait(PUBLISH_EVERY).unwrap().batch.unwrap();
    let lobby = |number: u8| Some(LobbyId::from_bytes([number; 16]));
    let parts: Vec<_> = (0..3).flat_map(|number| batch.after(0, lobby(number))).collect();
    assert_eq!(parts.concat(), batch.after(0, None).concat());
    assert!(batch.after(0, lobby(9)).is_empty());
    let count = |pieces: Vec<bytes::Bytes>| pieces.concat().windows(2).filter(|pair| pair == b"\n\n").count();
    for number in 0..=10u64 {
        assert_eq!(count(batch.after(number, None)), 9usize.saturating_sub(number as usize), "after {number}");
        let middle = (6usize.saturating_sub(number as usize)).min(3);
        assert_eq!(count(batch.after(number, lobby(1))), middle, "of the second lobby after {number}");
    }
    assert!(batch.after(u64::MAX - 1, None).is_empty());
}

#[test]
fn what_is_told_before_a_server_is_here_is_not_lost() {
    let mut pair = Pair::new();
    pair.register(1, 1, "a", 0);
    pair.registry.publish(pair.now);
    let id =
        pair.registry.lists().snapshot().lobbies().flat_map(|(_, list)| list.servers()).next().unwrap().public_id();
    pair.book.handle_told(Told::new(id, Verified::Verified));
    let published = pair.wait(PUBLISH_EVERY).unwrap();
    assert_eq!(published.snapshot.row(id).unwrap().verified, Verified::Verified);
    assert_eq!(published.listed, [id]);
    for number in 0..2 * EARLY {
        pair.book.handle_told(Told::new(PublicId::from_bytes((number as u128).to_be_bytes()), Verified::Verified));
    }
    assert!(pair.book.told.len() <= EARLY + 1, "and not kept without end");
}

#[test]
fn what_is_no_event_is_looked_at_once_a_minute() {
    let mut pair = Pair::new();
    pair.register(1, 1, "one", 3);
    pair.check();
    let row = |pair: &Pair| Arc::clone(pair.book.published().rows().next().unwrap());
    let minute = |pair: &mut Pair| {
        for _ in 0..=PARTS {
            // It comes back, so that it stays.
            pair.register(1, 1, "one", 3);
            assert!(pair.wait(REVIEW_EVERY).is_none_or(|published| published.batch.is_none()));
        }
    };
    let before = row(&pair);
    minute(&mut pair);
    assert!(Arc::ptr_eq(&before, &row(&pair)), "nothing has changed");
    let listing = before.listing.as_ref().unwrap();
    listing.set_latency(Duration::from_millis(23));
    minute(&mut pair);
    assert_eq!(row(&pair).latency, Some(Duration::from_millis(23)));
    // The clock is set, by little and by much.
    for (set, since) in [(3, START), (1_000_000, START + 1_000_000)] {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(START + set) + (pair.now - listing.since());
        pair.book.handle_wall_clock(pair.now, wall);
        minute(&mut pair);
        assert_eq!(row(&pair).since, since);
    }
}
