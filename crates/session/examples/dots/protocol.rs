//! The protocol between the server and the client of the dots.
#![allow(dead_code, reason = "each of the two uses one half")]

use rallypoint_session::{Channel, ChannelIndex, ChannelMode, ChannelTable, ChannelTableError};

pub const GAME: &str = "dots";
pub const DOTS: usize = 30;
pub const FRAME: std::time::Duration = std::time::Duration::from_millis(33);

/// To clients: the positions of all dots. To the server: the direction of the player's dot. Only the newest counts.
pub const POSITIONS: ChannelIndex = ChannelIndex::new(0).unwrap();
/// Lines of text.
pub const CHAT: ChannelIndex = ChannelIndex::new(1).unwrap();
/// The map, as a text file. It waits for everything else.
pub const MAP: ChannelIndex = ChannelIndex::new(2).unwrap();

pub fn table() -> Result<ChannelTable, ChannelTableError> {
    ChannelTable::new([
        Channel { max_to_server: 2, ..Channel::new(ChannelMode::Sequenced, 5 * DOTS) },
        Channel::new(ChannelMode::ReliableOrdered, 500),
        Channel { max_to_server: 0, priority: 2, ..Channel::new(ChannelMode::ReliableUnordered, 1 << 20) },
    ])
}

/// A position in cells of the map, and the slot of the player who steers the dot, or 255.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dot {
    pub x: f32,
    pub y: f32,
    pub player: u8,
}

/// Five bytes for each dot: x and y in 256ths of a cell, and the player.
pub fn encode(dots: &[Dot]) -> Vec<u8> {
    let fixed = |value: f32| ((value * 256.0) as u16).to_le_bytes();
    dots.iter().flat_map(|dot| [&fixed(dot.x)[..], &fixed(dot.y), &[dot.player]].concat()).collect()
}

pub fn decode(bytes: &[u8]) -> Vec<Dot> {
    let value = |pair: &[u8]| f32::from(u16::from_le_bytes([pair[0], pair[1]])) / 256.0;
    bytes.chunks_exact(5).map(|dot| Dot { x: value(dot), y: value(&dot[2..]), player: dot[4] }).collect()
}

/// Thirty free cells of a map, spread over it.
pub fn start_positions(map: &str) -> Vec<Dot> {
    let cells = map.lines().zip(0..).flat_map(|(line, y)| line.bytes().zip(0..).map(move |(cell, x)| (cell, x, y)));
    let free: Vec<(u8, u16, u16)> = cells.filter(|(cell, ..)| *cell == b' ').collect();
    let dot = |(_, x, y): &(u8, u16, u16)| Dot { x: f32::from(*x) + 0.5, y: f32::from(*y) + 0.5, player: 255 };
    (0..DOTS).map(|n| free.get(n * free.len() / DOTS).map_or(Dot::default(), dot)).collect()
}
