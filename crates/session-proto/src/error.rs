//! Why logins fail, messages are refused, and sessions end.

use crate::{ChannelFault, reason};

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// This side closed the session.
    #[error("closed")]
    Closed,
    /// The peer closed the session; a server may give a reason. The text comes from the network: escape it before it is
    /// shown.
    #[error("the other side closed the session: {0}")]
    ClosedByPeer(String),
    /// Nothing was received for the idle timeout (S29).
    #[error("timed out")]
    TimedOut,
    /// The same client has logged in again (S13).
    #[error("replaced by a new login")]
    Replaced,
    /// An encrypted session ends after 2^30 messages (S21): log in again.
    #[error("all message numbers are used up")]
    NumbersExhausted,
    /// Too many messages could not be decrypted (S30).
    #[error("too many messages could not be decrypted")]
    DecryptionFailures,
    /// The peer has not acknowledged anything for the ack timeout although there was something to acknowledge (W52).
    #[error("nothing was acknowledged for too long")]
    AckTimeout,
    /// A message is missing that the peer no longer has: the messages after it can never be delivered (W63).
    #[error("a message was lost for good")]
    Stalled,
    /// The peer acknowledges messages that it was never sent (W79).
    #[error("messages were acknowledged that had not been sent")]
    FalseAcks,
    /// The peer does not follow the message layer (W110).
    #[error(transparent)]
    Channels(ChannelFault),
    /// The task that drives an async client has panicked: a bug.
    #[error("the task that drives the session has panicked")]
    DriverPanicked,
}

/// Why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The send window is full: wait for the writable event (S26).
    #[error("the send window is full: wait until it is writable")]
    WouldBlock,
    /// The send window stayed full for the send timeout of the async API: the message is not sent (W52).
    #[error("the send window stayed full for too long")]
    TimedOut,
    /// The message is longer than a datagram of this session can carry (S33).
    #[error("a message of {length} bytes is too large: the limit is {limit} bytes; use a stream for more")]
    TooLarge {
        /// Maximum length in bytes.
        limit: usize,
        /// Length of the message in bytes.
        length: usize,
    },
    /// The message has no bytes (S15).
    #[error("a message needs at least one byte")]
    Empty,
    /// The session is closed or being closed.
    #[error("the session is closed")]
    Closed,
    /// The player does not exist, or no longer.
    #[error("no such player")]
    UnknownPlayer,
    /// The client is not logged in.
    #[error("not connected")]
    NotConnected,
    /// All message numbers are used up (S21).
    #[error("all message numbers of this session are used up: log in again")]
    NumbersExhausted,
    /// There is no such channel in this direction.
    #[error("there is no such channel in this direction")]
    NoChannel,
    /// The task that drives an async client or server has panicked: a bug.
    #[error("the task that drives the session has panicked")]
    DriverPanicked,
}

/// Why a login failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The server did not answer in time.
    #[error("no answer from the server")]
    TimedOut,
    /// The server refused the login. The reason comes from the network: escape it before it is shown.
    #[error("the server refused the login: {0}")]
    Refused(String),
    /// The server does not follow the message layer, or has another table of channels (W110).
    #[error("the server cannot be used: {0}")]
    Channels(ChannelFault),
}

impl LoginError {
    /// Whether a later login may succeed: there was no answer, the server is full, or the address has as many sessions as it
    /// may have (W50).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::TimedOut => true,
            Self::Channels(_) => false,
            Self::Refused(text) => reason::is_transient(text),
        }
    }
}
