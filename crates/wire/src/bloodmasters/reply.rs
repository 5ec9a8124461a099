//! Replies to queries.
//!
//! ```text
//! + 0   Length of the packet (uint16, little-endian), + 2 Message code (13)     see `message`
//! + 3   Whatever you sent in the request (4 bytes)                              repeated byte for byte (B7)
//! + 7   server title ... protocol version                                       see `info`
//!       -- protocol version 27 and higher (B6)
//!       score limit, time limit, join smallest                                  see `info`
//!       for each client: its record                                             see `client`
//!       -- protocol version 28 and higher (B6)
//!       Length of build description, Build description and version number
//! ```

use super::{
    Clients, Echo, Info, MAX_REPLY, Rules,
    message::{self, Message, SERVER_INFO},
    string,
};
use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;
use core::fmt;

/// The first protocol version with limits and clients (B6).
const WITH_CLIENTS: u8 = 27;

/// The first protocol version with a build description (B6).
const WITH_BUILD: u8 = 28;

/// The reply of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    echo: Echo,
    info: Info<'a>,
    rules: Option<Rules>,
    clients: Clients<'a>,
    build: Option<&'a [u8]>,
    warning: Option<DecodeError>,
}

/// The reply does not fit into a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTooLong;

impl<'a> Reply<'a> {
    /// Creates a reply. Fields that the protocol version of `info` does not have are left out (B6).
    ///
    /// Title and names are sent unchanged: a responder removes colour codes beforehand
    /// ([`strip_colours`](super::strip_colours), B12).
    ///
    /// # Errors
    /// If it would not fit into a datagram of 65,507 bytes.
    pub fn new(
        echo: Echo,
        info: Info<'a>,
        rules: Rules,
        clients: Clients<'a>,
        build: &'a [u8],
    ) -> Result<Self, ReplyTooLong> {
        let with_clients = info.protocol >= WITH_CLIENTS;
        let new = Self {
            echo,
            info,
            rules: with_clients.then_some(rules),
            clients: if with_clients { clients.with_own_count() } else { Clients::without_records(clients.count()) },
            build: (info.protocol >= WITH_BUILD).then_some(build),
            warning: None,
        };
        if new.size() > MAX_REPLY { Err(ReplyTooLong) } else { Ok(new) }
    }

    /// Parses the reply at the start of a datagram. Bytes after it are ignored, and so are fields that a later protocol
    /// version may have added to its end.
    ///
    /// If it is truncated after the protocol version, the result has the fields before, and [`warning`](Self::warning) names
    /// the first missing field (B6). The same applies if the datagram is shorter than its length field (W2).
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(datagram);
        let length = message::length(&mut reader)?;
        let there = reader.rest();
        let whole = there.get(..length);
        let mut reader = Message::parse(whole.unwrap_or(there))?.server_info()?;

        let echo = Echo::parse(&mut reader)?;
        let (info, clients) = Info::parse(&mut reader)?;
        let clients = Clients::without_records(clients);
        let mut reply = Self { echo, info, rules: None, clients, build: None, warning: None };
        reply.warning = match reply.parse_tail(&mut reader) {
            Err(cut) => Some(cut),
            Ok(()) if whole.is_none() => Some(DecodeError::new("message", DecodeErrorKind::Truncated)),
            Ok(()) => None,
        };
        Ok(reply)
    }

    /// Parses the fields that depend on the protocol version, as far as they are present (B6).
    fn parse_tail(&mut self, reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        if self.info.protocol >= WITH_CLIENTS {
            self.rules = Some(Rules::parse(reader)?);
            self.clients.parse_records(reader)?;
        }
        if self.info.protocol >= WITH_BUILD {
            self.build = Some(string::parse(reader, "build description")?);
        }
        Ok(())
    }

    /// Appends the reply. A truncated reply is emitted up to its last complete field.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u16_le(0);
        writer.u8(SERVER_INFO);
        writer.bytes(&self.echo.0);
        self.info.emit(self.clients.count(), &mut writer);
        if let Some(rules) = self.rules {
            rules.emit(&mut writer);
        }
        self.clients.iter().for_each(|client| client.emit(&mut writer));
        if let Some(build) = self.build {
            string::emit(build, &mut writer);
        }
        // `new` checks that this fits; and a parsed reply had a length of 16 bits and is not emitted longer.
        let length = writer.written() as u16;
        writer.patch(0, &length.to_le_bytes());
    }

    /// Maximum number of bytes that `emit` writes.
    fn size(&self) -> usize {
        let rules = self.rules.map_or(0, |_| Rules::SIZE);
        let build = self.build.map_or(0, string::size);
        Echo::RANGE.end + self.info.size() + rules + self.clients.as_bytes().len() + build
    }

    /// Replaces the echo: the reply to another query.
    #[must_use]
    pub const fn with_echo(mut self, echo: Echo) -> Self {
        self.echo = echo;
        self
    }

    /// The echo of the query: a client accepts only its own (B7).
    #[must_use]
    pub const fn echo(&self) -> Echo {
        self.echo
    }

    /// Description of the server, in every protocol version.
    #[must_use]
    pub const fn info(&self) -> Info<'a> {
        self.info
    }

    /// Rules of the game, if the protocol version has them and the reply was not truncated before.
    #[must_use]
    pub const fn rules(&self) -> Option<Rules> {
        self.rules
    }

    /// Connected clients; with records if the protocol version has them.
    #[must_use]
    pub const fn clients(&self) -> Clients<'a> {
        self.clients
    }

    /// Build description, if the protocol version has it and the reply was not truncated before.
    #[must_use]
    pub const fn build(&self) -> Option<&'a [u8]> {
        self.build
    }

    /// The field in which a truncated reply ends (B6).
    #[must_use]
    pub const fn warning(&self) -> Option<DecodeError> {
        self.warning
    }

    /// Whether all fields of the protocol version are present.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.warning.is_none()
    }
}

impl fmt::Display for ReplyTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reply can have at most 65,507 bytes: shorten the texts or name fewer clients")
    }
}

impl core::error::Error for ReplyTooLong {}

#[cfg(test)]
mod tests;
