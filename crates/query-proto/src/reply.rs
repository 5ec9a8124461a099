//! Results of probing a server.

use crate::{Probe, ServerInfo};
use rallypoint_wire::DecodeError;
use std::{fmt, time::Duration};

/// The result of one [`Probe`]. A [`Prober`](crate::Prober) emits exactly one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// The probe that this is the result of.
    pub probe: Probe,
    /// Whether the server answered, and what.
    pub outcome: ProbeOutcome,
    /// Number of retries after the first query.
    pub retries: u8,
    /// Number of datagrams from the server's address that could not be parsed.
    pub malformed: u16,
}

/// Whether a server answered a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// The server answered, completely or in part.
    Answered(Box<QueryReply>),
    /// Datagrams came from its address, but none could be parsed: the error in the last one.
    Malformed(DecodeError),
    /// No reply came before the deadline.
    TimedOut,
    /// The network reported that nothing listens at the address.
    Refused,
}

/// The reply of a server to a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryReply {
    /// The server as the reply describes it.
    pub info: ServerInfo,
    /// Parts of the reply that did not arrive. A partial reply still counts as a reply (B6, S9).
    pub missing: Vec<MissingPart>,
    /// Round-trip time to the server.
    pub round_trip: RoundTrip,
    /// The datagrams as received.
    pub raw: RawReply,
}

/// A round-trip time and how it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Time from query to reply.
    pub time: Duration,
    /// How the time was measured, which determines its accuracy.
    pub method: RttMethod,
}

/// How a [`RoundTrip`] was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttMethod {
    /// The reply repeats the echo value of one query: exact.
    Echo,
    /// From the only query to the first datagram of the reply.
    FirstReply,
    /// Several queries were sent and the reply does not identify one of them: time since the first, an upper bound.
    UpperBound,
    /// The time that a TCP connection took: for servers that are queried over one, or that have no query.
    Connect,
}

/// A part of a reply that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingPart {
    /// A part of the reply, as it is called in its protocol: one of the seven infos of document 003 (S9), for example.
    Part(&'static str),
    /// Some of the players (S10).
    Players {
        /// Number of players received.
        received: u16,
        /// Number of players on the server, if known.
        expected: Option<u16>,
    },
    /// The reply ends within this field (B6).
    Truncated(DecodeError),
}

/// Announces a message whose length does not fit into 16 bits.
const LONG: u16 = u16::MAX;

/// The datagrams of a reply, as received; over TCP and HTTP, its messages.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RawReply {
    /// Each datagram, preceded by its length (16 bits, little endian). A message that is longer than any datagram is preceded by
    /// `LONG` and its length (32 bits).
    framed: Vec<u8>,
}

impl ProbeResult {
    /// The reply, if the server answered.
    #[must_use]
    pub fn reply(&self) -> Option<&QueryReply> {
        match &self.outcome {
            ProbeOutcome::Answered(reply) => Some(reply),
            _ => None,
        }
    }
}

impl QueryReply {
    /// Whether every part of the reply arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }
}

impl RawReply {
    /// The datagrams in order of arrival, without those that added nothing (repeated infos, for example).
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.framed[..];
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk()?;
            let (length, behind) = match u16::from_le_bytes(*length) {
                LONG => {
                    behind.split_first_chunk().map(|(length, behind)| (u32::from_le_bytes(*length) as usize, behind))?
                }
                length => (usize::from(length), behind),
            };
            let (datagram, behind) = behind.split_at_checked(length)?;
            rest = behind;
            Some(datagram)
        })
    }

    /// Appends a datagram or message, of less than 4 GiB.
    pub(crate) fn push(&mut self, datagram: &[u8]) {
        let length = u16::try_from(datagram.len()).unwrap_or(LONG);
        self.framed.reserve_exact(Self::size_of(datagram));
        self.framed.extend_from_slice(&length.to_le_bytes());
        if length == LONG {
            self.framed.extend_from_slice(&(datagram.len() as u32).to_le_bytes());
        }
        self.framed.extend_from_slice(datagram);
    }

    /// Memory used, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.framed.len()
    }

    /// Memory that a datagram uses, in bytes.
    pub(crate) const fn size_of(datagram: &[u8]) -> usize {
        2 + datagram.len() + if datagram.len() >= LONG as usize { 4 } else { 0 }
    }
}

impl fmt::Debug for RawReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawReply({} datagrams, {} bytes)", self.datagrams().count(), self.framed.len())
    }
}

impl fmt::Display for MissingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(name) => f.write_str(name),
            Self::Players { expected: None, .. } => f.write_str("players"),
            Self::Players { received, expected: Some(expected) } => {
                write!(f, "{} of {expected} players", expected.saturating_sub(*received))
            }
            Self::Truncated(error) => write!(f, "everything from {} on", error.field),
        }
    }
}

impl fmt::Display for RttMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Echo => "echo",
            Self::FirstReply => "first reply",
            Self::UpperBound => "upper bound",
            Self::Connect => "connection",
        })
    }
}
