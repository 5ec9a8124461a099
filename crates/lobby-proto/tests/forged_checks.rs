//! An honest server is checked soon, however many registrations are forged.
//!
//! The attacker sends 12,000 registrations of TCP servers every 30 seconds. The forged sources do not reply, so each check of
//! them lasts until its timeout. 256 checks can be in flight.

use crate::support;
use rallypoint_lobby_proto::{CheckRequest, CheckResult, RegistrationOutcome};
use std::{net::IpAddr, time::Instant};
use support::*;

const PER_ROUND: u32 = 12_000;
const HONEST: &str = "203.0.113.9";

/// A lobby under attack, and the servers behind [`HONEST`], which reply.
struct Attack {
    lobby: Lobby,
    /// Checks without a reply, and when they time out.
    open: Vec<(Instant, CheckRequest)>,
    /// Number of checks that were started.
    begun: u64,
    forged: u128,
}

impl Attack {
    fn new() -> Self {
        let mut lobby = Lobby::with(|config| config.limit_exempt = networks(&["0.0.0.0/0", "::/0"]));
        lobby.skips_invariants = true;
        Self { lobby, open: Vec::new(), begun: 0, forged: 1_000_000 }
    }

    /// Advances a tenth of a second, in which these registrations are forged.
    fn step(&mut self, forged: impl Iterator<Item = (IpAddr, u16, u128)>) {
        for (from, port, id) in forged {
            self.lobby.register(from, &tcp(id).port(port));
        }
        self.lobby.wait(ms(100));
        let now = self.lobby.now;
        for (_, request) in self.open.extract_if(.., |(over, _)| *over <= now).collect::<Vec<_>>() {
            self.lobby.report(request.target, CheckResult::Unreachable);
        }
        loop {
            let requests = self.lobby.check_requests();
            if requests.is_empty() {
                break;
            }
            self.begun += requests.len() as u64;
            for request in requests {
                if request.target.addr.ip() == ip(HONEST) {
                    self.lobby.report(request.target, REACHABLE);
                } else {
                    self.open.push((now + request.timeout, request));
                }
            }
        }
        self.lobby.events();
    }

    /// Advances some seconds of forgeries, each from a new network.
    fn forge_new(&mut self, seconds: u32) {
        for _ in 0..10 * seconds {
            let first = self.forged;
            self.forged += u128::from(PER_ROUND / 300);
            self.step((first..self.forged).map(|id| (address(id as u32 % 0x000f_0000), 8190, id)));
        }
    }

    /// Advances 30 seconds, in which the same 12,000 are sent again.
    fn repeat_forgeries(&mut self) {
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
fn forgeries_from_new_networks_do_not_delay_a_returning_server() {
    let mut attack = Attack::new();
    attack.forge_new(60);
    attack.lobby.register(HONEST, &tcp(7));
    attack.forge_new(30);
    let begun = attack.begun;
    attack.lobby.register(HONEST, &tcp(7));
    attack.forge_new(3);
    assert!(attack.is_listed(), "3 s after its second registration, and {} checks", attack.begun - begun);
    attack.lobby.check_invariants();
}

#[test]
fn repeated_forgeries_do_not_delay_a_new_server() {
    let mut attack = Attack::new();
    (0..3).for_each(|_| attack.repeat_forgeries());
    attack.lobby.register(HONEST, &tcp(7));
    (0..30).for_each(|_| attack.step(std::iter::empty()));
    assert!(attack.is_listed(), "as soon as a check ends");
}

/// New networks that each return once: as many places in both lanes as the attacker can afford.
#[test]
fn returning_forgeries_have_to_return_as_often_as_the_server() {
    let mut attack = Attack::new();
    let mut round = 0u32;
    let mut seconds_until_listed = None;
    for at in 0..3_000u32 {
        let tenth = at % 300;
        round += u32::from(tenth == 0);
        // Half of each round consists of this round's networks, half of the previous round's.
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
fn one_network_does_not_delay_another() {
    let mut attack = Attack::new();
    let flood = || (0..2_500u32).map(|n| (IpAddr::from([198, 51, 100, n as u8]), 1_000 + (n / 256) as u16, n.into()));
    attack.step(flood());
    let checks = attack.lobby.stats().checks;
    assert_eq!(checks.in_flight, 32, "an eighth of the checks in flight, and no more");
    let begun = attack.begun;
    attack.lobby.register(HONEST, &tcp(7_777));
    attack.step(std::iter::empty());
    assert!(attack.is_listed());
    assert_eq!(attack.begun, begun + 1, "it is the next one");
}

#[test]
fn a_proven_server_is_checked_at_once_also_after_a_restart_of_the_lobby() {
    let mut attack = Attack::new();
    attack.lobby.set(|config| config.checks.keep = secs(10));
    attack.lobby.register(HONEST, &tcp(7));
    attack.step(std::iter::empty());
    assert!(attack.is_listed());
    let save = attack.lobby.save();
    attack.forge_new(100);
    assert!(!attack.is_listed(), "it was down for a while");
    // It has a new ID; its first registration is enough.
    assert_eq!(attack.lobby.register(HONEST, &tcp(8)), RegistrationOutcome::Checking);
    attack.forge_new(3);
    assert!(attack.is_listed());

    let mut attack = Attack::new();
    let now = attack.lobby.now;
    attack.lobby.restore(now, &save).unwrap();
    attack.forge_new(100);
    assert!(!attack.is_listed(), "it was not refreshed");
    attack.lobby.register(HONEST, &tcp(8));
    attack.forge_new(3);
    assert!(attack.is_listed());
}

#[test]
fn the_timeout_is_shorter_except_for_servers_that_were_reached_before() {
    let mut lobby = Lobby::with(|config| {
        (config.checks.in_flight, config.checks.keep) = (2, secs(1));
        config.checks.waiting = 400;
    });
    lobby.register(HONEST, &tcp(7));
    assert_eq!(lobby.check_requests()[0].timeout, ms(1_900));
    lobby.report(
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
    assert_eq!(timeouts.iter().find(|(at, _)| *at != ip(HONEST)).unwrap().1, ms(1_900));
}

const TCP: rallypoint_lobby_proto::CheckKind = rallypoint_lobby_proto::CheckKind::Connect;

#[test]
fn an_evicted_check_is_requested_again_by_the_next_registration() {
    let mut lobby =
        Lobby::with(|config| (config.checks.in_flight, config.checks.waiting, config.checks.per_network) = (1, 8, 600));
    let outcomes: Vec<_> = (0..6).map(|n| lobby.register(address(n), &tcp(n.into())).code()).collect();
    assert_eq!(outcomes, ["checking"; 6]);
    assert_eq!(lobby.stats().checks.waiting, 2, "a quarter of the places is for new targets");
    lobby.wait(secs(30));
    assert_eq!(lobby.register(address(3), &tcp(3)), RegistrationOutcome::Checking);
    assert_eq!(lobby.stats().checks.waiting, 3);
    let next = lobby.checks();
    assert_eq!(next[0].addr.ip(), address(3), "it has returned");
}

/// A check of a closed port ends at once, so a bound on those in flight alone would not bound their rate.
#[test]
fn checks_have_a_total_rate_behind_the_lanes() {
    let mut attack = Attack::new();
    attack.lobby.set(|config| (config.checks.total, config.checks.in_flight) = (40, 1_000));
    attack.lobby.register(HONEST, &tcp(7));
    attack.step(std::iter::empty());
    assert!(attack.is_listed());
    let before = attack.begun;
    attack.lobby.set(|config| config.checks.keep = secs(1));
    for second in 0..60 {
        attack.forge_new(1);
        // Every check fails at once.
        for (_, request) in std::mem::take(&mut attack.open) {
            attack.lobby.report(request.target, CheckResult::Unreachable);
        }
        if second % 30 == 0 {
            attack.lobby.register(HONEST, &tcp(7));
        }
    }
    let rate = (attack.begun - before) as f64 / 60.0;
    assert!((38.0..=40.5).contains(&rate), "{rate} checks per second");
    assert!(attack.is_listed(), "its checks are in a lane of their own");
}

#[test]
fn a_low_total_rate_is_kept_and_delays_no_check_for_ever() {
    let mut lobby = Lobby::with(|config| config.checks.total = 1);
    (0..10).for_each(|n| assert_eq!(lobby.register(address(n), &tcp(n.into())), RegistrationOutcome::Checking));
    let mut begun = lobby.checks().len();
    for _ in 0..40 {
        lobby.wait(ms(250));
        begun += lobby.checks().len();
    }
    assert_eq!(begun, 10);
}
