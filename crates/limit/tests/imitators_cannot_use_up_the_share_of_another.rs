//! Attackers sit on every seat but one, and use all they can get; the one keeps what it is guaranteed.

mod common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate, Scope, Unit};
use std::{net::IpAddr, time::Instant};

/// 8 sets of addresses and 4 of networks with 6 seats each are 72 seats. Half of 144 packets per second is one per
/// second for each of them, and half of the burst is two at once.
fn in_packets() -> LimiterConfig {
    LimiterConfig { total: packets(Rate::per_second(144, 288)), max_entries: 64, ..unlimited() }
}

/// The same for packets of 1,000 bytes.
fn in_bytes() -> LimiterConfig {
    LimiterConfig { total: bytes(Rate::per_second(144_000, 288_000)), max_entries: 64, ..unlimited() }
}

const VICTIM: &str = "10.0.0.1";

#[test]
fn whatever_they_do_with_packets() {
    (0..2).for_each(|seed| attack(&in_packets(), seed, |_| 1_000));
}

#[test]
fn whatever_they_do_with_bytes() {
    (2..4).for_each(|seed| attack(&in_bytes(), seed, |chance| 1 + chance.below(1_000) as usize));
}

fn attack(config: &LimiterConfig, seed: u64, mut size: impl FnMut(&mut Chance) -> usize) {
    let mut chance = Chance(seed);
    let mut limiter = Limiter::new(config, seed.into());
    let start = Instant::now();
    let mut total = ExactTotal { nano_bytes: 288_000_000_000_000, last: start };

    let imitators = take_the_seats(&mut limiter, start, &mut chance);
    for step in 1..9_000_u64 {
        let now = start + ms(step * 10);
        // They are quiet for a while and strike together, or send all the time; and a flood comes with them.
        let quiet = step / 500 % 3 == 0 && step % 500 != 499;
        for index in 0..if quiet { 0 } else { 50 } {
            let source = if index % 2 == 0 { imitators[chance.below(71) as usize] } else { chance.v4() };
            let bytes = size(&mut chance);
            total.count(now, limiter.check(now, source, bytes), bytes);
        }
        if step % 100 == 0 || step % 3000 == 1 {
            let verdict = limiter.check(now, ip(VICTIM), 1_000);
            assert_eq!(verdict, Decision::Allowed, "seed {seed}, step {step}");
            total.count(now, verdict, 1_000);
        }
    }
    assert!(limiter.stats().total_refused() > 200_000);
    assert!(limiter.stats().guaranteed > 1_000, "the imitators got their shares, too");
}

#[test]
fn even_if_all_strike_at_once() {
    let mut limiter = Limiter::new(&in_packets(), 5);
    let (start, mut chance) = (Instant::now(), Chance(5));
    let imitators = take_the_seats(&mut limiter, start, &mut chance);
    // A flood takes what is not reserved, then each imitator all that it can get.
    while limiter.check(start, chance.v4(), 1_000).is_allowed() {}
    assert_eq!(limiter.stats().allowed, 144);
    for source in imitators {
        while limiter.check(start, source, 1_000).is_allowed() {}
    }
    assert_eq!(limiter.stats().guaranteed, 71 * 2);
    assert_eq!(limiter.check(start, ip(VICTIM), 1_000), Decision::Allowed);
    assert_eq!(limiter.check(start, ip(VICTIM), 1_000), Decision::Allowed);
    assert_eq!(limiter.check(start, ip(VICTIM), 1_000), refused(Scope::Total, Unit::Packets), "that was its share");
    assert_eq!(limiter.check(start + secs(1), ip(VICTIM), 1_000), Decision::Allowed);
}

/// The victim has one, the others have the rest.
fn take_the_seats(limiter: &mut Limiter, now: Instant, chance: &mut Chance) -> Vec<IpAddr> {
    assert!(limiter.vouch(now, ip(VICTIM)));
    let imitators: Vec<IpAddr> = (0..4000)
        .map(|n| if n % 2 == 0 { chance.v4() } else { chance.v6_in("3000::", 4) })
        .filter(|&source| limiter.vouch(now, source))
        .collect();
    assert_eq!(imitators.len(), 71);
    imitators
}

/// The total as a bucket that is counted exactly: what passes always fits in it.
struct ExactTotal {
    nano_bytes: u128,
    last: Instant,
}

impl ExactTotal {
    fn count(&mut self, now: Instant, verdict: Decision, bytes: usize) {
        self.nano_bytes = (self.nano_bytes + (now - self.last).as_nanos() * 144_000).min(288_000_000_000_000);
        self.last = now;
        if verdict.is_allowed() {
            // The cost of a packet is cut to whole nanoseconds.
            let cost = bytes as u128 * 1_000_000_000 - 144_000;
            self.nano_bytes = self.nano_bytes.checked_sub(cost).expect("more than the total passed");
        }
    }
}
