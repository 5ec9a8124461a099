//! The limiter under any traffic: no panic, no growth, and a refusal always has a reason in the budgets.

use rallypoint_limit::{Budget, Config, Limiter, Rate};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, Instant},
};

/// A script: the first four bytes are the budgets, then steps of five bytes: how far time moves, who sends, how much.
pub fn run(data: &[u8]) {
    let Some((&[host, net, total, entries], script)) = data.split_first_chunk() else { return };
    let config = Config {
        host: budget(host),
        net: budget(net),
        site: budget(net),
        total: budget(total),
        max_entries: 64 + usize::from(entries),
        ..Config::default()
    };
    if config.validate().is_err() {
        return;
    }
    let mut limiter = Limiter::new(&config, 7);
    let memory = limiter.memory();
    let mut now = Instant::now();
    let (mut allowed, mut refused) = (0, 0);
    for step in script.chunks_exact(5) {
        // Time runs by up to a day at once; sometimes it stands still.
        now += Duration::from_millis(u64::from(step[0]).pow(2) * u64::from(step[0]) * 5);
        let bytes = usize::from(step[4]) * 16;
        if limiter.check(now, source(step[1], step[2], step[3]), bytes).is_allowed() {
            allowed += 1;
        } else {
            refused += 1;
        }
        if step[0] == 255 {
            limiter.set_config(&config);
        }
    }
    let stats = limiter.stats();
    assert_eq!((stats.allowed, stats.refused_in_all()), (allowed, refused));
    assert_eq!(limiter.memory(), memory, "the tables do not grow");
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
