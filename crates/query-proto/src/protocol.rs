//! The query protocols: one file each, and the table that the rest of the crate is generated from.

mod bloodmasters;
mod session;
mod session_progress;

pub use bloodmasters::BloodmastersInfo;
pub use session::SessionInfo;

use crate::{Detail, MissingPart, RawReply, ServerInfo, secret::TableKey};
use rallypoint_wire::{DecodeError, bloodmasters::Echo};
use std::{fmt, str::FromStr};

/// A query protocol: everything that a [`Prober`](crate::Prober) has to know about it. Each file in this directory implements one.
///
/// The methods are called through the generated enums below, so that the hot path has no dynamic dispatch.
pub(crate) trait QueryProtocol {
    /// Name of the protocol in `x-query` and in URLs.
    const NAME: &'static str;
    /// UDP port of a server that is given without one.
    const DEFAULT_PORT: u16;
    /// Whether queries carry an echo value that replies repeat.
    const HAS_ECHO: bool;
    /// Whether some replies cannot be replies of any other protocol: see [`is_unmistakable`](Self::is_unmistakable).
    const HAS_UNMISTAKABLE_REPLIES: bool;

    /// A parsed datagram from a server.
    type Message<'a>;
    /// What has been received of a reply so far.
    type Progress: fmt::Debug + Default;

    /// Parses a datagram from a server.
    fn parse(bytes: &[u8]) -> Result<Self::Message<'_>, DecodeError>;

    /// Whether the datagram belongs to this protocol even if the same address is being probed with another one.
    fn is_unmistakable(message: &Self::Message<'_>) -> bool;

    /// The echo value that the datagram repeats, if the protocol has one.
    fn echo(message: &Self::Message<'_>) -> Option<Echo>;

    /// Appends the datagram for a request. `echo` is called only if the protocol has echo values.
    fn emit(request: Request, echo: impl FnOnce() -> Echo, out: &mut Vec<u8>);

    /// Whether a datagram quoted in an ICMP error could be one of the queries of this protocol.
    fn is_query(quoted: &[u8]) -> bool;

    /// Notes that the list of players has been requested.
    fn note_players_requested(_progress: &mut Self::Progress) {}

    /// Takes in a datagram. False if it adds nothing.
    fn accept(progress: &mut Self::Progress, message: &Self::Message<'_>, key: TableKey) -> bool;

    /// Whether the datagram may have changed which requests make sense.
    fn changes_requests(message: &Self::Message<'_>) -> bool;

    /// The parts that still have to be requested to satisfy a query of this detail.
    fn outstanding(progress: &Self::Progress, detail: Detail) -> Requests;

    /// Maps the reply to the common view, and names the parts that are missing.
    fn finish(progress: &Self::Progress, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>);
}

/// One request to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// For its description.
    Info,
    /// For its players.
    Players,
}

/// A set of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    pub info: bool,
    pub players: bool,
}

impl Requests {
    /// The first query to any server.
    pub const FIRST: Self = Self { info: true, players: false };

    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Removes and returns the next request.
    pub fn pop(&mut self) -> Request {
        if std::mem::take(&mut self.info) {
            return Request::Info;
        }
        self.players = false;
        Request::Players
    }
}

macro_rules! protocols {
    ($($(#[$doc:meta])* $name:ident => $implementation:ty,)+) => {
        /// A query protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Protocol {
            $($(#[$doc])* $name,)+
        }

        /// A parsed datagram from a server.
        pub(crate) enum Message<'a> {
            $($name(<$implementation as QueryProtocol>::Message<'a>),)+
        }

        /// What has been received of a reply so far.
        #[derive(Debug)]
        pub(crate) enum Progress {
            $($name(<$implementation as QueryProtocol>::Progress),)+
        }

        impl Protocol {
            /// All protocols.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Number of protocols.
            pub(crate) const COUNT: usize = Self::ALL.len();

            /// Name of the protocol in `x-query` and in URLs.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => <$implementation>::NAME,)+
                }
            }

            /// UDP port of a server that is given without one (B8, S34).
            #[must_use]
            pub const fn default_port(self) -> u16 {
                match self {
                    $(Self::$name => <$implementation>::DEFAULT_PORT,)+
                }
            }

            /// Whether replies repeat a value of the query that cannot be guessed.
            pub(crate) const fn has_echo(self) -> bool {
                match self {
                    $(Self::$name => <$implementation>::HAS_ECHO,)+
                }
            }

            pub(crate) fn emit(self, request: Request, echo: impl FnOnce() -> Echo, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name => <$implementation>::emit(request, echo, out),)+
                }
            }

            pub(crate) fn is_query(self, quoted: &[u8]) -> bool {
                match self {
                    $(Self::$name => <$implementation>::is_query(quoted),)+
                }
            }

            pub(crate) fn new_progress(self) -> Progress {
                match self {
                    $(Self::$name => Progress::$name(Default::default()),)+
                }
            }
        }

        /// Parses a datagram from an address that is being probed with the protocols for which `is_active` is true.
        ///
        /// A reply that can only be of one protocol belongs to that one, or to none if it is not active. Of any other
        /// datagram, the last active protocol in the table decides. `None` if the datagram belongs to no active protocol.
        pub(crate) fn parse(
            bytes: &[u8],
            is_active: impl Fn(Protocol) -> bool,
        ) -> Option<(Protocol, Result<Message<'_>, DecodeError>)> {
            let mut found = None;
            $(
                let protocol = Protocol::$name;
                let active = is_active(protocol);
                if active || <$implementation>::HAS_UNMISTAKABLE_REPLIES {
                    let parsed = <$implementation>::parse(bytes);
                    let is_unmistakable = parsed.as_ref().is_ok_and(<$implementation>::is_unmistakable);
                    if is_unmistakable || active {
                        found = active.then(|| (protocol, parsed.map(Message::$name)));
                    }
                    if is_unmistakable {
                        return found;
                    }
                }
            )+
            found
        }

        impl Message<'_> {
            pub fn echo(&self) -> Option<Echo> {
                match self {
                    $(Self::$name(message) => <$implementation>::echo(message),)+
                }
            }

            pub fn changes_requests(&self) -> bool {
                match self {
                    $(Self::$name(message) => <$implementation>::changes_requests(message),)+
                }
            }
        }

        impl Progress {
            pub fn note_players_requested(&mut self) {
                match self {
                    $(Self::$name(progress) => <$implementation>::note_players_requested(progress),)+
                }
            }

            /// Takes in a datagram. False if it adds nothing, or is of another protocol.
            pub fn accept(&mut self, message: &Message<'_>, key: TableKey) -> bool {
                match (self, message) {
                    $((Self::$name(progress), Message::$name(message)) => {
                        <$implementation>::accept(progress, message, key)
                    })+
                    _ => false,
                }
            }

            pub fn outstanding(&self, detail: Detail) -> Requests {
                match self {
                    $(Self::$name(progress) => <$implementation>::outstanding(progress, detail),)+
                }
            }

            pub fn finish(&self, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
                match self {
                    $(Self::$name(progress) => <$implementation>::finish(progress, detail, raw),)+
                }
            }
        }
    };
}

// The table of protocols. A new one goes before `Session`, which takes what no other protocol recognizes as its own.
protocols! {
    /// Document 002.
    Bloodmasters => bloodmasters::Bloodmasters,
    /// Document 003.
    Session => session::Session,
}

/// The name of the protocol, as in `x-query` and in URLs.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        Self::ALL.iter().copied().find(|protocol| protocol.as_str() == name).ok_or(UnknownProtocol)
    }
}

/// A name that is not the name of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol: use {}", Protocol::ALL.iter().map(|protocol| protocol.as_str()).collect::<Vec<_>>().join(" or "))]
pub struct UnknownProtocol;
