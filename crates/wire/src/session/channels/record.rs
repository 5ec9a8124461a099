//! Reads the records of a payload.

use super::{
    CONTROL_CREDIT, CONTROL_HELLO, CONTROL_RECEIPT, ChannelIndex, HAS_LENGTH, Hello, KIND, KIND_CONTROL, KIND_FRAGMENT,
    KIND_MESSAGE, LOW_BITS,
};
use crate::{DecodeError, DecodeErrorKind, Reader};

/// A record of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A whole message.
    Message {
        /// Its channel.
        channel: ChannelIndex,
        /// Its position in the channel.
        sequence: u16,
        /// Its bytes, which may be none.
        body: &'a [u8],
    },
    /// A part of a message.
    Fragment {
        /// The channel of the message.
        channel: ChannelIndex,
        /// The position of the message in the channel.
        sequence: u16,
        /// The position of the part in the message: below `count`.
        index: u16,
        /// Number of parts: at least two.
        count: u16,
        /// The bytes of the part: at least one.
        body: &'a [u8],
    },
    /// A message of the layer itself.
    Control(ControlRecord<'a>),
}

/// A message of the layer itself.
///
/// ```text
/// 0 hello:    version (u8), # of channels (u8), [mode and flags (u8), max size to server (u24), max size to client (u24)]...,
///             length of the token (u8), token
/// 1 receipt:  channel (u8), [sequence (u16)]...
/// 2 credit:   channel (u8), sequence (u16)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRecord<'a> {
    /// The first record of each direction.
    Hello(Hello<'a>),
    /// These messages of a channel were handed to the application.
    Receipt {
        /// Their channel.
        channel: ChannelIndex,
        /// Their positions in the channel.
        sequences: Sequences<'a>,
    },
    /// All messages of a channel before this position have arrived.
    Credit {
        /// The channel.
        channel: ChannelIndex,
        /// The first position that has not arrived.
        sequence: u16,
    },
}

/// The sequences of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequences<'a>(&'a [u8]);

impl Sequences<'_> {
    /// The sequences, in the order of the record.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        self.0.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
    }
}

/// The records of a payload, or the first error.
#[must_use]
#[inline]
pub fn records(payload: &[u8]) -> Records<'_> {
    Records { reader: Reader::new(payload) }
}

/// The channel, the sequence and the body of a payload that is one whole message, as those with large messages are. `None` for
/// every other payload, which [`records`] reads.
#[must_use]
#[inline]
pub fn whole_message(payload: &[u8]) -> Option<(ChannelIndex, u16, &[u8])> {
    match payload {
        [head, low, high, body @ ..] if head & (KIND | HAS_LENGTH) == KIND_MESSAGE => {
            Some((ChannelIndex::from_low_bits(*head), u16::from_le_bytes([*low, *high]), body))
        }
        _ => None,
    }
}

/// See [`records`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    reader: Reader<'a>,
}

impl Records<'_> {
    /// Number of bytes that are not read yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.reader.rest().len()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let parsed = parse(&mut self.reader);
        if parsed.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(parsed)
    }
}

#[inline]
fn parse<'a>(reader: &mut Reader<'a>) -> Result<Record<'a>, DecodeError> {
    let head = reader.u8("kind")?;
    let length = if head & HAS_LENGTH == 0 { reader.rest().len() } else { reader.u16_le("length")?.into() };
    let mut rest = Reader::new(reader.bytes(length, "record")?);
    let channel = ChannelIndex::from_low_bits(head);
    match head & KIND {
        KIND_MESSAGE => {
            let sequence = rest.u16_le("sequence")?;
            Ok(Record::Message { channel, sequence, body: rest.rest() })
        }
        KIND_FRAGMENT => {
            let sequence = rest.u16_le("sequence")?;
            let index = rest.u16_le("index")?;
            let count = rest.u16_le("count")?;
            let body = rest.rest();
            if count < 2 || index >= count {
                return Err(DecodeError::new("count", DecodeErrorKind::Invalid));
            }
            if body.is_empty() {
                return Err(DecodeError::new("body", DecodeErrorKind::Empty));
            }
            Ok(Record::Fragment { channel, sequence, index, count, body })
        }
        KIND_CONTROL => parse_control(head & LOW_BITS, rest).map(Record::Control),
        _ => Err(DecodeError::new("kind", DecodeErrorKind::Unknown)),
    }
}

fn parse_control(kind: u8, mut rest: Reader<'_>) -> Result<ControlRecord<'_>, DecodeError> {
    match kind {
        CONTROL_HELLO => Hello::parse(rest).map(ControlRecord::Hello),
        CONTROL_RECEIPT => {
            let channel = parse_channel(&mut rest)?;
            let sequences = rest.rest();
            if sequences.is_empty() || !sequences.len().is_multiple_of(2) {
                return Err(DecodeError::new("sequences", DecodeErrorKind::Invalid));
            }
            Ok(ControlRecord::Receipt { channel, sequences: Sequences(sequences) })
        }
        CONTROL_CREDIT => {
            let channel = parse_channel(&mut rest)?;
            let sequence = rest.u16_le("sequence")?;
            rest.finish("credit")?;
            Ok(ControlRecord::Credit { channel, sequence })
        }
        _ => Err(DecodeError::new("control type", DecodeErrorKind::Unknown)),
    }
}

fn parse_channel(reader: &mut Reader<'_>) -> Result<ChannelIndex, DecodeError> {
    ChannelIndex::new(reader.u8("channel")?).ok_or(DecodeError::new("channel", DecodeErrorKind::Invalid))
}
