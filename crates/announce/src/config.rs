//! Which server to announce, and to which lobbies.

use crate::{AnnounceStartError, Announcer, LobbyHost};
use rallypoint_wire::lobby::{ListId, Occupancy, ServerId, Transport};
use std::{num::NonZeroU16, time::Instant};

/// A game server, and the lobbies that it is registered with.
///
/// ```
/// use rallypoint_announce::{AnnounceConfig, Transport};
///
/// let mut config = AnnounceConfig::new("Bacon Town 24/7", 8190.try_into()?);
/// config.transport = Transport::Tcp;
/// config.keys.push(("map".into(), b"ctf_truefort".to_vec()));
/// config.lobbies = vec!["lobby.example.org".parse()?, "[2001:db8::1]:29944".parse()?];
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AnnounceConfig {
    /// Name of the server in the list. Cannot be empty.
    pub name: String,
    /// Port that players connect to. Lobbies take the address from the sender of the registration.
    pub port: NonZeroU16,
    /// Transport protocol of that port; default UDP. Lobbies connect to TCP servers before they list them (L12).
    pub transport: Transport,
    /// List of the lobby in which the server appears; default Gang Garrison 2.
    pub list_id: ListId,
    /// Lobbies to register with; at least one.
    pub lobbies: Vec<LobbyHost>,
    /// Slots, players, bots and password; default 0, 0, 0 and no.
    pub occupancy: Occupancy,
    /// Further keys: `game`, `map`, `protocol_id`, `x-...`. The whole registration should stay below 4,096 bytes, the
    /// limit of most lobbies (L15).
    pub keys: Vec<(String, Vec<u8>)>,
    /// Secret ID by which lobbies recognise the server; default random. A server that stores its ID and uses it again
    /// replaces its own entry after a crash. Anyone who knows it can unregister the server (L13).
    pub server_id: Option<ServerId>,
}

impl AnnounceConfig {
    /// A UDP server in the list of Gang Garrison 2, without lobbies yet.
    #[must_use]
    pub fn new(name: &str, port: NonZeroU16) -> Self {
        Self {
            name: name.to_owned(),
            port,
            transport: Transport::Udp,
            list_id: ListId::GANG_GARRISON_2,
            lobbies: Vec::new(),
            occupancy: Occupancy::default(),
            keys: Vec::new(),
            server_id: None,
        }
    }

    /// Checks that the server can be announced as described.
    ///
    /// # Errors
    /// [`AnnounceStartError::InvalidKey`] names the key that is wrong.
    pub fn validate(&self) -> Result<(), AnnounceStartError> {
        // The check depends neither on the ID nor on the time.
        self.announcer(ServerId::from_bytes([0; 16]), rallypoint_udp::clock::now()).map(drop)
    }

    /// Size of the registration in bytes. Lobbies accept 4,096 unless configured otherwise (L15).
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn registration_size(&self) -> Result<usize, AnnounceStartError> {
        Ok(self.announcer(ServerId::from_bytes([0; 16]), rallypoint_udp::clock::now())?.registration_size())
    }

    /// The state machine of this server, which does not know the addresses of its lobbies yet.
    pub(crate) fn announcer(&self, server_id: ServerId, now: Instant) -> Result<Announcer, AnnounceStartError> {
        let invalid = |key: &str| {
            let key = key.to_owned();
            |error| AnnounceStartError::InvalidKey { key, error }
        };
        let Self { list_id, transport, port, .. } = *self;
        let name = self.name.as_bytes();
        let mut announcer =
            Announcer::new(server_id, list_id, transport, port, name, Vec::new(), now).map_err(invalid("name"))?;
        announcer.set_occupancy(self.occupancy);
        for (key, value) in &self.keys {
            announcer.set_key(key.as_bytes(), value).map_err(invalid(key))?;
        }
        Ok(announcer)
    }
}
