//! A configuration that can't work says which number is wrong and what would be right.

mod common;
use common::*;
use rallypoint_limit::{Budget, LimiterConfig, Rate};

fn mistake(change: impl FnOnce(&mut LimiterConfig)) -> String {
    let mut config = LimiterConfig::default();
    change(&mut config);
    config.validate().unwrap_err().to_string()
}

#[test]
fn the_default_has_none() {
    assert_eq!(LimiterConfig::default().validate(), Ok(()));
    assert_eq!(unlimited().validate(), Ok(()));
}

#[test]
fn each_with_its_place() {
    for (said, expected) in [
        (
            mistake(|config| config.net.bytes = Some(Rate::per_second(0, 5))),
            "the limit of bytes per net: a rate of 0 lets nothing through: use at least 1, or a longer period",
        ),
        (
            mistake(|config| config.host.packets = Some(Rate::per_second(5, 0))),
            "the limit of packets per host: a burst of 0 lets nothing through: use at least 1",
        ),
        (
            mistake(|config| config.site.packets = Some(Rate { count: 1, per: secs(0), burst: 1 })),
            "the limit of packets per site: the period must be longer than nothing and at most a day",
        ),
        (
            mistake(|config| config.total = Budget { packets: None, bytes: Some(Rate::per_minute(1, u64::MAX)) }),
            "the limit of bytes in total: the burst takes longer than a day to come back: lower it or raise the rate",
        ),
        (mistake(|config| config.reserved_percent = 91), "91 % of the total kept for known sources: use 0 to 90"),
        (mistake(|config| config.max_entries = 7), "7 sources to remember: use 8 to 16777216"),
    ] {
        assert_eq!(said, expected);
    }
}
