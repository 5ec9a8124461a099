//! The first record of each direction: version, table of channels, token.

use super::MAX_CHANNELS;
use crate::{DecodeError, DecodeErrorKind, Reader, Writer};

/// Version of the message layer.
pub const VERSION: u8 = 1;

/// Maximum length of a token in bytes.
pub const MAX_TOKEN: usize = 200;

/// Size of a channel in the table.
const ENTRY: usize = 7;

/// A channel of the table: what both sides have to agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// Bits 0 and 1: reliable ordered (0), reliable unordered (1), sequenced (2), expiring (3). Bit 7: messages are answered
    /// with receipts. The others are zero.
    pub mode: u8,
    /// Maximum size of a message to the server in bytes, below 2^24; zero if there are none in this direction.
    pub max_to_server: u32,
    /// Maximum size of a message to the client in bytes, below 2^24; zero if there are none in this direction.
    pub max_to_client: u32,
}

/// The first record of each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// [`VERSION`]. A hello of another version seems to have neither channels nor token.
    pub version: u8,
    table: &'a [u8],
    /// The client's connect token, or nothing.
    pub token: &'a [u8],
}

impl<'a> Hello<'a> {
    pub(super) fn parse(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let version = reader.u8("version")?;
        // What follows in another version is not known, and the peer is to learn that this is the reason.
        if version != VERSION {
            return Ok(Self { version, table: &[], token: &[] });
        }
        let count = usize::from(reader.u8("# of channels")?);
        if count == 0 || count > MAX_CHANNELS {
            return Err(DecodeError::new("# of channels", DecodeErrorKind::Invalid));
        }
        let table = reader.bytes(count * ENTRY, "channels")?;
        let length = usize::from(reader.u8("length of the token")?);
        if length > MAX_TOKEN {
            return Err(DecodeError::new("token", DecodeErrorKind::TooLong));
        }
        let token = reader.bytes(length, "token")?;
        reader.finish("hello")?;
        Ok(Self { version, table, token })
    }

    /// The channels, in their order.
    pub fn channels(&self) -> impl ExactSizeIterator<Item = TableEntry> + use<'a> {
        let u24 = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
        // In range: the chunks are exact.
        self.table.chunks_exact(ENTRY).map(move |entry| TableEntry {
            mode: entry[0],
            max_to_server: u24(&entry[1..4]),
            max_to_client: u24(&entry[4..7]),
        })
    }

    /// Appends the record, without a length. `table` has at most 32 channels, and `token` at most [`MAX_TOKEN`] bytes: the
    /// rest of either is left out.
    pub(super) fn emit(table: &[TableEntry], token: &[u8], writer: &mut Writer<'_>) {
        let table = table.get(..MAX_CHANNELS).unwrap_or(table);
        let token = token.get(..MAX_TOKEN).unwrap_or(token);
        writer.u8(VERSION);
        writer.u8(table.len() as u8);
        for entry in table {
            let [a, b, c, _] = entry.max_to_server.to_le_bytes();
            let [d, e, f, _] = entry.max_to_client.to_le_bytes();
            writer.bytes(&[entry.mode, a, b, c, d, e, f]);
        }
        writer.u8(token.len() as u8);
        writer.bytes(token);
    }
}
