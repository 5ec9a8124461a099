//! A clock that goes back, jumps ahead or stands still causes no panic and penalises no source.

use crate::common;
use common::*;
use proptest::prelude::*;
use rallypoint_limit::{Budget, Decision, Limiter, LimiterConfig, Rate, Scope, Unit};
use std::time::{Duration, Instant};

const SOURCE: &str = "10.0.0.1";

#[test]
fn buckets_keep_their_contents_when_time_goes_back() {
    let config = LimiterConfig { host: packets(Rate::per_second(1, 5)), ..LimiterConfig::default() };
    let mut limiter = Limiter::new(&config, 1);
    let start = Instant::now();
    for now in [start, start + secs(1_000_000), start, start - secs(1_000_000)] {
        assert_eq!(limiter.check(now, ip(SOURCE), 0), Decision::Allowed);
    }
    // Five tokens were refilled by the jump ahead; three of them were used, and none were lost by the jumps back.
    let now = start - secs(1_000_000);
    assert_eq!(limiter.check(now, ip(SOURCE), 0), Decision::Allowed);
    assert_eq!(limiter.check(now, ip(SOURCE), 0), Decision::Allowed);
    assert_eq!(limiter.check(now, ip(SOURCE), 0), refused(Scope::Host, Unit::Packets));
    assert_eq!(limiter.check(now + secs(1), ip(SOURCE), 0), Decision::Allowed);
    assert_eq!(limiter.check(now + secs(1), ip(SOURCE), 0), refused(Scope::Host, Unit::Packets));
}

#[test]
fn only_a_burst_passes_while_time_stands_still() {
    let config = LimiterConfig { host: packets(Rate::per_second(1, 5)), ..LimiterConfig::default() };
    let mut limiter = Limiter::new(&config, 1);
    let now = Instant::now();
    assert_eq!((0..1000).filter(|_| limiter.check(now, ip(SOURCE), 0).is_allowed()).count(), 5);
}

#[test]
fn centuries_are_no_problem() {
    let mut limiter = Limiter::new(&LimiterConfig::default(), 1);
    let start = Instant::now();
    let mut now = Some(start);
    while let Some(time) = now {
        assert_eq!(limiter.check(time, ip(SOURCE), 700), Decision::Allowed);
        now = time.checked_add(secs(50 * 365 * 24 * 60 * 60)).filter(|&time| time - start < secs(100_000_000_000));
    }
}

proptest! {
    /// With any rates, valid or not, any times and any sizes, every datagram is either allowed or refused.
    #[test]
    fn arbitrary_input_is_handled(
        rates in prop::array::uniform8(prop::option::of((any::<u64>(), any::<u64>(), any::<u64>()))),
        reserved_percent: u8,
        max_entries in prop_oneof![0_usize..100, Just(10_000)],
        steps in prop::collection::vec((any::<u64>(), any::<u128>(), any::<usize>(), 0..20_u8), 1..200),
    ) {
        let rates = rates.map(|rate| {
            rate.map(|(count, per, burst)| Rate { count, per: Duration::from_nanos(per), burst })
        });
        let [host, net, site, total] =
            [0, 2, 4, 6].map(|index| Budget { packets: rates[index], bytes: rates[index + 1] });
        let config = LimiterConfig { host, net, site, total, reserved_percent, max_entries };
        let mut limiter = Limiter::new(&config, 1);
        let start = Instant::now();
        for &(time, source, bytes, action) in &steps {
            let now = start.checked_add(Duration::from_nanos(time)).unwrap_or(start);
            let source = std::net::Ipv6Addr::from_bits(source).into();
            match action {
                0 => limiter.set_config(&config),
                1 => limiter.set_config(&LimiterConfig { max_entries: 64, ..LimiterConfig::default() }),
                2 => { limiter.mark_known(now, source); }
                _ => { let _ = limiter.check(now, source, bytes); }
            }
        }
        let stats = limiter.stats();
        let checks = steps.iter().filter(|step| step.3 > 2).count() as u64;
        prop_assert_eq!(stats.allowed + stats.total_refused(), checks);
        prop_assert!(stats.known <= stats.hosts + stats.nets);
    }
}
