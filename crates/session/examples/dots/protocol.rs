//! The protocol between the server and the client of the dots.
#![allow(dead_code, reason = "each of the two uses one half")]

use rallypoint_session::{Channel, ChannelIndex, ChannelMode, ChannelTable, ChannelTableError};

pub const GAME: &str = "dots";
pub const DOTS: usize = 30;
pub const FRAME: std::time::Duration = std::time::Duration::from_millis(33);

/// Size of the world in pixels of three bytes (red, green, blue), and the number of rows that are sent together.
pub const WIDTH: usize = 240;
pub const HEIGHT: usize = 160;
pub const STRIP_ROWS: usize = 8;
pub const MAP_BYTES: usize = 3 * WIDTH * HEIGHT;
const STRIP_BYTES: usize = 1 + 3 * WIDTH * STRIP_ROWS;

/// To clients: the positions of all dots. To the server: the direction of the player's dot. Only the newest counts.
pub const POSITIONS: ChannelIndex = ChannelIndex::new(0).unwrap();
/// Lines of text.
pub const CHAT: ChannelIndex = ChannelIndex::new(1).unwrap();
/// The map in strips, in any order: the number of the strip, then its pixels. It waits for everything else, and takes a second.
pub const MAP: ChannelIndex = ChannelIndex::new(2).unwrap();

pub fn table() -> Result<ChannelTable, ChannelTableError> {
    let map = Channel { max_to_server: 0, priority: 2, ..Channel::new(ChannelMode::ReliableUnordered, STRIP_BYTES) };
    ChannelTable::new([
        Channel { max_to_server: 2, ..Channel::new(ChannelMode::Sequenced, 5 * DOTS) },
        Channel::new(ChannelMode::ReliableOrdered, 500),
        Channel { rate: Some(100_000), ..map },
    ])
}

/// A position in the world, and the slot of the player who steers the dot, or 255.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dot {
    pub x: f32,
    pub y: f32,
    pub player: u8,
}

/// Five bytes for each dot: x and y in 256ths of a pixel, and the player.
pub fn encode(dots: &[Dot]) -> Vec<u8> {
    let fixed = |value: f32| ((value * 256.0) as u16).to_le_bytes();
    dots.iter().flat_map(|dot| [&fixed(dot.x)[..], &fixed(dot.y), &[dot.player]].concat()).collect()
}

pub fn decode(bytes: &[u8]) -> Vec<Dot> {
    let value = |pair: &[u8]| f32::from(u16::from_le_bytes([pair[0], pair[1]])) / 256.0;
    bytes.chunks_exact(5).map(|dot| Dot { x: value(dot), y: value(&dot[2..]), player: dot[4] }).collect()
}
