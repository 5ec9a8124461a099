//! The message layer above document 003: channels (W110). Little-endian.
//!
//! ```text
//! payload:     one record or more; the payload of a message of document 003
//! record:      0  kind (bits 6 and 7), has length (bit 5), channel or control type (bits 0 to 4)
//!              1  length of the rest (u16), if bit 5 is set; without it the record ends with the payload
//! message:     sequence (u16), body
//! fragment:    sequence (u16), index (u16), count (u16), body
//! control:     see [`ControlRecord`]
//! ```
//!
//! ```
//! use rallypoint_wire::session::channels::{ChannelIndex, Record, RecordWriter, records};
//!
//! let chat = ChannelIndex::new(1).unwrap();
//! let mut writer = RecordWriter::new(484);
//! assert!(writer.message(chat, 0, b"hello") && writer.message(chat, 1, b"world"));
//! let payload = writer.finish();
//! assert_eq!(payload, b"\x21\x07\0\0\0hello\x01\x01\0world");
//! let parsed: Result<Vec<Record>, _> = records(payload).collect();
//! assert_eq!(parsed?[1], Record::Message { channel: chat, sequence: 1, body: b"world" });
//! # Ok::<(), rallypoint_wire::DecodeError>(())
//! ```

mod hello;
mod record;
mod writer;

pub use hello::{Hello, MAX_TOKEN, TableEntry, VERSION};
pub use record::{ControlRecord, Record, Records, Sequences, records, whole_message};
pub use writer::{MAX_SEQUENCES, RecordWriter, message_header, messages_share_payload};

/// Ends the game of a login whose session carries channels (W110): a server without them refuses such a login (S18).
pub const GAME_SUFFIX: &str = "+m1";

/// Maximum number of channels.
pub const MAX_CHANNELS: usize = 32;

/// Maximum size of a message in bytes.
pub const MAX_CHANNEL_MESSAGE: usize = (1 << 24) - 1;

/// Bytes of a message record before its body, without a length.
pub const MESSAGE_HEADER: usize = 3;

/// Bytes of a fragment record before its body, without a length.
pub const FRAGMENT_HEADER: usize = 7;

/// Size of the length of a record.
const LENGTH: usize = 2;

/// The number of a channel: 0 to 31.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelIndex(u8);

impl ChannelIndex {
    /// A channel, or `None` if the number is above 31.
    #[must_use]
    #[inline]
    pub const fn new(index: u8) -> Option<Self> {
        if (index as usize) < MAX_CHANNELS { Some(Self(index)) } else { None }
    }

    /// The number of the channel.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The channel of the low five bits.
    #[inline]
    const fn from_low_bits(byte: u8) -> Self {
        Self(byte & LOW_BITS)
    }
}

/// First byte of a record.
const LOW_BITS: u8 = 0b0001_1111;
const HAS_LENGTH: u8 = 0b0010_0000;
const KIND: u8 = 0b1100_0000;
const KIND_MESSAGE: u8 = 0b0000_0000;
const KIND_FRAGMENT: u8 = 0b0100_0000;
const KIND_CONTROL: u8 = 0b1000_0000;

/// Types of control records.
const CONTROL_HELLO: u8 = 0;
const CONTROL_RECEIPT: u8 = 1;
const CONTROL_CREDIT: u8 = 2;
