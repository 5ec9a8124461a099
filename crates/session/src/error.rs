//! Why a server cannot start, and why a client does not get in.

use rallypoint_session_proto::{ConfigError, LoginError};
use rallypoint_udp::{BindError, EntropyError};
use std::io;
use thiserror::Error;

/// Why a server or client cannot be set up: a setting is invalid, or the system gives no socket or no random bytes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A setting is out of its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The addresses to listen at cannot be used together.
    #[error("a server listens at one address, or at one of IPv4 and one of IPv6")]
    Listen,
    /// The longest message of a stream is out of range.
    #[error("the longest message of a stream is {length}: use 1 to 268435455")]
    Stream {
        /// What was asked for.
        length: usize,
    },
    /// A stream is in order, or it is none.
    #[error("a stream needs messages in order: set `ordered`")]
    Unordered,
    /// A socket cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// There are no random bytes to make keys from.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// Why a client is not connected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no socket, or a setting is wrong.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The name of the server has no address.
    #[error("the server's name has no address: {0}")]
    NotFound(io::Error),
    /// The server said no, or nothing.
    #[error(transparent)]
    Login(#[from] LoginError),
}

/// A client was closed before the server had acknowledged everything: the last messages may not have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server did not acknowledge everything: the last messages may not have arrived")]
pub struct NotAcknowledged;
