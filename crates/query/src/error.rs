//! Errors of probes, of lists, and of starting a scan.

use crate::{Family, config::ScanConfigError};
use rallypoint_query_proto::QueueError;
use rallypoint_udp::{BindError, EntropyError};
use rallypoint_wire::DecodeError;
use std::{io, net::IpAddr, time::Duration};

/// Why a target gave no answer, as a sentence with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The name does not resolve to any address.
    #[error("the name cannot be resolved: is it correct, and is there a network connection?")]
    NotFound,
    /// The name resolves, but not to an address of the only family allowed.
    #[error("it has no {0} address: allow the other address family, too")]
    NoAddress(Family),
    /// No reply arrived.
    #[error("no answer within {}: is it running, and does a firewall let it through?", seconds(*.0))]
    TimedOut(Duration),
    /// The machine answers, but nothing listens at the port.
    #[error("refused: nothing listens at that port; is it the right one, and is the server running?")]
    Refused,
    /// The reply could not be parsed.
    #[error("invalid reply: {0}")]
    Malformed(String),
    /// The address leads to a copy of a lobby's list, which has to be read as that of a mirror, so that it can be verified.
    #[error("it is a static copy of a lobby's list, not the lobby")]
    StaticCopy,
    /// No reply can ever come from such an address, or too many probes are queued.
    #[error(transparent)]
    NotProbed(#[from] QueueError),
    /// This machine cannot send there.
    #[error("this machine cannot reach it: {0}")]
    NoRoute(String),
    /// The connection could not be encrypted, or the server's certificate is not trusted.
    #[error("no secure connection: {0}")]
    Tls(String),
}

/// Why a scan could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ScanConfigError),
    /// A socket could not be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system has no random numbers.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The thread that probes could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

impl ProbeError {
    /// A stable identifier, for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::NoAddress(_) => "no_address",
            Self::TimedOut(_) => "timed_out",
            Self::Refused => "refused",
            Self::Malformed(_) => "malformed",
            Self::StaticCopy => "static_copy",
            Self::NotProbed(_) => "unusable_address",
            Self::NoRoute(_) => "no_route",
            Self::Tls(_) => "tls_failed",
        }
    }

    /// How informative the error is, compared with errors of other addresses or protocols of the same target:
    /// the highest is reported.
    pub(crate) const fn weight(&self) -> u8 {
        match self {
            Self::NoRoute(_) => 0,
            Self::NotFound | Self::NoAddress(_) | Self::NotProbed(_) => 1,
            Self::TimedOut(_) => 2,
            Self::Refused => 3,
            Self::Malformed(_) | Self::StaticCopy | Self::Tls(_) => 4,
        }
    }

    /// The system's error about an address that it has no route to.
    pub(crate) fn from_route(error: &io::Error, to: IpAddr) -> Self {
        Self::NoRoute(match error.kind() {
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => {
                format!("it has no {} connection", Family::of(to))
            }
            _ => plain(error),
        })
    }

    /// The system's error about a TCP connection.
    #[must_use]
    pub fn from_tcp(error: &io::Error, timeout: Duration) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut => Self::TimedOut(timeout),
            io::ErrorKind::UnexpectedEof => Self::incomplete(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
                Self::Malformed("the connection was cut off".into())
            }
            _ => Self::NoRoute(plain(error)),
        }
    }

    /// A reply that ends too early.
    pub(crate) fn incomplete() -> Self {
        Self::Malformed("it ends before it is complete".into())
    }
}

impl From<DecodeError> for ProbeError {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// A system's error without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) { format!("{} ms", time.as_millis()) } else { format!("{} s", time.as_secs_f64()) }
}
