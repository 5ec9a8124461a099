//! What a server answers.
//!
//! ```text
//! + 0   Length of the packet (uint16, little-endian), + 2 Message code (13)     see `message`
//! + 3   Whatever you sent in the request (4 bytes)                              back byte for byte (B7)
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
use crate::{DecodeError, Reader, Reason, Writer};
use alloc::vec::Vec;
use core::fmt;

/// The first protocol version with limits and clients (B6).
const WITH_CLIENTS: u8 = 27;

/// The first protocol version with a build description (B6).
const WITH_BUILD: u8 = 28;

/// A server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    echo: Echo,
    info: Info<'a>,
    rules: Option<Rules>,
    clients: Clients<'a>,
    build: Option<&'a [u8]>,
    warning: Option<DecodeError>,
}

/// The texts and clients are more than a datagram can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTooLong;

impl<'a> Reply<'a> {
    /// A reply, to be sent. What the protocol version of `info` does not know is left out (B6).
    ///
    /// Title and names are sent as they are: a responder takes out colour codes before
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
            clients: if with_clients { clients.told() } else { Clients::untold(clients.count()) },
            build: (info.protocol >= WITH_BUILD).then_some(build),
            warning: None,
        };
        if new.size() > MAX_REPLY { Err(ReplyTooLong) } else { Ok(new) }
    }

    /// Reads the answer at the start of a datagram. What follows it there is ignored, and so is what a later protocol
    /// version may have added to its end.
    ///
    /// If it breaks off behind the protocol version, what came before is the result, and [`warning`](Self::warning) says
    /// where it breaks off (B6); also if the datagram is shorter than the length field says (W2).
    pub fn parse(datagram: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(datagram);
        let length = message::length(&mut reader)?;
        let there = reader.rest();
        let whole = there.get(..length);
        let mut reader = Message::parse(whole.unwrap_or(there))?.server_info()?;

        let echo = Echo::parse(&mut reader)?;
        let (info, clients) = Info::parse(&mut reader)?;
        let clients = Clients::untold(clients);
        let mut reply = Self { echo, info, rules: None, clients, build: None, warning: None };
        reply.warning = match reply.parse_tail(&mut reader) {
            Err(cut) => Some(cut),
            Ok(()) if whole.is_none() => Some(DecodeError::new("message", Reason::Truncated)),
            Ok(()) => None,
        };
        Ok(reply)
    }

    /// Reads what depends on the protocol version, as far as it goes (B6).
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

    /// Appends the reply. One that was cut short is cut short again, behind its last whole field.
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
        // `new` sees to it that this fits; and what was parsed had a length of 16 bits and is not written longer.
        let length = writer.written() as u16;
        writer.patch(0, &length.to_le_bytes());
    }

    /// How many bytes `emit` writes at most.
    fn size(&self) -> usize {
        let rules = self.rules.map_or(0, |_| Rules::SIZE);
        let build = self.build.map_or(0, string::size);
        Echo::RANGE.end + self.info.size() + rules + self.clients.as_bytes().len() + build
    }

    /// The same reply to another query.
    #[must_use]
    pub const fn with_echo(mut self, echo: Echo) -> Self {
        self.echo = echo;
        self
    }

    /// What the query had: a client believes only its own (B7).
    #[must_use]
    pub const fn echo(&self) -> Echo {
        self.echo
    }

    /// What a server of any protocol version says about itself.
    #[must_use]
    pub const fn info(&self) -> Info<'a> {
        self.info
    }

    /// What is played for, if the protocol version tells it and it is there.
    #[must_use]
    pub const fn rules(&self) -> Option<Rules> {
        self.rules
    }

    /// Who is connected, as far as the protocol version tells it.
    #[must_use]
    pub const fn clients(&self) -> Clients<'a> {
        self.clients
    }

    /// What the server runs, if the protocol version tells it and it is there.
    #[must_use]
    pub const fn build(&self) -> Option<&'a [u8]> {
        self.build
    }

    /// If the reply is only a part of one: the field that it breaks off in (B6).
    #[must_use]
    pub const fn warning(&self) -> Option<DecodeError> {
        self.warning
    }

    /// Whether all is there that the protocol version tells.
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
