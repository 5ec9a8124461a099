//! Addresses, budgets and random numbers for the tests.
#![allow(dead_code, reason = "every test uses its own part of this")]

use rallypoint_limit::{Budget, Decision, LimiterConfig, OverBudget, Rate, Scope, Unit};
use rallypoint_netsim::Rng;
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn packets(rate: Rate) -> Budget {
    Budget { packets: Some(rate), bytes: None }
}

pub fn bytes(rate: Rate) -> Budget {
    Budget { packets: None, bytes: Some(rate) }
}

/// No limits; a test sets those that it needs.
pub fn unlimited() -> LimiterConfig {
    LimiterConfig {
        host: Budget::UNLIMITED,
        net: Budget::UNLIMITED,
        site: Budget::UNLIMITED,
        total: Budget::UNLIMITED,
        ..LimiterConfig::default()
    }
}

pub fn refused(scope: Scope, unit: Unit) -> Decision {
    Decision::Refused(OverBudget { scope, unit })
}

/// Random sources: the same seed gives the same run.
pub struct TestRng(Rng);

impl TestRng {
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// A random IPv4 address outside 10.0.0.0/8, which the tests use for honest sources.
    pub fn v4(&mut self) -> IpAddr {
        loop {
            let address = Ipv4Addr::from_bits(self.next() as u32);
            if address.octets()[0] != 10 {
                return address.into();
            }
        }
    }

    /// A random IPv6 address in a network.
    pub fn v6_in(&mut self, network: &str, prefix: u32) -> IpAddr {
        let network = network.parse::<Ipv6Addr>().unwrap().to_bits();
        let random = u128::from(self.next()) << 64 | u128::from(self.next());
        Ipv6Addr::from_bits(network | random & (u128::MAX >> prefix)).into()
    }
}
