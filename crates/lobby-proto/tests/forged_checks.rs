//! However many registrations are forged, an honest server is checked soon.
//!
//! The attacker sends 12,000 registrations of TCP servers every 30 seconds; nobody answers at the forged sources, so each
//! check of them lasts until its time is over. 256 can be under way.

mod support;
use rallypoint_lobby_proto::{CheckRequest, CheckResult, RegistrationOutcome};
use std::{net::IpAddr, time::Instant};
use support::*;

const PER_ROUND: u32 = 12_000;
const HONEST: &str = "203.0.113.9";

/// A lobby under attack, and the servers behind [`HONEST`], which answer.
struct Attack {
    lobby: Lobby,
    /// Checks that nobody answers, and when they are over.
    open: Vec<(Instant, CheckRequest)>,
    /// How many were begun.
    begun: u64,
    forged: u128,
}

impl Attack {
    fn new() -> Self {
        let mut lobby = Lobby::with(|config| config.limit_exempt = networks(&["0.0.0.0/0", "::/0"]));
        lobby.is_hasty = true;
        Self { lobby, open: Vec::new(), begun: 0, forged: 1_000_000 }
    }

    /// A tenth of a second, in which these registrations are forged.
    fn step(&mut self, forged: impl Iterator<Item = (IpAddr, u16, u128)>) {
        for (from, port, id) in forged {
            self.lobby.register(from, &tcp(id).port(port));
        }
        self.lobby.wait(ms(100));
        let now = self.lobby.now;
        for (_, request) in self.open.extract_if(.., |(over, _)| *over <= now).collect::<Vec<_>>() {
            self.lobby.verdict(request.target, CheckResult::Unreachable);
        }
        loop {
            let requests = self.lobby.check_requests();
            if requests.is_empty() {
                break;
            }
            self.begun += requests.len() as u64;
            for request in requests {
                if request.target.addr.ip() == ip(HONEST) {
                    self.lobby.verdict(request.target, REACHABLE);
                } else {
                    self.open.push((now + request.timeout, request));
                }
            }
        }
        self.lobby.events();
    }

    /// So many seconds of forgeries, each from a network of its own that was never seen before.
    fn ever_new(&mut self, seconds: u32) {
        for _ in 0..10 * seconds {
            let first = self.forged;
            self.forged += u128::from(PER_ROUND / 300);
            self.step((first..self.forged).map(|id| (address(id as u32 % 0x000f_0000), 8190, id)));
        }
    }

    /// A round of 30 seconds in which the same 12,000 come again.
    fn the_same_again(&mut self) {
        for tenth in 0..300 {
            let count = PER_ROUND / 300;
            self.step((tenth * count..(tenth + 1) * count).map(|n| (address(n), 8190, n.into())));
        }
    }

    fn is_listed(&mut self) -> bool {
        self.lobby.list().iter().any(|line| line.starts_with(HONEST))
    }
}

#[test]
fn ever_new_networks_do_not_outlast_a_server_that_comes_back() {
    let mut attack = Attack::new();
    attack.ever_new(60);
    attack.lobby.register(HONEST, &tcp(7));
    attack.ever_new(30);
    let begun = attack.begun;
    attack.lobby.register(HONEST, &tcp(7));
    attack.ever_new(3);
    assert!(attack.is_listed(), "3 s after its second registration, and {} checks", attack.begun - begun);
    attack.lobby.check_invariants();
}

#[test]
fn the_same_networks_again_and_again_have_failed_or_come_back_and_are_not_in_the_way_of_a_new_one() {
    let mut attack = Attack::new();
    (0..3).for_each(|_| attack.the_same_again());
    attack.lobby.register(HONEST, &tcp(7));
    (0..30).for_each(|_| attack.step(std::iter::empty()));
    assert!(attack.is_listed(), "as soon as a check is over");
}

/// New networks that each come back once: as many places of both lanes as the attacker can pay for.
#[test]
fn forgeries_that_come_back_have_to_come_back_as_often_as_the_server() {
    let mut attack = Attack::new();
    let mut round = 0u32;
    let mut seconds_until_listed = None;
    for at in 0..3_000u32 {
        let tenth = at % 300;
        round += u32::from(tenth == 0);
        // Each half of a round is of this round's networks and of the last one's.
        let half = PER_ROUND / 600;
        let of = |round: u32| {
            let first = round * PER_ROUND / 2 + tenth * half;
            (first..first + half).map(|n| (address(n % 0x000f_0000), 8190, u128::from(1_000_000 + n)))
        };
        attack.step(of(round).chain(of(round - 1)));
        if at % 300 == 150 && at > 600 {
            attack.lobby.register(HONEST, &tcp(7));
        }
        if at > 600 && at % 10 == 0 && attack.is_listed() {
            seconds_until_listed = Some((at - 750) / 10);
            break;
        }
    }
    assert!(seconds_until_listed.is_some_and(|seconds| seconds <= 95), "{seconds_until_listed:?}");
}

#[test]
fn one_network_does_not_hold_up_another() {
    let mut attack = Attack::new();
    let flood = || (0..2_500u32).map(|n| (IpAddr::from([198, 51, 100, n as u8]), 1_000 + (n / 256) as u16, n.into()));
    attack.step(flood());
    let checks = attack.lobby.stats().checks;
    assert_eq!(checks.in_flight, 32, "an eighth of those under way, and no more");
    let begun = attack.begun;
    attack.lobby.register(HONEST, &tcp(7_777));
    attack.step(std::iter::empty());
    assert!(attack.is_listed());
    assert_eq!(attack.begun, begun + 1, "it is the next one");
}

#[test]
fn who_was_reached_before_is_checked_at_once_also_after_a_restart_of_the_lobby() {
    let mut attack = Attack::new();
    attack.lobby.set(|config| config.checks.keep = secs(10));
    attack.lobby.register(HONEST, &tcp(7));
    attack.step(std::iter::empty());
    assert!(attack.is_listed());
    let save = attack.lobby.save();
    attack.ever_new(100);
    assert!(!attack.is_listed(), "it was down for a while");
    // It has a new ID; its first registration is enough.
    assert_eq!(attack.lobby.register(HONEST, &tcp(8)), RegistrationOutcome::Checking);
    attack.ever_new(3);
    assert!(attack.is_listed());

    let mut attack = Attack::new();
    let now = attack.lobby.now;
    attack.lobby.restore(now, &save).unwrap();
    attack.ever_new(100);
    assert!(!attack.is_listed(), "nobody refreshed it");
    attack.lobby.register(HONEST, &tcp(8));
    attack.ever_new(3);
    assert!(attack.is_listed());
}

#[test]
fn while_many_wait_the_lobby_tries_for_a_shorter_time_unless_it_knows_the_server() {
    let mut lobby = Lobby::with(|config| {
        (config.checks.in_flight, config.checks.keep) = (2, secs(1));
        config.checks.waiting = 400;
    });
    lobby.register(HONEST, &tcp(7));
    assert_eq!(lobby.check_requests()[0].timeout, secs(5));
    lobby.verdict(
        rallypoint_lobby_proto::CheckTarget { addr: "203.0.113.9:8190".parse().unwrap(), kind: TCP },
        REACHABLE,
    );
    lobby.unregister(HONEST, 7);
    lobby.wait(secs(5));
    for n in 0..50 {
        lobby.register(address(n), &tcp(n.into()));
    }
    lobby.register(HONEST, &tcp(8));
    let timeouts: Vec<_> =
        lobby.check_requests().iter().map(|request| (request.target.addr.ip(), request.timeout)).collect();
    assert_eq!(timeouts.iter().find(|(at, _)| *at == ip(HONEST)).unwrap().1, secs(5));
    assert_eq!(timeouts.iter().find(|(at, _)| *at != ip(HONEST)).unwrap().1, secs(2));
}

const TCP: rallypoint_lobby_proto::CheckKind = rallypoint_lobby_proto::CheckKind::Connect;

#[test]
fn a_place_that_was_lost_is_asked_for_again_by_the_next_registration() {
    let mut lobby =
        Lobby::with(|config| (config.checks.in_flight, config.checks.waiting, config.checks.per_network) = (1, 8, 600));
    let outcomes: Vec<_> = (0..6).map(|n| lobby.register(address(n), &tcp(n.into())).code()).collect();
    assert_eq!(outcomes, ["checking"; 6]);
    assert_eq!(lobby.stats().checks.waiting, 2, "a quarter of the places is for those of whom nothing is known");
    lobby.wait(secs(30));
    assert_eq!(lobby.register(address(3), &tcp(3)), RegistrationOutcome::Checking);
    assert_eq!(lobby.stats().checks.waiting, 3);
    let next = lobby.checks();
    assert_eq!(next[0].addr.ip(), address(3), "it has come back");
}
