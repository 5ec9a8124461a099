//! When the state machine sends which datagram to which lobby, on virtual time.

use rallypoint_announce::{AnnounceError, Announcer, ListId, Occupancy, ServerId, Transport};
use rallypoint_machine::Machine;
use rallypoint_wire::lobby::{Datagram, Registration, TableBuf, Unregister};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

const LOBBY: ListId = ListId::GANG_GARRISON_2;
const ID: ServerId = ServerId::from_bytes([7; 16]);
const PORT: u16 = 8190;
const LOBBIES: [&str; 2] = ["203.0.113.1:29944", "[2001:db8::1]:29944"];

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The registration of the server before any change.
fn registration() -> Vec<u8> {
    let mut table = TableBuf::new();
    table.push(b"name", b"server 1").unwrap();
    let port = PORT.try_into().unwrap();
    let mut datagram = Vec::new();
    Registration::new(ID, LOBBY, Transport::Udp, port, Occupancy::default(), table.as_table())
        .unwrap()
        .emit(&mut datagram);
    datagram
}

fn unregistration() -> Vec<u8> {
    let mut datagram = Vec::new();
    Unregister { server_id: ID }.emit(&mut datagram);
    datagram
}

/// An announcer with its clock.
struct Simulation {
    announcer: Announcer,
    start: Instant,
    now: Instant,
}

impl Simulation {
    fn new() -> Self {
        let start = Instant::now();
        let lobbies = LOBBIES.map(|addr| addr.parse().unwrap()).to_vec();
        let port = PORT.try_into().unwrap();
        let announcer = Announcer::new(ID, LOBBY, Transport::Udp, port, b"server 1", lobbies, start).unwrap();
        Self { announcer, start, now: start }
    }

    /// The datagrams sent in this time: milliseconds since the start, destination, bytes.
    fn run(&mut self, time: Duration) -> Vec<(u64, SocketAddr, Vec<u8>)> {
        let end = self.now + time;
        let mut sent = Vec::new();
        loop {
            let mut out = Vec::new();
            while let Some(transmit) = self.announcer.poll_transmit(self.now, &mut out) {
                assert_eq!(transmit.len, out.len());
                sent.push(((self.now - self.start).as_millis() as u64, transmit.to, std::mem::take(&mut out)));
            }
            match self.announcer.poll_timeout().filter(|&at| at <= end) {
                Some(at) => {
                    self.now = self.now.max(at);
                    self.announcer.handle_timeout(self.now);
                }
                None => break,
            }
        }
        self.now = end;
        sent
    }

    /// The times of the rounds, each of which is sent to all lobbies.
    fn rounds(&mut self, time: Duration) -> Vec<u64> {
        let sent = self.run(time);
        for round in sent.chunks(2) {
            assert_eq!(round.iter().map(|(_, to, _)| to.to_string()).collect::<Vec<_>>(), LOBBIES);
            assert_eq!((round[0].0, &round[0].2), (round[1].0, &round[1].2));
        }
        sent.chunks(2).map(|round| round[0].0).collect()
    }
}

#[test]
fn registers_at_once_again_after_3_s_and_then_every_30_s() {
    assert_eq!(Simulation::new().rounds(secs(100)), [0, 3_000, 33_000, 63_000, 93_000]);
}

#[test]
fn a_registration_contains_what_was_set() {
    let mut simulation = Simulation::new();
    simulation.announcer.set_key(b"map", b"ctf_truefort").unwrap();
    simulation.announcer.set_key(b"map", b"koth").unwrap();
    simulation.announcer.set_occupancy(Occupancy { slots: 24, players: 3, bots: 1, password: true });
    let size = simulation.announcer.registration_size();
    let sent = simulation.run(ms(0));
    assert_eq!(sent[0].2.len(), size);
    let Ok(Datagram::Register(registration)) = Datagram::parse(&sent[0].2) else { panic!("not a registration") };
    assert_eq!(registration.name(), b"server 1");
    assert_eq!(registration.table().get(b"map"), Some(&b"koth"[..]));
    assert_eq!(registration.occupancy(), Occupancy { slots: 24, players: 3, bots: 1, password: true });
    assert_eq!((registration.list_id(), registration.port().get()), (LOBBY, PORT));
}

#[test]
fn a_changed_lobby_address_is_registered_with_at_once_and_the_old_one_no_more() {
    let mut simulation = Simulation::new();
    simulation.rounds(secs(50));
    let elsewhere: SocketAddr = "203.0.113.2:29944".parse().unwrap();
    simulation.announcer.set_lobbies(vec![elsewhere]);
    let sent = simulation.run(secs(31));
    assert_eq!(
        sent.iter().map(|(at, to, _)| (*at, *to)).collect::<Vec<_>>(),
        [(50_000, elsewhere), (80_000, elsewhere)]
    );
    // Setting the same addresses sends nothing.
    simulation.announcer.set_lobbies(vec![elsewhere]);
    assert_eq!(simulation.run(secs(5)), []);
    simulation.announcer.stop();
    assert_eq!(simulation.run(secs(0)).len(), 1);
    simulation.announcer.set_lobbies(LOBBIES.map(|addr| addr.parse().unwrap()).to_vec());
    assert_eq!(simulation.run(secs(100)), []);
}

#[test]
fn a_refresh_repeats_the_same_bytes() {
    let sent = Simulation::new().run(secs(100));
    assert!(sent.iter().all(|(_, _, bytes)| *bytes == sent[0].2));
}

#[test]
fn a_change_is_sent_at_once_and_the_next_refresh_30_s_later() {
    let mut simulation = Simulation::new();
    simulation.rounds(secs(50));
    simulation.announcer.set_occupancy(Occupancy { players: 1, ..Occupancy::default() });
    assert_eq!(simulation.rounds(secs(31)), [50_000, 80_000]);
}

#[test]
fn changes_are_sent_at_most_once_per_second() {
    let mut simulation = Simulation::new();
    simulation.rounds(secs(50));
    let mut rounds = Vec::new();
    for players in 1..=45 {
        simulation.announcer.set_occupancy(Occupancy { players, ..Occupancy::default() });
        rounds.extend(simulation.rounds(ms(100)));
    }
    assert_eq!(rounds, [50_000, 51_000, 52_000, 53_000, 54_000]);
    let last = simulation.run(secs(1));
    assert_eq!(last[0].0, 55_000);
    let Ok(Datagram::Register(registration)) = Datagram::parse(&last[0].2) else { panic!("not a registration") };
    assert_eq!(registration.occupancy().players, 45, "the last change is sent");
}

#[test]
fn setting_an_unchanged_value_sends_nothing() {
    let mut simulation = Simulation::new();
    simulation.rounds(secs(50));
    simulation.announcer.set_occupancy(Occupancy::default());
    simulation.announcer.set_key(b"name", b"server 1").unwrap();
    assert_eq!(simulation.rounds(secs(10)), [0; 0]);
}

#[test]
fn stopping_unregisters_once_from_all_lobbies_and_then_sends_nothing() {
    let mut simulation = Simulation::new();
    simulation.run(secs(50));
    simulation.announcer.stop();
    simulation.announcer.stop();
    simulation.announcer.set_occupancy(Occupancy { players: 1, ..Occupancy::default() });
    let sent = simulation.run(secs(100));
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|(_, _, bytes)| *bytes == unregistration()));
    assert_eq!(simulation.announcer.poll_timeout(), None);
}

#[test]
fn stopping_before_the_first_registration_sends_nothing() {
    let mut simulation = Simulation::new();
    simulation.announcer.stop();
    assert_eq!(simulation.run(secs(10)), []);
}

#[test]
fn stopping_within_a_round_unregisters_from_all_lobbies() {
    let mut simulation = Simulation::new();
    let mut out = Vec::new();
    simulation.announcer.poll_transmit(simulation.now, &mut out).unwrap();
    simulation.announcer.stop();
    let sent = simulation.run(secs(10));
    assert_eq!(sent.iter().map(|(_, to, _)| to.to_string()).collect::<Vec<_>>(), LOBBIES);
    assert!(sent.iter().all(|(_, _, bytes)| *bytes == unregistration()));
}

#[test]
fn an_invalid_key_is_refused_and_changes_nothing() {
    let mut simulation = Simulation::new();
    assert!(matches!(simulation.announcer.set_key(&[b'k'; 256], b""), Err(AnnounceError::Entry(_))));
    assert!(matches!(simulation.announcer.set_key(b"x-large", &[0; 65_507]), Err(AnnounceError::Entry(_))));
    let error = simulation.announcer.set_key(b"protocol_id", b"short").unwrap_err();
    assert_eq!(error.to_string(), "protocol_id is not 16 bytes");
    let sent = simulation.run(ms(0));
    assert_eq!(sent[0].2, registration());
}
