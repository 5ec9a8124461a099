//! The limiter under arbitrary traffic: no panic, no growth, bounded work, and never more than the total budget.

use rallypoint_limit::{Budget, Limiter, LimiterConfig, Rate};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, Instant},
};

/// Maximum number of slots that one check may read, whatever the size of the tables.
const MAX_PROBES: u64 = 72;

/// The first five bytes are the budgets, followed by steps of six bytes: operation, advance of time, source, size.
pub fn run(data: &[u8]) {
    let Some((&[host, net, total, reserved, entries], script)) = data.split_first_chunk() else { return };
    let mut config = LimiterConfig {
        host: budget(host),
        net: budget(net),
        site: budget(net),
        total: budget(total),
        reserved_percent: reserved % 101,
        max_entries: 64 + usize::from(entries),
    };
    let mut limiter = Limiter::new(&config, 7);
    let start = Instant::now();
    let mut memory = limiter.memory();
    let mut now = start;
    let mut latest = start;
    let mut checks = 0;
    let mut allowed = 0;
    let mut is_steady = true;
    for step in script.chunks_exact(6) {
        let from = source(step[2], step[3], step[4]);
        match step[0] % 16 {
            13 => {
                config.host = budget(step[3]);
                config.total = budget(step[4]);
                config.max_entries = 64 + usize::from(step[5]);
                limiter.set_config(&config);
                (memory, is_steady) = (limiter.memory(), false);
            }
            14 => {
                let _ = limiter.mark_known(now, from);
            }
            15 => now = now.checked_sub(Duration::from_secs(u64::from(step[1]))).unwrap_or(now),
            _ => {
                // By up to a day at once; often not at all.
                now += Duration::from_millis(u64::from(step[1]).pow(3) * 5);
                let before = limiter.stats();
                let is_allowed = limiter.check(now, from, usize::from(step[5]) * 16).is_allowed();
                let after = limiter.stats();
                checks += 1;
                allowed += u64::from(is_allowed);
                assert!(after.probes - before.probes <= MAX_PROBES);
                if !is_allowed {
                    let held =
                        |stats: &rallypoint_limit::LimiterStats| (stats.hosts, stats.nets, stats.sites, stats.known);
                    assert_eq!(held(&before), held(&after), "a refusal leaves no trace");
                }
            }
        }
        // Time that goes backwards is a mistake of the caller, and changes no budget.
        latest = latest.max(now);
        assert_eq!(limiter.memory(), memory, "the tables do not grow");
    }
    let stats = limiter.stats();
    assert_eq!((stats.allowed, stats.allowed + stats.total_refused()), (allowed, checks));
    if let (true, Some(rate)) = (is_steady, config.total.packets) {
        // Every known source may have one packet in flight, even if the total is too small for that.
        let seats = 2 * config.max_entries as u64;
        let most = rate.burst + (latest - start).as_secs() * rate.count + rate.count + seats;
        assert!(allowed <= most, "{allowed} of at most {most} passed");
    }
}

fn budget(byte: u8) -> Budget {
    let rate = |count: u8| {
        (count > 0).then(|| Rate { count: u64::from(count), per: Duration::from_secs(1), burst: u64::from(count) * 4 })
    };
    Budget { packets: rate(byte >> 4), bytes: rate(byte << 4) }
}

fn source(kind: u8, net: u8, host: u8) -> IpAddr {
    match kind % 3 {
        0 => Ipv4Addr::new(192, 0, net, host).into(),
        1 => Ipv4Addr::new(192, 0, net, host).to_ipv6_mapped().into(),
        _ => Ipv6Addr::new(0x2001, 0xdb8, u16::from(kind), u16::from(net) << 4, 0, 0, 0, u16::from(host)).into(),
    }
}
