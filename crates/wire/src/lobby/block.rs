//! A list block: one server in the list.
//!
//! ```text
//! +  0    Server data block length (uint32)      of what follows
//! +  4    Transport protocol
//! +  5    IPv4 port (uint16), + 7 IPv4 address    port 0: no IPv4 endpoint
//! + 11    IPv6 port (uint16), +13 IPv6 address    port 0: no IPv6 endpoint
//! + 29    slots, players, bots, flags (4 × uint16)
//! + 37    Number of entries (uint16)
//! + 39    key/value table
//! ```

use super::{MAX_BLOCK, Occupancy, Table, Transport};
use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;
use core::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU16,
};

/// A server as the list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListBlock<'a> {
    /// Protocol that players connect with.
    pub transport: Transport,
    /// IPv4 endpoint, if the server registered over IPv4.
    pub v4: Option<Endpoint<Ipv4Addr>>,
    /// IPv6 endpoint, if the server registered over IPv6.
    pub v6: Option<Endpoint<Ipv6Addr>>,
    /// Slots, players, bots and password flag.
    pub occupancy: Occupancy,
    /// All other properties of the server.
    pub table: Table<'a>,
}

/// An address with a port that is not 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint<A> {
    /// The address.
    pub ip: A,
    /// The port. In the list, port 0 means that there is no endpoint.
    pub port: NonZeroU16,
}

impl<'a> ListBlock<'a> {
    /// Parses a block with its length. Bytes after the table within the block are ignored: the length exists so that a later
    /// document can add fields (W1).
    pub(super) fn parse_framed(reader: &mut Reader<'a>) -> Result<Result<Self, DecodeError>, DecodeError> {
        let length = reader.u32_be("block length")?;
        let length = checked_length(length)?;
        reader.bytes(length, "block").map(Self::parse)
    }

    /// Parses a block without its length field.
    pub fn parse(block: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(block);
        Ok(Self {
            transport: Transport::parse(&mut reader)?,
            v4: parse_endpoint(&mut reader, "IPv4 port", "IPv4 address")?,
            v6: parse_endpoint(&mut reader, "IPv6 port", "IPv6 address")?,
            occupancy: Occupancy::parse(&mut reader)?,
            table: Table::parse_counted(&mut reader)?,
        })
    }

    /// Appends the block with its length. Repeated keys are merged (L4).
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u32_be(0);
        self.transport.emit(&mut writer);
        emit_endpoint(self.v4.map(|v4| (v4.port, v4.ip.octets())), &mut writer);
        emit_endpoint(self.v6.map(|v6| (v6.port, v6.ip.octets())), &mut writer);
        self.occupancy.emit(&mut writer);
        self.table.emit_counted(&mut writer);
        // A table is parsed from a datagram or a block, so the length stays below `MAX_BLOCK` (L15).
        let length = (writer.written() - 4) as u32;
        writer.patch(0, &length.to_be_bytes());
    }

    /// All endpoints, IPv6 first.
    pub fn endpoints(&self) -> impl Iterator<Item = SocketAddr> + use<> {
        self.v6.map(SocketAddr::from).into_iter().chain(self.v4.map(SocketAddr::from))
    }
}

/// Checks a block length against the limit of existing clients (L15).
pub(super) fn checked_length(length: u32) -> Result<usize, DecodeError> {
    match usize::try_from(length) {
        Ok(length) if length <= MAX_BLOCK => Ok(length),
        _ => Err(DecodeError::new("block", DecodeErrorKind::TooLong)),
    }
}

/// The two families differ only in the size of the address.
fn parse_endpoint<A: From<[u8; N]>, const N: usize>(
    reader: &mut Reader<'_>,
    port: &'static str,
    address: &'static str,
) -> Result<Option<Endpoint<A>>, DecodeError> {
    let port = NonZeroU16::new(reader.u16_be(port)?);
    let address: [u8; N] = *reader.array(address)?;
    Ok(port.map(|port| Endpoint { ip: address.into(), port }))
}

fn emit_endpoint<const N: usize>(endpoint: Option<(NonZeroU16, [u8; N])>, writer: &mut Writer<'_>) {
    let (port, address) = endpoint.map_or((0, [0; N]), |(port, address)| (port.get(), address));
    writer.u16_be(port);
    writer.bytes(&address);
}

impl<A: Into<IpAddr>> From<Endpoint<A>> for SocketAddr {
    fn from(endpoint: Endpoint<A>) -> Self {
        Self::new(endpoint.ip.into(), endpoint.port.get())
    }
}

impl<A: Into<IpAddr> + Copy> fmt::Display for Endpoint<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::from(*self).fmt(f)
    }
}

impl<A: Into<IpAddr> + Copy> fmt::Debug for Endpoint<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::from(*self).fmt(f)
    }
}
