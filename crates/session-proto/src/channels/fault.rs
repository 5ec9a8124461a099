//! Why a peer that does not follow the message layer is disconnected.

use super::TokenError;

/// A protocol violation that no correct peer commits. The session ends, with this as the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelFault {
    /// The first message is not a hello.
    #[error("the first message is not a hello")]
    NoHello,
    /// A version of the message layer that is not supported.
    #[error("version {0} of the message layer is not supported: use version 1")]
    Version(u8),
    /// The tables of channels differ.
    #[error("the tables of channels differ at channel {0}")]
    Table(u8),
    /// The token is missing or invalid.
    #[error("{0}")]
    Token(TokenError),
    /// A payload that cannot be read.
    #[error("a malformed message: {0}")]
    Malformed(&'static str),
    /// A message on a channel that does not exist in this direction.
    #[error("a message on channel {0}, which does not exist in this direction")]
    Channel(u8),
    /// A message that is larger than its channel allows.
    #[error("a message on channel {0} that is larger than the channel allows")]
    TooLarge(u8),
    /// A message that was received before, or that is too far ahead.
    #[error("a message on channel {0} out of range")]
    OutOfRange(u8),
    /// More unfinished messages than a correct peer can have.
    #[error("too many unfinished messages")]
    Unfinished,
    /// The unfinished messages of all players take too much of the server's memory, and those of this player the most.
    #[error("the server has no memory for such large messages now")]
    Memory,
    /// Receipts are not taken.
    #[error("too many receipts are waiting")]
    Receipts,
}
