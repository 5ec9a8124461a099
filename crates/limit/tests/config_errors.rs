//! An invalid configuration is reported with the value that is wrong and the valid range.

use crate::common;
use common::*;
use rallypoint_limit::{Budget, LimiterConfig, Rate};

fn error(change: impl FnOnce(&mut LimiterConfig)) -> String {
    let mut config = LimiterConfig::default();
    change(&mut config);
    config.validate().unwrap_err().to_string()
}

#[test]
fn the_default_is_valid() {
    assert_eq!(LimiterConfig::default().validate(), Ok(()));
    assert_eq!(unlimited().validate(), Ok(()));
}

#[test]
fn every_error_names_the_value_and_the_range() {
    for (message, expected) in [
        (
            error(|config| config.net.bytes = Some(Rate::per_second(0, 5))),
            "the limit of bytes per net: a rate of 0 lets nothing through: use at least 1, or a longer period",
        ),
        (
            error(|config| config.host.packets = Some(Rate::per_second(5, 0))),
            "the limit of packets per host: a burst of 0 lets nothing through: use at least 1",
        ),
        (
            error(|config| config.site.packets = Some(Rate { count: 1, per: secs(0), burst: 1 })),
            "the limit of packets per site: the period must be longer than 0 and at most a day",
        ),
        (
            error(|config| config.total = Budget { packets: None, bytes: Some(Rate::per_minute(1, u64::MAX)) }),
            "the limit of bytes in total: the burst takes longer than a day to refill: lower it or raise the rate",
        ),
        (error(|config| config.reserved_percent = 91), "91 % of the total reserved for known sources: use 0 to 90"),
        (error(|config| config.max_entries = 7), "a table of 7 sources: use 8 to 16777216"),
    ] {
        assert_eq!(message, expected);
    }
}
