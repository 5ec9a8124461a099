//! The operations whose instructions are counted.

use crate::{
    channel_exchange::{self, ChannelExchange},
    crowd::Crowd,
    exchange::{self, Exchange},
};
use rallypoint_session_proto::{ChannelMode, Encryption};

/// A message of one of this many players, and its ack.
pub const ONE_PLAYER: &str = "a message with 1 player";
pub const FULL_SERVER: &str = "a message with 255 players";
/// A message from a server to a client, and its ack.
pub const PLAIN: &str = "400 bytes, plain";
pub const ENCRYPTED: &str = "400 bytes, encrypted";
pub const PACKED: &str = "32 bytes, packed";
/// A message of a channel from a server to a client, and its ack.
pub const CHANNEL: &str = "400 bytes, reliable ordered channel";
pub const UNORDERED_CHANNEL: &str = "400 bytes, reliable unordered channel";
pub const EXPIRING_CHANNEL: &str = "400 bytes, expiring channel";
/// Small messages of a channel, which share datagrams, and plain ones of that size, which do not.
pub const PACKED_CHANNEL: &str = "32 bytes, reliable ordered channel";
pub const SMALL: &str = "32 bytes, plain";
/// The cipher alone.
pub const SEAL: &str = "seal 400 bytes";
pub const OPEN: &str = "open 400 bytes";

/// The parts of [`PLAIN`], [`ENCRYPTED`] and [`PACKED`] that belong to each side.
pub const SENDER: &str = "session::exchange::Exchange::sender_turn";
pub const RECEIVER: &str = "session::exchange::Exchange::receiver_turn";

/// Runs one of the operations `iterations` times. Returns false if there is no such operation.
pub fn run(name: &str, iterations: u64) -> bool {
    let crowd = |players| {
        let mut crowd = Crowd::new(players);
        (0..iterations).for_each(|_| crowd.step());
    };
    match name {
        ONE_PLAYER => crowd(1),
        FULL_SERVER => crowd(255),
        PLAIN => Exchange::new(Encryption::Plain, false).run(iterations),
        ENCRYPTED => Exchange::new(Encryption::Encrypted, false).run(iterations),
        PACKED => Exchange::new(Encryption::Plain, true).run(iterations),
        CHANNEL => channel_exchange::reliable().run(iterations),
        UNORDERED_CHANNEL => ChannelExchange::new(ChannelMode::ReliableUnordered, exchange::SIZE).run(iterations),
        EXPIRING_CHANNEL => ChannelExchange::new(ChannelMode::Expiring, exchange::SIZE).run(iterations),
        PACKED_CHANNEL => ChannelExchange::new(ChannelMode::ReliableOrdered, exchange::PACKED_SIZE).run(iterations),
        SMALL => Exchange::of_size(exchange::PACKED_SIZE).run(iterations),
        SEAL => exchange::seal(iterations),
        OPEN => exchange::open(iterations),
        _ => return false,
    }
    true
}
