//! While everything fits in the tables, the limiter decides exactly like a naive model: buckets that are never evicted, in
//! whole numbers, with one map entry per prefix.

use crate::common;
use common::*;
use proptest::prelude::*;
use rallypoint_limit::{Budget, Decision, Limiter, LimiterConfig, OverBudget, Rate, Scope, Unit};
use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

#[derive(Default)]
struct Model {
    /// By prefix and unit: contents of the bucket, in 10^-9, and the time of the last change.
    buckets: HashMap<(String, Unit), (u128, Instant)>,
}

impl Model {
    fn check(&mut self, config: &LimiterConfig, now: Instant, source: IpAddr, bytes: u64) -> Decision {
        let text = match source.to_canonical() {
            IpAddr::V4(source) => {
                let [a, b, c, d] = source.octets();
                vec![(Scope::Host, format!("{a}.{b}.{c}.{d}")), (Scope::Net, format!("{a}.{b}.{c}"))]
            }
            IpAddr::V6(source) => {
                let hex: String = source.octets().map(|byte| format!("{byte:02x}")).concat();
                vec![(Scope::Host, hex[..].into()), (Scope::Net, hex[..14].into()), (Scope::Site, hex[..12].into())]
            }
        };
        let mut changes = Vec::new();
        for (scope, prefix) in text.into_iter().chain([(Scope::Total, "all".into())]) {
            let budget = match scope {
                Scope::Host => config.host,
                Scope::Net => config.net,
                Scope::Site => config.site,
                Scope::Total => config.total,
            };
            for (unit, rate, amount) in [(Unit::Packets, budget.packets, 1), (Unit::Bytes, budget.bytes, bytes)] {
                let Some(Rate { count, burst, .. }) = rate else { continue };
                let key = (format!("{scope} {prefix}"), unit);
                let full = u128::from(burst) * 1_000_000_000;
                let (level, since) = self.buckets.get(&key).copied().unwrap_or((full, now));
                let level = full.min(level + (now - since).as_nanos() * u128::from(count));
                let Some(left) = level.checked_sub(u128::from(amount) * 1_000_000_000) else {
                    return Decision::Refused(OverBudget { scope, unit });
                };
                changes.push((key, (left, now)));
            }
        }
        self.buckets.extend(changes);
        Decision::Allowed
    }
}

/// Rates per second whose interval is a whole number of nanoseconds, so that nothing is rounded.
fn rate(max: u64) -> impl Strategy<Value = Option<Rate>> {
    let counts: Vec<u64> = (1..=max).filter(|count| 1_000_000_000 % count == 0).collect();
    prop::option::weighted(0.8, (prop::sample::select(counts), 1..=max))
        .prop_map(|rate| rate.map(|(count, burst)| Rate::per_second(count, burst)))
}

fn budget(packets: u64) -> impl Strategy<Value = Budget> {
    (rate(packets), rate(packets * 1000)).prop_map(|(packets, bytes)| Budget { packets, bytes })
}

fn config() -> impl Strategy<Value = LimiterConfig> {
    (budget(8), budget(16), budget(20), budget(32)).prop_map(|(host, net, site, total)| {
        // Nothing is reserved: whether a source is known makes no difference here.
        LimiterConfig { host, net, site, total, reserved_percent: 0, max_entries: 4096 }
    })
}

/// Few enough sources to fill buckets, in prefixes of every kind.
fn source() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0..3_u8, 0..4_u8).prop_map(|(net, host)| IpAddr::from([192, 0, net, host])),
        (0..2_u8, 0..2_u8).prop_map(|(net, host)| ip(&format!("::ffff:192.0.{net}.{host}"))),
        (0..2_u8, 0..2_u8, 0..3_u8).prop_map(|(site, net, host)| ip(&format!("2001:db8:{site}:{net}00::{host}"))),
    ]
}

fn step() -> impl Strategy<Value = (Duration, IpAddr, usize)> {
    let pause = prop_oneof![
        3 => Just(Duration::ZERO),
        4 => (0..300_u64).prop_map(Duration::from_millis),
        2 => (0..3_000_000_000_u64).prop_map(Duration::from_nanos),
        1 => (0..100_000_u64).prop_map(Duration::from_secs),
    ];
    (pause, source(), prop_oneof![0..100_usize, 0..3000_usize])
}

proptest! {
    #[test]
    fn any_budgets_and_any_traffic(config in config(), seed: u128, steps in prop::collection::vec(step(), 1..400)) {
        let mut limiter = Limiter::new(&config, seed);
        let mut model = Model::default();
        let mut now = Instant::now();
        for (index, (pause, source, bytes)) in steps.into_iter().enumerate() {
            now += pause;
            let expected = model.check(&config, now, source, bytes as u64);
            prop_assert_eq!(limiter.check(now, source, bytes), expected, "step {} from {}", index, source);
        }
        prop_assert_eq!(limiter.stats().evicted, 0);
    }

    /// With rates that have to be rounded, never less than the rate passes, and never noticeably more.
    #[test]
    fn rounding_gives_away_almost_nothing(count in 1..3_000_000_u64, burst in 3..100_u64, amount in 1..1500_usize) {
        let config = LimiterConfig { host: bytes(Rate::per_second(count, burst * 1500)), ..unlimited() };
        let mut limiter = Limiter::new(&config, 1);
        let start = Instant::now();
        let mut passed = 0;
        for step in 0..200_u64 {
            while limiter.check(start + ms(step), ip("10.0.0.1"), amount).is_allowed() {
                passed += amount as u64;
            }
        }
        let exact = burst * 1500 + count * 199 / 1000;
        // Less than a nanosecond for each packet.
        let given = passed / amount as u64 * count / 1_000_000_000;
        prop_assert!(passed <= exact + given + 1, "{passed} of {exact}");
        prop_assert!(passed + amount as u64 > exact, "{passed} of {exact}");
    }
}
