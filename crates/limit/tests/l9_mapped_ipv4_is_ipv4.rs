//! A dual-stack socket reports IPv4 sources as IPv4-mapped IPv6 addresses, which count as the same sources (L9).

use crate::common;
use common::*;
use rallypoint_limit::{Decision, Host, Limiter, LimiterConfig, Net, Rate, Scope, Site, Unit};
use std::time::Instant;

#[test]
fn l9_both_forms_use_one_budget() {
    let config = LimiterConfig {
        host: packets(Rate::per_minute(1, 1)),
        net: packets(Rate::per_minute(1, 2)),
        ..LimiterConfig::default()
    };
    let mut limiter = Limiter::new(&config, 1);
    let now = Instant::now();
    assert_eq!(limiter.check(now, ip("::ffff:192.0.2.1"), 100), Decision::Allowed);
    assert_eq!(limiter.check(now, ip("192.0.2.1"), 100), refused(Scope::Host, Unit::Packets));
    assert_eq!(limiter.check(now, ip("192.0.2.2"), 100), Decision::Allowed);
    assert_eq!(limiter.check(now, ip("::ffff:192.0.2.3"), 100), refused(Scope::Net, Unit::Packets));
    assert_eq!(limiter.check(now, ip("::ffff:192.0.3.1"), 100), Decision::Allowed, "another /24");
    assert_eq!(limiter.stats().sites, 0);
}

#[test]
fn l9_both_forms_are_one_prefix() {
    let plain = ip("192.0.2.1");
    let mapped = ip("::ffff:192.0.2.1");
    assert_eq!(Host::of(plain), Host::of(mapped));
    assert_eq!(Net::of(plain), Net::of(mapped));
    assert_eq!(Site::of(plain), Site::of(mapped));
}
