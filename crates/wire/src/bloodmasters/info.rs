//! The parts of a reply that do not depend on the number of clients.
//!
//! ```text
//! Length of server title, Server title         strings: see `string`
//! True when locked with a password (boolean)   not 0 = true, written as 0 or 1 (B5)
//! Length of website URL, Website URL
//! Maximum clients (uint8)
//! Maximum players (uint8)
//! Game type (uint8)
//! Length of short map name, Short map name
//! Current number of clients (uint8)
//! Current number of players (uint8)
//! Protocol version (uint8)
//! -- protocol version 27 and higher (B6)
//! Score limit (int16)
//! Time limit (int16)
//! True when forced to join smallest team (boolean)
//! ```

use super::{GameType, string};
use crate::{DecodeError, Reader, Writer};

/// Description of a server, in every protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    /// Server name, as bytes: ASCII from real servers (B2).
    pub title: &'a [u8],
    /// Whether a password is required.
    pub locked: bool,
    /// Website URL; may be empty.
    pub website: &'a [u8],
    /// Maximum number of clients.
    pub max_clients: u8,
    /// Maximum number of players.
    pub max_players: u8,
    /// Game type.
    pub game_type: GameType,
    /// Short name of the map.
    pub map_name: &'a [u8],
    /// Number of players; the number of clients is [`Clients::count`](super::Clients::count).
    pub players: u8,
    /// Protocol version, which determines the fields that follow (B6).
    pub protocol: u8,
}

/// Rules of the game, since protocol version 27.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Score that ends a game; 0 means none.
    pub score_limit: i16,
    /// Time limit in minutes; 0 means none.
    pub time_limit: i16,
    /// Whether players are forced to join the smallest team.
    pub join_smallest: bool,
}

impl Info<'_> {
    /// Protocol version of real servers.
    pub const PROTOCOL: u8 = 29;
}

impl Default for Info<'_> {
    fn default() -> Self {
        Self {
            title: b"",
            locked: false,
            website: b"",
            max_clients: 0,
            max_players: 0,
            game_type: GameType::DEATHMATCH,
            map_name: b"",
            players: 0,
            protocol: Self::PROTOCOL,
        }
    }
}

impl<'a> Info<'a> {
    /// Also returns the number of clients, which is among these fields.
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<(Self, u8), DecodeError> {
        let title = string::parse(reader, "server title")?;
        let locked = boolean(reader, "locked")?;
        let website = string::parse(reader, "website URL")?;
        let max_clients = reader.u8("maximum clients")?;
        let max_players = reader.u8("maximum players")?;
        let game_type = GameType(reader.u8("game type")?);
        let map_name = string::parse(reader, "map name")?;
        let clients = reader.u8("number of clients")?;
        let players = reader.u8("number of players")?;
        let protocol = reader.u8("protocol version")?;
        let info = Self { title, locked, website, max_clients, max_players, game_type, map_name, players, protocol };
        Ok((info, clients))
    }

    pub(super) fn emit(&self, clients: u8, writer: &mut Writer<'_>) {
        string::emit(self.title, writer);
        writer.u8(self.locked.into());
        string::emit(self.website, writer);
        writer.u8(self.max_clients);
        writer.u8(self.max_players);
        writer.u8(self.game_type.0);
        string::emit(self.map_name, writer);
        writer.u8(clients);
        writer.u8(self.players);
        writer.u8(self.protocol);
    }

    /// Number of bytes that `emit` writes.
    pub(super) fn size(&self) -> usize {
        [self.title, self.website, self.map_name].into_iter().map(string::size).sum::<usize>() + 7
    }
}

impl Rules {
    pub(super) const SIZE: usize = 5;

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            score_limit: reader.i16_be("score limit")?,
            time_limit: reader.i16_be("time limit")?,
            join_smallest: boolean(reader, "join smallest team")?,
        })
    }

    pub(super) fn emit(&self, writer: &mut Writer<'_>) {
        writer.i16_be(self.score_limit);
        writer.i16_be(self.time_limit);
        writer.u8(self.join_smallest.into());
    }
}

/// Anything but 0 is true (B5).
pub(super) fn boolean(reader: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    reader.u8(field).map(|byte| byte != 0)
}
