//! Why a server or a client cannot be set up, and why a client cannot connect.

use rallypoint_session_proto::{LoginError, SessionConfigError};
use rallypoint_udp::{BindError, EntropyError};
use std::io;
use thiserror::Error;

/// Why a server or client cannot be set up: a setting is invalid, or the system gives no socket or no random bytes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] SessionConfigError),
    /// The addresses to listen on cannot be used together.
    #[error("a server listens on one address, or on one IPv4 and one IPv6 address")]
    ListenAddrs,
    /// A socket cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system gives no random bytes to make keys from.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// Why a client cannot connect.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The client cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The server's name cannot be resolved.
    #[error("the server's name has no address: {0}")]
    Resolve(io::Error),
    /// The server refused the login, or did not answer.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The client's task has panicked.
    #[error(transparent)]
    DriverPanicked(#[from] DriverPanicked),
}

/// The task that drives an async client or server has panicked: that is a bug in this library, and its sessions have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the task that drives the session has panicked")]
pub struct DriverPanicked;

/// A client was closed before the server had acknowledged everything: the last messages may not have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server did not acknowledge everything: the last messages may not have arrived")]
pub struct NotAcknowledged;
