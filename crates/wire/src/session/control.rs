//! Messages that both sides send.
//!
//! ```text
//! ack: <u8: 0b11111111><u8: # of messages>[<u32: message #><u32: message # bitwise NOT>]...
//! resend: <u8: 0b10101010><u8: # of messages>[<u32: message #><u32: message # bitwise NOT>]...
//! keepalive: <u8: 0b00110011>
//! ack keepalive: <u8: 0b11001100>
//! ```

use super::{NumberList, kind};
use crate::{DecodeError, DecodeErrorKind, Reader, Writer};
use alloc::vec::Vec;

/// A message that means the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// Acknowledges messages.
    Ack(NumberList<'a>),
    /// Requests retransmission of messages.
    Resend(NumberList<'a>),
    /// Requests a keepalive ack.
    Keepalive,
    /// Answers a keepalive.
    KeepaliveAck,
}

impl<'a> Control<'a> {
    pub(super) fn parse(kind: u8, mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let (control, name) = match kind {
            kind::ACK => (Self::Ack(NumberList::parse(&mut reader)?), "ack"),
            kind::RESEND => (Self::Resend(NumberList::parse(&mut reader)?), "resend"),
            kind::KEEPALIVE => (Self::Keepalive, "keepalive"),
            kind::KEEPALIVE_ACK => (Self::KeepaliveAck, "ack keepalive"),
            _ => return Err(DecodeError::new("type", DecodeErrorKind::Unknown)),
        };
        reader.finish(name)?;
        Ok(control)
    }

    /// Appends the datagram.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        match self {
            Self::Ack(numbers) => {
                writer.u8(kind::ACK);
                numbers.emit(&mut writer);
            }
            Self::Resend(numbers) => {
                writer.u8(kind::RESEND);
                numbers.emit(&mut writer);
            }
            Self::Keepalive => writer.u8(kind::KEEPALIVE),
            Self::KeepaliveAck => writer.u8(kind::KEEPALIVE_ACK),
        }
    }
}
