//! The other side of the registry: a server that keeps itself registered.

mod support;
use rallypoint_lobby_proto::{AnnounceError, Announcer, RegistrationOutcome};
use rallypoint_machine::Machine;
use rallypoint_wire::lobby::{Datagram, Occupancy, Transport};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use support::*;

const LOBBIES: [&str; 2] = ["203.0.113.1:29944", "[2001:db8::1]:29944"];

struct Driven {
    announcer: Announcer,
    start: Instant,
    now: Instant,
}

impl Driven {
    fn new() -> Self {
        let (start, lobbies) = (Instant::now(), LOBBIES.map(|addr| addr.parse().unwrap()).to_vec());
        let (id, port) = (udp(1).server_id(), 8190.try_into().unwrap());
        let announcer = Announcer::new(id, LOBBY, Transport::Udp, port, b"server 1", lobbies, start).unwrap();
        Self { announcer, start, now: start }
    }

    /// What is sent until then: when (in ms since the start), to whom, and what.
    fn run(&mut self, time: Duration) -> Vec<(u64, SocketAddr, Vec<u8>)> {
        let (end, mut sent) = (self.now + time, Vec::new());
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

    /// When rounds were sent, each to all lobbies.
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
fn at_once_again_after_3_s_and_then_every_30_s() {
    assert_eq!(Driven::new().rounds(secs(100)), [0, 3_000, 33_000, 63_000, 93_000]);
}

#[test]
fn what_it_sends_is_what_was_set() {
    let mut driven = Driven::new();
    driven.announcer.set_key(b"map", b"ctf_truefort").unwrap();
    driven.announcer.set_key(b"map", b"koth").unwrap();
    driven.announcer.set_occupancy(Occupancy { slots: 24, players: 3, bots: 1, password: true });
    let size = driven.announcer.size();
    let sent = driven.run(ms(0));
    assert_eq!(sent[0].2.len(), size);
    let Ok(Datagram::Register(registration)) = Datagram::parse(&sent[0].2) else { panic!("not a registration") };
    assert_eq!(registration.name(), b"server 1");
    assert_eq!(registration.table().get(b"map"), Some(&b"koth"[..]));
    assert_eq!(registration.occupancy(), Occupancy { slots: 24, players: 3, bots: 1, password: true });
    assert_eq!((registration.lobby_id(), registration.port().get()), (LOBBY, 8190));
}

#[test]
fn lobbies_that_have_moved_are_told_at_once_and_only_there() {
    let mut driven = Driven::new();
    driven.rounds(secs(50));
    let elsewhere: SocketAddr = "203.0.113.2:29944".parse().unwrap();
    driven.announcer.set_lobbies(vec![elsewhere]);
    let sent = driven.run(secs(31));
    assert_eq!(
        sent.iter().map(|(at, to, _)| (*at, *to)).collect::<Vec<_>>(),
        [(50_000, elsewhere), (80_000, elsewhere)]
    );
    // The same addresses are no news.
    driven.announcer.set_lobbies(vec![elsewhere]);
    assert_eq!(driven.run(secs(5)), []);
    driven.announcer.stop();
    assert_eq!(driven.run(secs(0)).len(), 1);
    driven.announcer.set_lobbies(LOBBIES.map(|addr| addr.parse().unwrap()).to_vec());
    assert_eq!(driven.run(secs(100)), []);
}

#[test]
fn refreshes_are_the_same_bytes() {
    let sent = Driven::new().run(secs(100));
    assert!(sent.iter().all(|(_, _, bytes)| *bytes == sent[0].2));
}

#[test]
fn a_change_is_sent_at_once_and_the_next_refresh_30_s_later() {
    let mut driven = Driven::new();
    driven.rounds(secs(50));
    driven.announcer.set_occupancy(Occupancy { players: 1, ..Occupancy::default() });
    assert_eq!(driven.rounds(secs(31)), [50_000, 80_000]);
}

#[test]
fn but_not_more_than_one_a_second() {
    let mut driven = Driven::new();
    driven.rounds(secs(50));
    let mut rounds = Vec::new();
    for players in 1..=45 {
        driven.announcer.set_occupancy(Occupancy { players, ..Occupancy::default() });
        rounds.extend(driven.rounds(ms(100)));
    }
    assert_eq!(rounds, [50_000, 51_000, 52_000, 53_000, 54_000]);
    let last = driven.run(secs(1));
    assert_eq!(last[0].0, 55_000);
    let Ok(Datagram::Register(registration)) = Datagram::parse(&last[0].2) else { panic!("not a registration") };
    assert_eq!(registration.occupancy().players, 45, "the last change is not lost");
}

#[test]
fn setting_what_is_set_already_sends_nothing() {
    let mut driven = Driven::new();
    driven.rounds(secs(50));
    driven.announcer.set_occupancy(Occupancy::default());
    driven.announcer.set_key(b"name", b"server 1").unwrap();
    assert_eq!(driven.rounds(secs(10)), [0; 0]);
}

#[test]
fn stopping_unregisters_once_from_all_and_then_there_is_silence() {
    let mut driven = Driven::new();
    driven.run(secs(50));
    driven.announcer.stop();
    driven.announcer.stop();
    driven.announcer.set_occupancy(Occupancy { players: 1, ..Occupancy::default() });
    let sent = driven.run(secs(100));
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|(_, _, bytes)| *bytes == unregister(1)));
    assert_eq!(driven.announcer.poll_timeout(), None);
}

#[test]
fn stopping_before_the_start_says_nothing() {
    let mut driven = Driven::new();
    driven.announcer.stop();
    assert_eq!(driven.run(secs(10)), []);
}

#[test]
fn stopping_in_the_middle_of_a_round_unregisters_from_all() {
    let mut driven = Driven::new();
    let mut out = Vec::new();
    driven.announcer.poll_transmit(driven.now, &mut out).unwrap();
    driven.announcer.stop();
    let sent = driven.run(secs(10));
    assert_eq!(sent.iter().map(|(_, to, _)| to.to_string()).collect::<Vec<_>>(), LOBBIES);
    assert!(sent.iter().all(|(_, _, bytes)| *bytes == unregister(1)));
}

#[test]
fn what_cannot_be_sent_is_refused_and_changes_nothing() {
    let mut driven = Driven::new();
    assert!(matches!(driven.announcer.set_key(&[b'k'; 256], b""), Err(AnnounceError::Entry(_))));
    assert!(matches!(driven.announcer.set_key(b"x-large", &[0; 65_507]), Err(AnnounceError::Entry(_))));
    let error = driven.announcer.set_key(b"protocol_id", b"short").unwrap_err();
    assert_eq!(error.to_string(), "protocol_id is not 16 bytes");
    let sent = driven.run(ms(0));
    assert_eq!(sent[0].2, udp(1).datagram());
}

#[test]
fn the_registry_takes_it() {
    let (mut driven, mut lobby) = (Driven::new(), Lobby::default());
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        for (_, to, bytes) in driven.run(secs(29)) {
            let from = if to.is_ipv4() { "203.0.113.9" } else { "2001:db8::9" };
            outcomes.push(lobby.send(from, &bytes));
        }
        lobby.wait(secs(29));
        assert_eq!(lobby.list(), ["[2001:db8::9]:8190 203.0.113.9:8190 udp server 1"]);
    }
    assert_eq!(outcomes[..2], [RegistrationOutcome::Listed, RegistrationOutcome::Changed]);
    assert!(outcomes[2..].iter().all(|outcome| *outcome == RegistrationOutcome::Refreshed));
}
