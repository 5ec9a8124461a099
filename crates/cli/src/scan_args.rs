//! The flags that all commands that scan have in common.

use crate::{error::CommandError, number::number, packet_log::PacketLog, units::parse_duration};
use rallypoint_query::{
    Family, ProbeEngine, ScanConfig, ScanError, Scanner, Target,
    proto::{Detail, ProberConfig},
};
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

/// How to scan.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Network options")]
pub struct ScanArgs {
    /// Time limit for an answer: 4s, 500ms, or a number of seconds
    #[arg(long, short = 't', value_name = "TIME", default_value = "4s", value_parser = time)]
    pub timeout: Duration,

    /// Maximum number of retries within that time
    #[arg(long, short = 'r', value_name = "N", default_value_t = 15, value_parser = number::<u8>(0..=15))]
    pub retries: u8,

    /// Wait before a retry; shorter if all retries would not fit into the time limit otherwise
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = time)]
    pub retry_after: Duration,

    /// Maximum number of datagrams sent per second, evenly spaced
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = number::<u32>(1..=10_000_000))]
    pub rate: u32,

    /// Use IPv4 only
    #[arg(short = '4', long = "ipv4", conflicts_with = "v6")]
    pub v4: bool,

    /// Use IPv6 only
    #[arg(short = '6', long = "ipv6")]
    pub v6: bool,

    /// Send from this local address, optionally with a port
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = source)]
    pub source: Option<SocketAddr>,

    /// Print every datagram on standard error, in hexadecimal
    #[arg(long)]
    pub debug: bool,

    /// Write every datagram to a file for packet analysers
    #[arg(long, value_name = "FILE.pcap")]
    pub capture: Option<PathBuf>,
}

/// Minimum time between two connections to a TCP server that has no query: a game takes each of them for a player.
pub const MIN_CONNECT_INTERVAL: Duration = Duration::from_secs(30);

impl ScanArgs {
    /// The settings of a scan that requests this detail; `None` reads lists only.
    pub fn config(&self, detail: Option<Detail>) -> ScanConfig {
        let family = match (self.v4, self.v6) {
            (true, _) => Some(Family::V4),
            (_, true) => Some(Family::V6),
            _ => None,
        };
        ScanConfig {
            timeout: self.timeout,
            retries: self.retries,
            retry_after: self.retry_after,
            packets_per_second: self.rate,
            family,
            source: self.source,
            detail,
            connect_tcp: false,
        }
    }

    /// Checks that the flags do not contradict each other.
    pub fn validate(&self) -> Result<(), CommandError> {
        self.config(None).validate().map_err(|error| self.describe(error.into()))
    }

    /// A scanner with these flags that scans repeatedly. It connects to TCP servers if it does so rarely.
    pub fn repeated_scanner(&self, targets: Vec<Target>, every: Duration) -> Result<Scanner, CommandError> {
        if every >= MIN_CONNECT_INTERVAL {
            self.scanner_with_tcp(targets, Some(Detail::Players))
        } else {
            self.scanner(targets, Some(Detail::Players))
        }
    }

    /// A scanner with these flags.
    pub fn scanner(&self, targets: impl Into<Arc<[Target]>>, detail: Option<Detail>) -> Result<Scanner, CommandError> {
        let observer = PacketLog::open(self)?;
        Scanner::with_observer(self.config(detail), targets, observer).map_err(|error| self.describe(error))
    }

    /// A scanner that also connects to TCP servers without a query, for their ping and to notice that they are down.
    pub fn scanner_with_tcp(
        &self,
        targets: impl Into<Arc<[Target]>>,
        detail: Option<Detail>,
    ) -> Result<Scanner, CommandError> {
        let observer = PacketLog::open(self)?;
        let config = ScanConfig { connect_tcp: true, ..self.config(detail) };
        Scanner::with_observer(config, targets, observer).map_err(|error| self.describe(error))
    }

    /// A probe engine with these flags.
    pub fn engine(&self, detail: Detail) -> Result<ProbeEngine, CommandError> {
        let observer = PacketLog::open(self)?;
        ProbeEngine::start(&self.config(Some(detail)), observer).map_err(|error| self.describe(error))
    }

    fn describe(&self, error: ScanError) -> CommandError {
        match error {
            ScanError::Config(error) => CommandError::Usage(error.to_string()),
            ScanError::Bind(error) if self.source.is_some() => CommandError::bind(&error, "--source"),
            error => CommandError::failed(error),
        }
    }
}

impl Default for ScanArgs {
    fn default() -> Self {
        let prober = ProberConfig::default();
        Self {
            timeout: prober.deadline,
            retries: prober.retries,
            retry_after: prober.retry_after,
            rate: prober.packets_per_second,
            v4: false,
            v6: false,
            source: None,
            debug: false,
            capture: None,
        }
    }
}

/// Parses a duration as users write it: `4s`, `500ms`, `1m 30s`; a number alone is in seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let range = Duration::from_millis(1)..=Duration::from_secs(3600);
    let time = seconds.or_else(|| parse_duration(text)).filter(|time| range.contains(time));
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
    struct Command {
        #[command(flatten)]
        scan: ScanArgs,
    }

    fn parse(args: &[&str]) -> ScanArgs {
        Command::try_parse_from([&["x"], args].concat()).unwrap().scan
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        assert_eq!(parse(&[]).config(Some(Detail::Info)), ScanConfig::default());
        assert_eq!(ScanArgs::default().config(Some(Detail::Info)), ScanConfig::default());
        assert!(parse(&[]).validate().is_ok());
    }

    #[test]
    fn a_source_address_must_be_of_the_only_family() {
        assert_eq!(parse(&["--source", "127.0.0.1"]).config(None).only_family(), Some(Family::V4));
        assert_eq!(parse(&["--source", "[::1]:7"]).config(None).only_family(), Some(Family::V6));
        assert!(parse(&["--source", "::1", "-4"]).validate().is_err());
        assert!(Command::try_parse_from(["x", "-4", "-6"]).is_err());
    }

    #[test]
    fn times_are_written_with_or_without_a_unit() {
        assert_eq!(time("2"), Ok(Duration::from_secs(2)));
        assert_eq!(time("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "2 hours", "nan", "1e99", "soon"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
