//! Honest servers, with one datagram per 30 s and one at each join and map change, are never refused by the default budgets.

use crate::common;
use common::*;
use rallypoint_limit::{Decision, Limiter, LimiterConfig};
use std::time::Instant;

#[test]
fn one_server_for_five_years() {
    let mut limiter = Limiter::new(&LimiterConfig::default(), 1);
    let start = Instant::now();
    let mut rng = TestRng::new(1);
    // A month of refreshes, eleven months of silence.
    for year in 0..5 {
        for refresh in 0..30 * 24 * 60 * 2 {
            let now = start + secs(year * 365 * 24 * 60 * 60 + refresh * 30);
            assert_eq!(limiter.check(now, ip("10.1.2.3"), 700), Decision::Allowed);
            // Sometimes all players join at once, after a map change, and the server sends many large updates.
            if rng.below(1000) == 0 {
                for _ in 0..32 {
                    assert_eq!(limiter.check(now + ms(rng.below(2000)), ip("10.1.2.3"), 4096), Decision::Allowed);
                }
            }
        }
    }
    assert_eq!(limiter.stats().total_refused(), 0);
}

#[test]
fn servers_behind_one_address() {
    let mut limiter = Limiter::new(&LimiterConfig::default(), 1);
    let start = Instant::now();
    let mut rng = TestRng::new(2);
    // All 32 start at once; then each refreshes every 30 s, and a player joins one of them every second.
    for second in 0..3600 {
        let now = start + secs(second);
        let refreshes = if second % 30 == 0 { 32 } else { 0 };
        for _ in 0..refreshes + 1 {
            assert_eq!(limiter.check(now + ms(rng.below(500)), ip("2001:db8::1"), 1500), Decision::Allowed);
        }
    }
}
