//! The flags that all commands which ask have in common.

use crate::{error::CommandError, number::number};
use jiff::SignedDuration;
use rallypoint_query_proto::ProberConfig;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

/// How to ask.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "How to ask")]
pub struct Asking {
    /// How long to wait for an answer: 4s, 500ms, or a number of seconds
    #[arg(long, short = 't', value_name = "TIME", default_value = "4s", value_parser = time)]
    pub timeout: Duration,

    /// How often to ask again who does not answer, within that time
    #[arg(long, short = 'r', value_name = "N", default_value_t = 15, value_parser = number::<u8>(0..=15))]
    pub retries: u8,

    /// How long to wait before asking again; less if all retries would not fit into the time otherwise
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = time)]
    pub retry_after: Duration,

    /// How many datagrams to send in a second, evenly
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = number::<u32>(1..=10_000_000))]
    pub rate: u32,

    /// Use only IPv4
    #[arg(short = '4', long = "ipv4", conflicts_with = "v6")]
    pub v4: bool,

    /// Use only IPv6
    #[arg(short = '6', long = "ipv6")]
    pub v6: bool,

    /// Send from this address of this machine, with a port if it matters
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = source)]
    pub source: Option<SocketAddr>,

    /// Show every datagram, in hexadecimal digits, on standard error
    #[arg(long)]
    pub debug: bool,

    /// Write every datagram to a file that packet analysers read
    #[arg(long, value_name = "FILE.pcap")]
    pub capture: Option<PathBuf>,
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Asking {
    /// One question by any family, and so long a wait for the answer.
    pub fn once(timeout: Duration) -> Self {
        Self {
            timeout,
            retries: 0,
            retry_after: timeout,
            rate: 1,
            v4: false,
            v6: false,
            source: None,
            debug: false,
            capture: None,
        }
    }

    /// The family that is wanted, if only one is.
    pub fn family(&self) -> Option<Family> {
        match (self.v4, self.v6, self.source) {
            (true, ..) => Some(Family::V4),
            (_, true, _) => Some(Family::V6),
            (_, _, Some(source)) => Some(Family::of(source.ip())),
            _ => None,
        }
    }

    /// What contradicts itself.
    pub fn validate(&self) -> Result<(), CommandError> {
        let source = self.source.map(|source| Family::of(source.ip()));
        if source.is_some_and(|source| Some(source) != self.family()) {
            return Err(CommandError::Usage("--source is an address of the other family than -4 or -6 says".into()));
        }
        self.prober().validate().map_err(|error| CommandError::Usage(error.to_string()))
    }

    /// How the prober asks.
    pub fn prober(&self) -> ProberConfig {
        let default = ProberConfig::default();
        // All retries fit into the first seven eighths of the time, so that the last one can still be answered.
        let shares: f64 = (0..self.retries).map(|n| default.backoff.powi(n.into())).sum();
        let fits = self.timeout.mul_f64(0.875 / shares.max(1.0)).max(Duration::from_millis(1));
        ProberConfig {
            packets_per_second: self.rate,
            deadline: self.timeout,
            retries: self.retries,
            retry_after: self.retry_after.min(fits),
            ..default
        }
    }
}

impl Family {
    pub const fn of(ip: IpAddr) -> Self {
        if ip.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// Whether an address is of the wanted family, if only one is wanted.
    pub fn fits(wanted: Option<Self>, ip: IpAddr) -> bool {
        wanted.is_none_or(|family| family == Self::of(ip))
    }

    /// The flag that asks for this family only.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
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

/// A length of time as people write it: `4s`, `500ms`, `1m 30s`; a number alone is seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let parse = || text.parse::<SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
    let range = Duration::from_millis(1)..=Duration::from_secs(3600);
    let time = seconds.or_else(parse).filter(|time| range.contains(time));
    time.ok_or_else(|| "expected a time from 1ms to 1h, such as 4s or 500ms".into())
}

fn source(text: &str) -> Result<SocketAddr, &'static str> {
    let ip = || text.trim_start_matches('[').trim_end_matches(']').parse().map(|ip: IpAddr| SocketAddr::new(ip, 0));
    text.parse().or_else(|_| ip()).map_err(|_| "expected an address of this machine, such as 192.0.2.1 or 2001:db8::1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        asking: Asking,
    }

    fn parse(args: &[&str]) -> Asking {
        Only::try_parse_from([&["x"], args].concat()).unwrap().asking
    }

    #[test]
    fn the_defaults_are_those_of_the_prober() {
        assert_eq!(parse(&[]).prober(), ProberConfig::default());
        assert!(parse(&[]).validate().is_ok());
    }

    #[test]
    fn retries_fit_into_the_time() {
        assert_eq!(parse(&["--retry-after", "500ms", "-r", "3"]).prober().retry_after, Duration::from_millis(500));
        for args in [
            &["-t", "100ms"][..],
            &["-t", "1", "-r", "15"],
            &["-t", "10s"],
            &["-t", "1ms"],
            &["-r", "0"],
            &["--retry-after", "1h"],
        ] {
            let asking = parse(args);
            asking.validate().unwrap();
            let config = asking.prober();
            let waits = (0..config.retries).map(|n| config.retry_after.mul_f64(config.backoff.powi(n.into())));
            assert!(waits.sum::<Duration>() < config.deadline.max(Duration::from_millis(20)), "{args:?}");
        }
    }

    #[test]
    fn a_source_says_the_family() {
        assert_eq!(parse(&["--source", "127.0.0.1"]).family(), Some(Family::V4));
        assert_eq!(parse(&["--source", "[::1]:7"]).family(), Some(Family::V6));
        assert!(parse(&["--source", "::1", "-4"]).validate().is_err());
        assert!(Only::try_parse_from(["x", "-4", "-6"]).is_err());
    }

    #[test]
    fn times_are_written_as_people_do() {
        assert_eq!(time("2"), Ok(Duration::from_secs(2)));
        assert_eq!(time("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "2 hours", "nan", "1e99", "soon"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
