//! The table of channels, on which both sides agree.

use rallypoint_wire::session::{
    MAX_ENCRYPTED_TO_SERVER,
    channels::{ChannelIndex, FRAGMENT_HEADER, Hello, MAX_CHANNEL_MESSAGE, MAX_CHANNELS, TableEntry},
};
use std::time::Duration;

/// Largest message of a droppable channel: such messages are meant to be small, and one lost datagram
/// makes the whole message late.
const MAX_DROPPABLE: usize = 65_536;

/// Smallest body of a fragment: that of an encrypted message to the server.
const MIN_FRAGMENT: usize = MAX_ENCRYPTED_TO_SERVER - FRAGMENT_HEADER;

/// Smallest [`Channel::queue`] in bytes.
pub(super) const MIN_QUEUE: usize = 1_000;

/// Smallest [`Channel::rate`] in bytes per second.
const MIN_RATE: u32 = 1_000;

/// Bit of [`TableEntry::mode`]: messages are answered with receipts.
const RECEIPTS: u8 = 0x80;

/// The delivery guarantee of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelMode {
    /// Every message arrives, in order.
    ReliableOrdered,
    /// Every message arrives, as soon as possible.
    ReliableUnordered,
    /// The newest message wins: an older one is not delivered after it, and is not resent.
    Sequenced,
    /// A message is resent until it is older than [`Channel::max_age`].
    Expiring,
}

/// Settings of a channel. Mode, sizes and receipts are the same on both sides; the rest is the sender's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Channel {
    /// The delivery guarantee.
    pub mode: ChannelMode,
    /// Maximum size of a message to the server in bytes; zero if there are none in this direction. At most 16,777,215, and
    /// 65,536 in a sequenced or expiring channel.
    pub max_to_server: usize,
    /// Maximum size of a message to the client in bytes; as above.
    pub max_to_client: usize,
    /// Channels with a lower number are served first; those with the same number take turns. By default 0 for sequenced and
    /// expiring channels, and 1 for reliable ones. A reliable channel with a lower number than all of those is not limited by delay
    /// (W114).
    pub priority: u8,
    /// How long a message of an expiring channel is of use. From 1 ms to a minute; 250 ms by default.
    pub max_age: Duration,
    /// Maximum rate in bytes per second. At least 1,000; unlimited by default.
    pub rate: Option<u32>,
    /// Number of bytes that may wait to be sent to a peer, beyond which there is no room for another message: a server may
    /// need that much for each player who does not read, within the limit of all queues (W124). A message counts as at least 64
    /// bytes. At least 1,000; 1 MB by default. A single message always fits.
    pub queue: usize,
    /// Whether the receiver's application confirms each message (only in reliable channels).
    pub receipts: bool,
}

/// A valid table of 1 to 32 channels. The position of a channel is its [`ChannelIndex`].
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelTable(Vec<Channel>);

/// Why a table is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelTableError {
    /// The number of channels.
    #[error("a table of {0} channels: use 1 to 32")]
    Count(usize),
    /// A size is out of range.
    #[error("channel {channel}: a message of {size} bytes is too large for its mode, the limit is {limit}")]
    Size {
        /// The position of the channel.
        channel: usize,
        /// The size in bytes.
        size: usize,
        /// The largest valid size.
        limit: usize,
    },
    /// A channel has no direction.
    #[error("channel {0} carries messages in neither direction: set a maximum size")]
    NoDirection(usize),
    /// A channel with receipts whose messages may be dropped.
    #[error("channel {0}: only reliable channels have receipts")]
    Receipts(usize),
    /// The channel of players without channels cannot be used for them.
    #[error("players without channels need a reliable ordered channel: channel {0} is none")]
    Plain(u8),
    /// Age, rate or queue is out of range.
    #[error("channel {0}: max_age is 1 ms to a minute, rate and queue are at least 1000 bytes")]
    Range(usize),
}

impl ChannelMode {
    /// Whether every message arrives.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        matches!(self, Self::ReliableOrdered | Self::ReliableUnordered)
    }

    const fn code(self) -> u8 {
        match self {
            Self::ReliableOrdered => 0,
            Self::ReliableUnordered => 1,
            Self::Sequenced => 2,
            Self::Expiring => 3,
        }
    }
}

impl Channel {
    /// A channel of this mode, for messages of at most this size in both directions.
    #[must_use]
    pub const fn new(mode: ChannelMode, max_size: usize) -> Self {
        Self {
            mode,
            max_to_server: max_size,
            max_to_client: max_size,
            priority: if mode.is_reliable() { 1 } else { 0 },
            max_age: Duration::from_millis(250),
            rate: None,
            queue: 1 << 20,
            receipts: false,
        }
    }

    fn entry(&self) -> TableEntry {
        TableEntry {
            mode: self.mode.code() | if self.receipts { RECEIPTS } else { 0 },
            max_to_server: self.max_to_server as u32,
            max_to_client: self.max_to_client as u32,
        }
    }

    fn validate(&self, position: usize) -> Result<(), ChannelTableError> {
        let limit = if self.mode.is_reliable() { MAX_CHANNEL_MESSAGE } else { MAX_DROPPABLE };
        let size = self.max_to_server.max(self.max_to_client);
        if size > limit {
            return Err(ChannelTableError::Size { channel: position, size, limit });
        }
        if size == 0 {
            return Err(ChannelTableError::NoDirection(position));
        }
        if self.receipts && !self.mode.is_reliable() {
            return Err(ChannelTableError::Receipts(position));
        }
        let is_age_valid = (Duration::from_millis(1)..=Duration::from_secs(60)).contains(&self.max_age);
        if !is_age_valid || self.queue < MIN_QUEUE || self.rate.is_some_and(|rate| rate < MIN_RATE) {
            return Err(ChannelTableError::Range(position));
        }
        Ok(())
    }
}

impl ChannelTable {
    /// Checks the channels.
    ///
    /// # Errors
    /// The first channel that is invalid.
    pub fn new(channels: impl Into<Vec<Channel>>) -> Result<Self, ChannelTableError> {
        let channels = channels.into();
        if channels.is_empty() || channels.len() > MAX_CHANNELS {
            return Err(ChannelTableError::Count(channels.len()));
        }
        channels.iter().enumerate().try_for_each(|(position, channel)| channel.validate(position))?;
        Ok(Self(channels))
    }

    /// The channels, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ChannelIndex, &Channel)> {
        self.0.iter().enumerate().map(|(position, channel)| {
            // In range: a table has at most 32 channels.
            (ChannelIndex::new(position as u8).unwrap_or(FIRST), channel)
        })
    }

    /// A channel, if it exists.
    #[must_use]
    #[inline]
    pub fn get(&self, channel: ChannelIndex) -> Option<&Channel> {
        self.0.get(usize::from(channel.get()))
    }

    /// Whether messages of a channel expire.
    #[inline]
    pub(crate) fn is_expiring(&self, channel: ChannelIndex) -> bool {
        self.get(channel).is_some_and(|known| known.mode == ChannelMode::Expiring)
    }

    pub(super) fn entries(&self) -> Vec<TableEntry> {
        self.0.iter().map(Channel::entry).collect()
    }

    /// The first channel that differs from a received table.
    pub(super) fn difference(&self, hello: &Hello<'_>) -> Option<u8> {
        let ours = self.0.iter().map(|channel| Some(channel.entry())).chain([None]);
        let theirs = hello.channels().map(Some).chain([None]);
        let different = ours.zip(theirs).position(|(ours, theirs)| ours != theirs);
        different.map(|position| position as u8)
    }
}

const FIRST: ChannelIndex = match ChannelIndex::new(0) {
    Some(first) => first,
    None => panic!("a table has a first channel"),
};

// The count of fragments of the largest message fits into its field.
const _: () = assert!(MAX_CHANNEL_MESSAGE.div_ceil(MIN_FRAGMENT) <= u16::MAX as usize);
