//! Why things end, and why they are refused.

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// This side closed it.
    #[error("closed")]
    Closed,
    /// The peer closed it, and a server may have said why. The text is the peer's: make it harmless before it is shown.
    #[error("the other side closed the session: {0}")]
    ClosedByPeer(String),
    /// Nothing came for too long (S29).
    #[error("timed out")]
    TimedOut,
    /// The same client has logged in again (S13).
    #[error("replaced by a new login")]
    Replaced,
    /// An encrypted session is over after 2^30 messages (S21): log in again.
    #[error("all message numbers are used up")]
    UsedUp,
    /// Too many messages did not open (S30).
    #[error("too many messages that were not sealed by the other side")]
    Forged,
}

/// Why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The window is full: wait for the writable event (S26).
    #[error("the send window is full: wait until it is writable")]
    WouldBlock,
    /// The message is longer than a datagram of this session can carry (S33).
    #[error("at most {limit} bytes fit into a message, but there are {length}: use a stream for more")]
    TooLarge {
        /// How long it can be.
        limit: usize,
        /// How long it is.
        length: usize,
    },
    /// There is nothing in it (S15).
    #[error("a message has at least one byte")]
    Empty,
    /// The session is closed or being closed.
    #[error("the session is closed")]
    Closed,
    /// There is no such player, or no longer.
    #[error("no such player")]
    UnknownPlayer,
    /// The client has not logged in yet.
    #[error("not connected")]
    NotConnected,
    /// All message numbers are used up (S21).
    #[error("all message numbers of this session are used up: log in again")]
    UsedUp,
}
