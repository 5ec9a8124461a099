//! Attackers hold every reserved slot but one and use all they can get; the holder of the last one keeps its guaranteed share.

use crate::common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig, Rate, Scope, Unit};
use std::{net::IpAddr, time::Instant};

/// 8 sets of addresses and 4 of networks with 6 reserved slots each are 72 reserved slots. Half of 144 packets per second is
/// one per second for each of them, and half of the burst is two at once.
fn in_packets() -> LimiterConfig {
    LimiterConfig { total: packets(Rate::per_second(144, 288)), max_entries: 64, ..unlimited() }
}

/// The configuration of [`in_packets`] in bytes, with packets of 1,000 bytes.
fn in_bytes() -> LimiterConfig {
    LimiterConfig { total: bytes(Rate::per_second(144_000, 288_000)), max_entries: 64, ..unlimited() }
}

const VICTIM: &str = "10.0.0.1";

#[test]
fn attackers_cannot_use_up_a_share_in_packets() {
    (0..2).for_each(|seed| attack(&in_packets(), seed, |_| 1_000));
}

#[test]
fn attackers_cannot_use_up_a_share_in_bytes() {
    (2..4).for_each(|seed| attack(&in_bytes(), seed, |rng| 1 + rng.below(1_000) as usize));
}

fn attack(config: &LimiterConfig, seed: u64, mut size: impl FnMut(&mut TestRng) -> usize) {
    let mut rng = TestRng::new(seed);
    let mut limiter = Limiter::new(config, seed.into());
    let start = Instant::now();
    let mut total = ExactTotal { nano_bytes: 288_000_000_000_000, last: start };

    let attackers = take_reserved_slots(&mut limiter, start, &mut rng);
    for step in 1..9_000_u64 {
        let now = start + ms(step * 10);
        // They are quiet for a while and then send together, or send all the time, along with a flood.
        let is_quiet = step / 500 % 3 == 0 && step % 500 != 499;
        for index in 0..if is_quiet { 0 } else { 50 } {
            let source = if index % 2 == 0 { attackers[rng.below(71) as usize] } else { rng.v4() };
            let bytes = size(&mut rng);
            total.count(now, limiter.check(now, source, bytes), bytes);
        }
        if step % 100 == 0 || step % 3000 == 1 {
            let decision = limiter.check(now, ip(VICTIM), 1_000);
            assert_eq!(decision, Decision::Allowed, "seed {seed}, step {step}");
            total.count(now, decision, 1_000);
        }
    }
    assert!(limiter.stats().total_refused() > 200_000);
    assert!(limiter.stats().guaranteed > 1_000, "the attackers got their shares, too");
}

#[test]
fn all_attackers_at_once_cannot_use_up_a_share() {
    let mut limiter = Limiter::new(&in_packets(), 5);
    let start = Instant::now();
    let mut rng = TestRng::new(5);
    let attackers = take_reserved_slots(&mut limiter, start, &mut rng);
    // A flood takes what is not reserved, then each attacker all that it can get.
    while limiter.check(start, rng.v4(), 1_000).is_allowed() {}
    assert_eq!(limiter.stats().allowed, 144);
    for source in attackers {
        while limiter.check(start, source, 1_000).is_allowed() {}
    }
    assert_eq!(limiter.stats().guaranteed, 71 * 2);
    assert_eq!(limiter.check(start, ip(VICTIM), 1_000), Decision::Allowed);
    assert_eq!(limiter.check(start, ip(VICTIM), 1_000), Decision::Allowed);
    assert_eq!(limiter.check(start, ip(VICTIM), 1_000), refused(Scope::Total, Unit::Packets), "that was its share");
    assert_eq!(limiter.check(start + secs(1), ip(VICTIM), 1_000), Decision::Allowed);
}

/// Gives one reserved slot to the victim, and the others to the attackers, which are returned.
fn take_reserved_slots(limiter: &mut Limiter, now: Instant, rng: &mut TestRng) -> Vec<IpAddr> {
    assert!(limiter.mark_known(now, ip(VICTIM)));
    let attackers: Vec<IpAddr> = (0..4000)
        .map(|n| if n % 2 == 0 { rng.v4() } else { rng.v6_in("3000::", 4) })
        .filter(|&source| limiter.mark_known(now, source))
        .collect();
    assert_eq!(attackers.len(), 71);
    attackers
}

/// The total as an exact bucket: what passes always fits in it.
struct ExactTotal {
    nano_bytes: u128,
    last: Instant,
}

impl ExactTotal {
    fn count(&mut self, now: Instant, decision: Decision, bytes: usize) {
        self.nano_bytes = (self.nano_bytes + (now - self.last).as_nanos() * 144_000).min(288_000_000_000_000);
        self.last = now;
        if decision.is_allowed() {
            // The cost of a packet is truncated to whole nanoseconds.
            let cost = bytes as u128 * 1_000_000_000 - 144_000;
            self.nano_bytes = self.nano_bytes.checked_sub(cost).expect("more than the total passed");
        }
    }
}
