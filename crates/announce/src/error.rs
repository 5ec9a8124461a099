//! Errors of announcing a server.

use crate::LobbyHost;
use rallypoint_udp::{BindError, EntropyError};
use rallypoint_wire::{DecodeError, lobby::EntryError};
use std::io;
use thiserror::Error;

/// A key, a value or the whole registration that cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnnounceError {
    /// The key or its value does not fit into a registration.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The registration would not be valid.
    #[error(transparent)]
    Invalid(#[from] DecodeError),
}

/// Why announcing could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AnnounceStartError {
    /// [`AnnounceConfig::lobbies`](crate::AnnounceConfig::lobbies) is empty.
    #[error("no lobby is configured")]
    NoLobby,
    /// A value of the configuration cannot be sent.
    #[error("the server cannot be announced: {key}: {error}")]
    InvalidKey {
        /// The key of the registration, such as `name`.
        key: String,
        /// The problem with its value.
        error: AnnounceError,
    },
    /// No address was found for any of the lobbies.
    #[error("cannot find the address of {}: check the name and the network connection", list(.0))]
    LobbyNotFound(Vec<LobbyHost>),
    /// Neither an IPv4 nor an IPv6 socket could be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// There are no random bytes for the server's ID.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The background thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// A text that does not name a lobby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected a name or an address, such as lobby.example.org, 203.0.113.1:29944 or [2001:db8::1]:29944")]
pub struct ParseLobbyHostError;

fn list(hosts: &[LobbyHost]) -> String {
    let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
    hosts.join(", ")
}
