//! What came of asking a server.

use crate::{ServerInfo, Target};
use rallypoint_wire::{DecodeError, bloodmasters::Reply, session::ServerDatagram};
use std::{fmt, time::Duration};

/// What came of one [`Target`]. There is exactly one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Who was asked what.
    pub target: Target,
    /// What came of it.
    pub outcome: Outcome,
    /// How often it was asked again.
    pub retries: u8,
    /// How many datagrams from its address made no sense.
    pub malformed: u16,
}

/// What came of asking a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It answered, with all or with a part.
    Answered(Box<Answer>),
    /// What came from its address made no sense, and nothing better came: what was wrong with the last of it.
    Malformed(DecodeError),
    /// Nothing came before the deadline.
    TimedOut,
    /// The network says that nothing listens there.
    Refused,
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it says.
    pub info: ServerInfo,
    /// What it should have said too: a partial answer is an answer (B6, S9).
    pub missing: Vec<Missing>,
    /// How far away it is.
    pub round_trip: RoundTrip,
    /// The datagrams themselves, as they came.
    pub raw: Raw,
}

/// How long an answer took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The time from question to answer.
    pub time: Duration,
    /// How sure that is.
    pub measured: Measured,
}

/// How a [`RoundTrip`] was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// The echo tells which question was answered: exact.
    Echo,
    /// From the only question to the first datagram of the answer.
    FirstAnswer,
    /// It was asked several times, and nothing tells which question was answered: this is the time since the first one.
    AtMost,
}

/// Something that a server should have said and did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// One of the seven infos of document 003, as it numbers them, from 1 (S9).
    Info(u8),
    /// Some of the players (S10).
    Players {
        /// How many were told.
        told: u8,
        /// How many there are, if that was told.
        of: Option<u8>,
    },
    /// An answer of document 002 breaks off in this field (B6).
    From(DecodeError),
}

/// The datagrams of an answer, as they came.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Raw {
    /// Each with its length before it.
    framed: Vec<u8>,
}

impl Report {
    /// What it answered, if it did.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        match &self.outcome {
            Outcome::Answered(answer) => Some(answer),
            _ => None,
        }
    }
}

impl Answer {
    /// Whether nothing is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }
}

impl Raw {
    /// The datagrams, in the order of arrival. What counted for nothing (repeated infos, for example) is not among them.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.framed[..];
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk()?;
            let (datagram, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            rest = behind;
            Some(datagram)
        })
    }

    /// The reply of document 002, if this is one.
    #[must_use]
    pub fn bloodmasters(&self) -> Option<Reply<'_>> {
        self.datagrams().next().and_then(|datagram| Reply::parse(datagram).ok())
    }

    /// The datagrams of document 003, if they are such.
    pub fn session(&self) -> impl Iterator<Item = ServerDatagram<'_>> {
        self.datagrams().flat_map(ServerDatagram::parse)
    }

    /// Adds a datagram: no UDP datagram is longer than 65,535 bytes, and what would be is cut.
    pub(crate) fn push(&mut self, datagram: &[u8]) {
        let length = u16::try_from(datagram.len()).unwrap_or(u16::MAX);
        self.framed.reserve_exact(Self::size_of(datagram));
        self.framed.extend_from_slice(&length.to_le_bytes());
        self.framed.extend_from_slice(&datagram[..usize::from(length)]);
    }

    /// How many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.framed.len()
    }

    /// How many bytes a datagram takes.
    pub(crate) const fn size_of(datagram: &[u8]) -> usize {
        2 + datagram.len()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({} datagrams, {} bytes)", self.datagrams().count(), self.framed.len())
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PARTS: [&str; 7] =
            ["numbers and game", "name and description", "game name", "map", "mod ids", "mod names", "tags"];
        match self {
            Self::Info(number) => {
                let part = usize::from(*number).checked_sub(1).and_then(|index| PARTS.get(index));
                write!(f, "info {number} ({})", part.unwrap_or(&"unknown"))
            }
            Self::Players { of: None, .. } => f.write_str("players"),
            Self::Players { told, of: Some(of) } => write!(f, "{} of {of} players", of.saturating_sub(*told)),
            Self::From(error) => write!(f, "everything from {} on", error.field),
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Echo => "echo",
            Self::FirstAnswer => "first answer",
            Self::AtMost => "at most",
        })
    }
}
