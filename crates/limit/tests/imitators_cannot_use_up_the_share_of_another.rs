//! Attackers sit on every seat but one, and use all they can get; the one keeps what it is guaranteed.

mod common;
use common::*;
use rallypoint_limit::{Config, Limiter, Rate, Scope, Unit, Verdict};
use std::{net::IpAddr, time::Instant};

/// 8 sets of addresses and 4 of networks with 6 seats each are 72 seats. Half of 144 packets per second is one per second
/// for each of them, and half of the burst is two at once.
fn config() -> Config {
    Config { total: packets(Rate::per_second(144, 288)), max_entries: 64, ..unlimited() }
}

const VICTIM: &str = "10.0.0.1";

#[test]
fn whatever_they_do() {
    for seed in 0..4 {
        let mut chance = Chance(seed);
        let mut limiter = Limiter::new(&config(), seed.into());
        let start = Instant::now();
        let mut total = ExactTotal::new(start);

        assert!(limiter.vouch(start, ip(VICTIM)));
        let imitators: Vec<IpAddr> = (0..4000)
            .map(|n| if n % 2 == 0 { chance.v4() } else { chance.v6_in("3000::", 4) })
            .filter(|&source| limiter.vouch(start, source))
            .collect();
        assert_eq!(imitators.len(), 71);

        for step in 1..9_000_u64 {
            let now = start + ms(step * 10);
            // They are quiet for a while and strike together, or send all the time; and a flood comes with them.
            let quiet = step / 500 % 3 == 0 && step % 500 != 499;
            for index in 0..if quiet { 0 } else { 50 } {
                let source = if index % 2 == 0 { imitators[chance.below(71) as usize] } else { chance.v4() };
                total.count(now, limiter.check(now, source, 100));
            }
            if step % 100 == 0 || step % 3000 == 1 {
                let verdict = limiter.check(now, ip(VICTIM), 100);
                assert_eq!(verdict, Verdict::Allowed, "seed {seed}, step {step}");
                total.count(now, verdict);
            }
        }
        assert!(limiter.stats().refused_in_all() > 200_000);
        assert!(limiter.stats().guaranteed > 1_000, "the imitators got their shares, too");
    }
}

#[test]
fn and_more_than_the_share_has_to_compete() {
    let mut limiter = Limiter::new(&config(), 1);
    let (start, mut chance) = (Instant::now(), Chance(9));
    assert!(limiter.vouch(start, ip(VICTIM)));
    for _ in 0..1000 {
        let _ = limiter.check(start, chance.v4(), 100);
    }
    // Two at once is its part of the reserved burst; the rest of that is for others.
    assert_eq!(limiter.check(start, ip(VICTIM), 100), Verdict::Allowed);
    assert_eq!(limiter.check(start, ip(VICTIM), 100), Verdict::Allowed);
    assert_eq!(limiter.check(start, ip(VICTIM), 100), refused(Scope::Total, Unit::Packets));
    assert_eq!(limiter.stats().guaranteed, 2);
}

/// The total as a bucket that is counted exactly: what passes always fits in it.
struct ExactTotal {
    nano_tokens: u128,
    last: Instant,
}

impl ExactTotal {
    fn new(now: Instant) -> Self {
        Self { nano_tokens: 288_000_000_000, last: now }
    }

    fn count(&mut self, now: Instant, verdict: Verdict) {
        self.nano_tokens = (self.nano_tokens + (now - self.last).as_nanos() * 144).min(288_000_000_000);
        self.last = now;
        if verdict.is_allowed() {
            // An interval is cut to whole nanoseconds, which gives away less than one in a million.
            self.nano_tokens = self.nano_tokens.checked_sub(999_999_000).expect("more than the total passed");
        }
    }
}
