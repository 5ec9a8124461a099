//! Client records: one for each connected client, since protocol version 27 (B6).
//!
//! ```text
//! Length of player name, Player name
//! Player team (uint8)
//! True when player is a spectator (boolean)
//! Player ping (int16)
//! ```

use super::{MAX_REPLY, Team, info::boolean, string};
use crate::{DecodeError, Reader, Writer, text};
use alloc::vec::Vec;
use core::fmt;

/// A connected client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client<'a> {
    /// Player name, as bytes: ASCII from real servers (B2).
    pub name: &'a [u8],
    /// Team of the player.
    pub team: Team,
    /// Whether the client is a spectator.
    pub spectator: bool,
    /// Ping in milliseconds.
    pub ping: i16,
}

/// The clients of a reply: their number, and the records that are present.
#[derive(Clone, Copy)]
pub struct Clients<'a> {
    /// Complete validated records, without trailing bytes.
    bytes: &'a [u8],
    count: u8,
}

impl<'a> Clients<'a> {
    /// Clients without records.
    pub(super) const fn without_records(count: u8) -> Self {
        Self { bytes: &[], count }
    }

    /// Parses the records. If they are truncated, the complete ones are kept.
    pub(super) fn parse_records(&mut self, reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        let start = reader.rest();
        for _ in 0..self.count {
            Client::parse(reader)?;
            self.bytes = &start[..start.len() - reader.rest().len()];
        }
        Ok(())
    }

    pub(super) const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Sets the number of clients to the number of records.
    pub(super) fn with_own_count(self) -> Self {
        // Records are parsed from a reply or come from a `ClientsBuf`, and both count them in 8 bits.
        Self { bytes: self.bytes, count: self.iter().count() as u8 }
    }

    /// Number of connected clients. This is the number of records, unless the protocol is older than 27 (no records) or the
    /// reply was truncated (fewer records).
    #[must_use]
    pub const fn count(&self) -> u8 {
        self.count
    }

    /// The records.
    pub fn iter(&self) -> impl Iterator<Item = Client<'a>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        // The bytes were validated when the value was created, so an error can only mean the end.
        core::iter::from_fn(move || Client::parse(&mut reader).ok())
    }
}

impl<'a> Client<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: string::parse(reader, "player name")?,
            team: Team(reader.u8("player team")?),
            spectator: boolean(reader, "spectator")?,
            ping: reader.i16_be("player ping")?,
        })
    }

    pub(super) fn emit(&self, writer: &mut Writer<'_>) {
        string::emit(self.name, writer);
        writer.u8(self.team.0);
        writer.u8(self.spectator.into());
        writer.i16_be(self.ping);
    }
}

impl PartialEq for Clients<'_> {
    /// Clients are equal if their parsed values are, however the bytes encode them.
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && (self.bytes == other.bytes || self.iter().eq(other.iter()))
    }
}

impl Eq for Clients<'_> {}

impl fmt::Debug for Clients<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} clients ", self.count)?;
        f.debug_map().entries(self.iter().map(|client| (text::display(client.name), client.team))).finish()
    }
}

/// Client records for a reply to be sent.
#[derive(Clone, Debug, Default)]
pub struct ClientsBuf {
    bytes: Vec<u8>,
    count: u8,
}

/// Another client does not fit into a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyClients;

impl ClientsBuf {
    /// No clients.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), count: 0 }
    }

    /// Adds a client. The name is sent unchanged: a responder removes colour codes beforehand
    /// ([`strip_colours`](super::strip_colours)).
    ///
    /// # Errors
    /// If there are 255 clients already, or the names no longer fit into a datagram.
    pub fn push(&mut self, client: Client<'_>) -> Result<(), TooManyClients> {
        let size = string::size(client.name) + 4;
        if self.bytes.len() + size > MAX_REPLY {
            return Err(TooManyClients);
        }
        self.count = self.count.checked_add(1).ok_or(TooManyClients)?;
        client.emit(&mut Writer::new(&mut self.bytes));
        Ok(())
    }

    /// The clients for a reply.
    #[must_use]
    pub fn as_clients(&self) -> Clients<'_> {
        Clients { bytes: &self.bytes, count: self.count }
    }
}

impl fmt::Display for TooManyClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reply can have at most 255 clients, with names that fit into one datagram")
    }
}

impl core::error::Error for TooManyClients {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_255_clients_whose_names_fit_into_a_datagram() {
        let mut clients = ClientsBuf::new();
        let client = Client { name: b"x", team: Team::RED, spectator: false, ping: 1 };
        (0..255).for_each(|_| clients.push(client).unwrap());
        assert_eq!(clients.push(client), Err(TooManyClients));
        assert_eq!(clients.as_clients().iter().count(), 255);

        let long = [b'x'; 40_000];
        let mut clients = ClientsBuf::new();
        assert_eq!(clients.push(Client { name: &long, ..client }), Ok(()));
        assert_eq!(clients.push(Client { name: &long, ..client }), Err(TooManyClients));
        assert_eq!(clients.as_clients().count(), 1);
    }
}
