//! Settings of a scan.

use rallypoint_query_proto::{Detail, ProberConfig, ProberConfigError};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Settings of a [`Scanner`](crate::Scanner) and of everything it uses.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanConfig {
    /// Time limit for a probe, for connecting to a list, and for every pause while a list arrives. From 1 ms to an hour;
    /// default 4 s.
    pub timeout: Duration,
    /// Maximum number of retries for a server that has not answered. From 0 to 15; default 15.
    pub retries: u8,
    /// Wait before the first retry; shortened if all retries would not fit into the timeout otherwise. From 1 ms to an hour;
    /// default 200 ms.
    pub retry_after: Duration,
    /// Maximum number of datagrams sent per second, evenly spaced. From 1 to 10,000,000; default 2,000.
    pub packets_per_second: u32,
    /// Restricts the scan to one address family; default both.
    pub family: Option<Family>,
    /// Local address to send from, with a port for datagrams or 0 for any. It also restricts the family. Default any.
    pub source: Option<SocketAddr>,
    /// The detail to request from servers; `None` reads lists only and sends no datagrams. Default [`Detail::Info`].
    pub detail: Option<Detail>,
    /// Whether to connect to listed TCP servers that have no query, to measure their round-trip time. Default false: the
    /// server sees a player that leaves at once.
    pub connect_tcp: bool,
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A contradiction in a [`ScanConfig`], or a field that is out of range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanConfigError {
    /// [`ScanConfig::source`] is not of the family [`ScanConfig::family`].
    #[error("the source address is not an {0} address")]
    SourceFamily(Family),
    /// A field is out of range.
    #[error(transparent)]
    Prober(#[from] ProberConfigError),
}

impl ScanConfig {
    /// A configuration that sends each query once and waits this long for the reply.
    #[must_use]
    pub fn without_retries(timeout: Duration) -> Self {
        Self { timeout, retries: 0, retry_after: timeout, packets_per_second: 1, ..Self::default() }
    }

    /// Checks that every field is in range and that they do not contradict each other.
    ///
    /// # Errors
    /// Names the first problem.
    pub fn validate(&self) -> Result<(), ScanConfigError> {
        if let (Some(family), Some(source)) = (self.family, self.source)
            && family != Family::of(source.ip())
        {
            return Err(ScanConfigError::SourceFamily(family));
        }
        Ok(self.prober().validate()?)
    }

    /// The only family to use, if there is a restriction.
    #[must_use]
    pub fn only_family(&self) -> Option<Family> {
        self.family.or_else(|| self.source.map(|source| Family::of(source.ip())))
    }

    /// The settings of the prober.
    #[must_use]
    pub fn prober(&self) -> ProberConfig {
        let default = ProberConfig::default();
        // All retries fit into the first seven eighths of the time, so that the last one can still be answered.
        let shares: f64 = (0..self.retries).map(|n| default.backoff.powi(n.into())).sum();
        let longest = self.timeout.mul_f64(0.875 / shares.max(1.0)).max(Duration::from_millis(1));
        ProberConfig {
            packets_per_second: self.packets_per_second,
            deadline: self.timeout,
            retries: self.retries,
            retry_after: self.retry_after.min(longest),
            ..default
        }
    }
}

impl Default for ScanConfig {
    fn default() -> Self {
        let prober = ProberConfig::default();
        Self {
            timeout: prober.deadline,
            retries: prober.retries,
            retry_after: prober.retry_after,
            packets_per_second: prober.packets_per_second,
            family: None,
            source: None,
            detail: Some(Detail::Info),
            connect_tcp: false,
        }
    }
}

impl Family {
    /// The family of an address.
    #[must_use]
    pub const fn of(ip: IpAddr) -> Self {
        if ip.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Whether an address is allowed by a restriction to one family.
    #[must_use]
    pub fn allows(only: Option<Self>, ip: IpAddr) -> bool {
        only.is_none_or(|family| family == Self::of(ip))
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_prober() {
        assert_eq!(ScanConfig::default().prober(), ProberConfig::default());
        assert_eq!(ScanConfig::default().validate(), Ok(()));
    }

    #[test]
    fn retries_fit_into_the_timeout() {
        let config = |timeout_ms, retries, retry_after_ms| ScanConfig {
            timeout: Duration::from_millis(timeout_ms),
            retries,
            retry_after: Duration::from_millis(retry_after_ms),
            ..ScanConfig::default()
        };
        assert_eq!(config(4_000, 3, 500).prober().retry_after, Duration::from_millis(500));
        for config in [
            config(100, 15, 200),
            config(1_000, 15, 200),
            config(10_000, 15, 200),
            config(1, 15, 200),
            config(4_000, 0, 200),
            config(4_000, 15, 3_600_000),
        ] {
            config.validate().unwrap();
            let prober = config.prober();
            let waits = (0..prober.retries).map(|n| prober.retry_after.mul_f64(prober.backoff.powi(n.into())));
            assert!(waits.sum::<Duration>() < prober.deadline.max(Duration::from_millis(20)), "{config:?}");
        }
    }

    #[test]
    fn a_source_address_restricts_the_family() {
        let source = |text: &str| ScanConfig { source: text.parse().ok(), ..ScanConfig::default() };
        assert_eq!(source("127.0.0.1:0").only_family(), Some(Family::V4));
        assert_eq!(source("[::1]:7").only_family(), Some(Family::V6));
        let contradiction = ScanConfig { family: Some(Family::V4), ..source("[::1]:0") };
        assert_eq!(contradiction.validate(), Err(ScanConfigError::SourceFamily(Family::V4)));
    }
}
