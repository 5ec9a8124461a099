//! Why a target gave no answer.

use crate::ask::{Exit, options::Family};
use rallypoint_query_proto::QueueError;
use rallypoint_wire::DecodeError;
use std::{io, net::IpAddr, time::Duration};

/// Why a target gave no answer, in a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The name has no address at all.
    #[error("the name cannot be found: is it right, and is there a network?")]
    NotFound,
    /// The name has addresses, but none of the wanted family.
    #[error("it has no {0} address: try without {flag}", flag = .0.flag())]
    NoAddress(Family),
    /// Nothing came.
    #[error("no answer within {}: does it run, and does a firewall let it through?", seconds(*.0))]
    TimedOut(Duration),
    /// The machine is there, but nothing listens.
    #[error("refused: nothing listens at that port; is it the right one, and does the server run?")]
    Refused,
    /// What came was no answer.
    #[error("its answer makes no sense: {0}")]
    Malformed(String),
    /// No answer can ever come from such an address.
    #[error(transparent)]
    NotAskable(#[from] QueueError),
    /// This machine cannot send there.
    #[error("this machine has no way to it: {0}")]
    NoRoute(String),
}

impl Trouble {
    /// For scripts.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::NoAddress(_) => "no_address",
            Self::TimedOut(_) => "timed_out",
            Self::Refused => "refused",
            Self::Malformed(_) => "malformed",
            Self::NotAskable(_) => "not_askable",
            Self::NoRoute(_) => "no_route",
        }
    }

    /// Where there is little room.
    pub const fn in_short(&self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::NoAddress(_) => "no address",
            Self::TimedOut(_) => "silent",
            Self::Refused => "refused",
            Self::Malformed(_) => "nonsense",
            Self::NotAskable(_) | Self::NoRoute(_) => "no way",
        }
    }

    /// What it means for the exit code.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::NotFound | Self::NoAddress(_) | Self::TimedOut(_) => Exit::Silent,
            Self::Malformed(_) => Exit::Malformed,
            Self::Refused => Exit::Refused,
            Self::NotAskable(_) | Self::NoRoute(_) => Exit::Local,
        }
    }

    /// How much it tells, compared to others about the same target.
    pub const fn weight(&self) -> u8 {
        match self {
            Self::NoRoute(_) => 0,
            Self::NotFound | Self::NoAddress(_) | Self::NotAskable(_) => 1,
            Self::TimedOut(_) => 2,
            Self::Refused => 3,
            Self::Malformed(_) => 4,
        }
    }

    /// What the system says of an address to which it cannot send.
    pub fn of_route(error: &io::Error, to: IpAddr) -> Self {
        Self::NoRoute(match error.kind() {
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => {
                format!("it has no {} connection", Family::of(to))
            }
            _ => plain(error),
        })
    }

    /// What a connection says that could not be made or used.
    pub fn of_io(error: &io::Error, patience: Duration) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut => Self::TimedOut(patience),
            io::ErrorKind::UnexpectedEof => Self::Malformed("it ends before it is complete".into()),
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
                Self::Malformed("the connection was cut off".into())
            }
            _ => Self::NoRoute(plain(error)),
        }
    }
}

impl From<DecodeError> for Trouble {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// A system's error without its number.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) { format!("{} ms", time.as_millis()) } else { format!("{} s", time.as_secs_f64()) }
}
