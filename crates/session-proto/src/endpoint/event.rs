//! What a server is told, and what it can count.

use crate::Reason;
use rallypoint_wire::session::{SlotIndex, Uid};
use std::{fmt, net::SocketAddr};

/// A player: a slot, and which of its sessions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlayerId {
    pub(super) index: SlotIndex,
    pub(super) uid: Uid,
}

/// What a server is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A player is here.
    Connected {
        /// Who.
        player: PlayerId,
        /// The name, without control characters.
        username: String,
        /// The game that was asked for.
        game: String,
    },
    /// There are messages to [`recv`](crate::Endpoint::recv).
    Readable(PlayerId),
    /// After [`SendError::WouldBlock`](crate::SendError::WouldBlock): there is room again.
    Writable(PlayerId),
    /// A datagram says that the player goes. Nothing proves it: either [`Disconnected`](Self::Disconnected) follows, or it
    /// was forged and nothing does (S28).
    Closing(PlayerId),
    /// The player has another address (S31).
    Moved(PlayerId, SocketAddr),
    /// The player is gone.
    Disconnected(PlayerId, Reason),
}

/// What an endpoint has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams that came.
    pub datagrams: u64,
    /// Those of them that no one sends who knows the protocol.
    pub malformed: u64,
    /// Those of them that belong to no session.
    pub strays: u64,
    /// Bytes sent to addresses that have proved nothing (S11).
    pub unproven_bytes: u64,
    /// Queries that were not answered because of the budget.
    pub queries_refused: u64,
    /// Logins answered with success, repeated ones included.
    pub logins_granted: u64,
    /// Logins answered with a bad login.
    pub logins_refused: u64,
    /// Logins that were forgotten before their first message, because too many others came.
    pub logins_evicted: u64,
    /// Logins that wait for their first message.
    pub half_open: usize,
    /// Players.
    pub players: usize,
    /// Bytes of messages that are kept.
    pub memory: usize,
}

impl PlayerId {
    /// The player's slot: 0 to 254.
    #[must_use]
    pub fn index(self) -> SlotIndex {
        self.index
    }
}

impl fmt::Debug for PlayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "player {}", self.index.get())
    }
}
