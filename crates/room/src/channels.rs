//! The channels of a room: lines, and presence (docs/room.md).

use crate::MAX_MESSAGE;
use rallypoint_session::{Channel, ChannelIndex, ChannelMode, ChannelTable, ChannelTableError};

/// Lines in both directions. A guest without channels has only this one.
pub const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();

/// To guests: the list of guests. To the host: whether the guest is typing. Only the newest counts.
pub const PRESENCE: ChannelIndex = ChannelIndex::new(1).unwrap();

/// Maximum size of the presence of all guests in bytes; those that do not fit are left out.
pub const MAX_PRESENCE: usize = 16_384;

/// Sent by a guest that is typing a line.
pub const TYPING: &str = "typing";

/// Sent by a guest that is not typing any more.
pub const IDLE: &str = "idle";

/// The channels of a room.
///
/// # Errors
/// Never: the table is valid.
pub fn table() -> Result<ChannelTable, ChannelTableError> {
    ChannelTable::new([
        Channel::new(ChannelMode::ReliableOrdered, MAX_MESSAGE),
        Channel { max_to_server: 16, ..Channel::new(ChannelMode::Sequenced, MAX_PRESENCE) },
    ])
}
