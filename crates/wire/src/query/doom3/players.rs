//! The players in a reply, whose form differs by game and version.
//!
//! ```text
//! DOOM 3, Prey          NUMBER PING RATE NAME
//! Quake 4               NUMBER PING RATE NAME CLAN
//! Quake Wars            NUMBER PING [RATE] NAME [POSITION CLAN] BOT          rate: before 10.19, clan: since 10.17
//! Wolfenstein           NUMBER PING RATE NAME POSITION CLAN BOT              numbers are not in order, the end is 10
//! ```
//!
//! In late versions of Quake Wars the last field is a single bit. What follows is shifted by it, up to the next text, which begins
//! at a byte. After the players, Quake Wars says more about the game.

use super::Version;
use crate::{DecodeError, DecodeErrorKind};

/// A player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Player<'a> {
    /// Number of the player's slot.
    pub number: u8,
    /// Round-trip time in milliseconds.
    pub ping: u16,
    /// The name, with colour codes.
    pub name: &'a [u8],
    /// The clan, with colour codes; empty if there is none.
    pub clan: &'a [u8],
    /// Whether the player is a bot; none if the game does not say so.
    pub is_bot: Option<bool>,
}

/// The players of a reply, in a form that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Players<'a> {
    bytes: &'a [u8],
    layout: Layout,
    count: usize,
    tail: Option<Tail>,
}

/// What Quake Wars says after the players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Whether the game counts for the ranks of players.
    pub is_ranked: bool,
    /// Time left in milliseconds, if the version of the game says it.
    pub time_left_ms: Option<i32>,
}

/// The form of players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    has_rate: bool,
    clan: Clan,
    bot: Bot,
    /// Number in place of a player's that ends the list.
    end: u8,
    /// Whether Quake Wars follows the list with more fields.
    is_quake_wars: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clan {
    None,
    Name,
    PositionAndName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bot {
    None,
    Byte,
    Bit,
}

const DOOM3: Layout = Layout { has_rate: true, clan: Clan::None, bot: Bot::None, end: 32, is_quake_wars: false };
const QUAKE4: Layout = Layout { clan: Clan::Name, ..DOOM3 };
const WOLFENSTEIN: Layout = Layout { clan: Clan::PositionAndName, bot: Bot::Byte, end: 16, ..DOOM3 };
/// Quake Wars before clans, that is, before version 10.17.
const QUAKE_WARS_1: Layout = Layout { bot: Bot::Byte, is_quake_wars: true, ..DOOM3 };
const QUAKE_WARS_2: Layout = Layout { clan: Clan::PositionAndName, ..QUAKE_WARS_1 };
/// Quake Wars since version 10.19.
const QUAKE_WARS_3: Layout = Layout { has_rate: false, ..QUAKE_WARS_2 };
/// Quake Wars since version 13.9.
const QUAKE_WARS_4: Layout = Layout { bot: Bot::Bit, ..QUAKE_WARS_3 };

/// All forms.
const LAYOUTS: [Layout; 7] = [DOOM3, QUAKE4, WOLFENSTEIN, QUAKE_WARS_1, QUAKE_WARS_2, QUAKE_WARS_3, QUAKE_WARS_4];

impl Layout {
    /// The usual form in this version.
    fn of(version: Version, is_quake_wars: bool) -> Self {
        match (is_quake_wars, version.major, version.minor) {
            (true, 13.., _) => QUAKE_WARS_4,
            (true, 11.., _) | (true, 10, 19..) => QUAKE_WARS_3,
            (true, 10, 17..) => QUAKE_WARS_2,
            (true, ..) => QUAKE_WARS_1,
            (false, 2, _) => QUAKE4,
            (false, 10.., _) => WOLFENSTEIN,
            _ => DOOM3,
        }
    }
}

impl<'a> Players<'a> {
    /// Finds the form in which the players end where the datagram does: that of the version, or another one.
    pub(super) fn parse(bytes: &'a [u8], version: Version, is_quake_wars: bool) -> Result<Self, DecodeError> {
        let others = LAYOUTS.into_iter().filter(|layout| layout.is_quake_wars == is_quake_wars);
        let mut layouts = core::iter::once(Layout::of(version, is_quake_wars)).chain(others);
        let fitting = layouts.find_map(|layout| {
            let mut list = List::new(bytes, layout);
            let count = list.by_ref().count();
            let tail = list.end()?;
            Some(Self { bytes, layout, count, tail })
        });
        fitting.ok_or(DecodeError::new("players", DecodeErrorKind::Truncated))
    }

    /// The players.
    pub fn iter(&self) -> impl Iterator<Item = Player<'a>> + use<'a> {
        List::new(self.bytes, self.layout).take(self.count)
    }

    /// What Quake Wars says after the players.
    #[must_use]
    pub fn tail(&self) -> Option<Tail> {
        self.tail
    }
}

/// Reads players until the end of the list, or until a value that cannot be one.
struct List<'a> {
    reader: BitReader<'a>,
    layout: Layout,
    least_number: u8,
    is_at_end: bool,
}

impl<'a> List<'a> {
    fn new(bytes: &'a [u8], layout: Layout) -> Self {
        Self { reader: BitReader { bytes, bit: 0 }, layout, least_number: 0, is_at_end: false }
    }

    fn player(&mut self) -> Option<Player<'a>> {
        let Layout { has_rate, clan, bot, end, .. } = self.layout;
        let number = self.reader.bits(8)? as u8;
        self.is_at_end = number == end;
        // Only in Wolfenstein all players have the same number.
        let is_ordered = end == WOLFENSTEIN.end || number >= self.least_number;
        if number >= end || !is_ordered {
            return None;
        }
        self.least_number = number + 1;
        let ping = self.reader.bits(16)? as u16;
        if has_rate {
            self.reader.bits(32)?;
        }
        let name = self.reader.text()?;
        if clan == Clan::PositionAndName {
            self.reader.bits(8)?;
        }
        let clan = if clan == Clan::None { &[] } else { self.reader.text()? };
        let is_bot = match bot {
            Bot::None => None,
            Bot::Byte => Some(self.reader.bits(8)? != 0),
            Bot::Bit => Some(self.reader.bits(1)? != 0),
        };
        Some(Player { number, ping, name, clan, is_bot })
    }

    /// What follows the players. `None` if that is not what follows a complete list.
    fn end(mut self) -> Option<Option<Tail>> {
        if !self.is_at_end {
            return None;
        }
        let left = self.reader.bytes_left();
        if !self.layout.is_quake_wars {
            // Some servers leave out the last number.
            return matches!(left, 0 | 4).then_some(None);
        }
        if !matches!(left, 5 | 10..=12 | 19) {
            return None;
        }
        self.reader.bits(32)?;
        let is_ranked = self.reader.bits(8)? != 0;
        let time_left_ms = self.reader.bits(32).map(|time| time as i32);
        Some(Some(Tail { is_ranked, time_left_ms }))
    }
}

impl<'a> Iterator for List<'a> {
    type Item = Player<'a>;

    fn next(&mut self) -> Option<Player<'a>> {
        if self.is_at_end { None } else { self.player() }
    }
}

/// Reads numbers from their lowest bit on, which need not begin at a byte, and texts, which do.
struct BitReader<'a> {
    bytes: &'a [u8],
    bit: usize,
}

impl<'a> BitReader<'a> {
    fn bits(&mut self, count: usize) -> Option<u32> {
        let end = self.bit + count;
        if end > self.bytes.len() * 8 {
            return None;
        }
        let bit = |index: usize| u32::from(self.bytes[index / 8] >> (index % 8) & 1);
        let value = (self.bit..end).rev().fold(0, |value, index| value << 1 | bit(index));
        self.bit = end;
        Some(value)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.bit.div_ceil(8)..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        self.bit = (self.bit.div_ceil(8) + end + 1) * 8;
        Some(&rest[..end])
    }

    /// Number of whole bytes that have not been read.
    fn bytes_left(&self) -> usize {
        (self.bytes.len() * 8 - self.bit) / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn parse(bytes: &[u8], major: u16, minor: u16, is_quake_wars: bool) -> Option<Vec<Player<'_>>> {
        let players = Players::parse(bytes, Version { major, minor }, is_quake_wars);
        players.ok().map(|players| players.iter().collect())
    }

    fn player<'a>(number: u8, ping: u16, name: &'a [u8], clan: &'a [u8], is_bot: Option<bool>) -> Player<'a> {
        Player { number, ping, name, clan, is_bot }
    }

    const OSMASK: &[u8] = b"\x05\0\0\0";

    #[test]
    fn each_game_has_its_form() {
        let doom3 = [b"\0\x30\0\0\x40\0\0Ada\0\x03\xe7\x03\0\x40\0\0\0\x20", OSMASK].concat();
        let expected = [player(0, 48, b"Ada", b"", None), player(3, 999, b"", b"", None)];
        assert_eq!(parse(&doom3, 1, 41, false), Some(expected.to_vec()));
        let quake4 = [b"\0\x30\0\0\x40\0\0Ada\0[x]\0\x03\xe7\x03\0\x40\0\0Bob\0\0\x20", OSMASK].concat();
        let expected = [player(0, 48, b"Ada", b"[x]", None), player(3, 999, b"Bob", b"", None)];
        assert_eq!(parse(&quake4, 2, 85, false), Some(expected.to_vec()));
        let wolfenstein = [b"\0\x30\0\0\x40\0\0Ada\0\x01[x]\0\0\0\0\0\0\x40\0\0Bob\0\0\0\x01\x10", OSMASK].concat();
        let expected = [player(0, 48, b"Ada", b"[x]", Some(false)), player(0, 0, b"Bob", b"", Some(true))];
        assert_eq!(parse(&wolfenstein, 13, 9, false), Some(expected.to_vec()));
    }

    /// After the players: the systems, ranked, time left, state of the game, a server for players, spectators.
    const TAIL: &[u8] = b"\x05\0\0\0\x01\x60\xea\0\0\x02\0\x07";

    #[test]
    fn quake_wars_has_four_forms() {
        let expected =
            |clan| Some([player(1, 48, b"Ada", clan, Some(false)), player(2, 0, b"Bob", b"", Some(true))].to_vec());
        let first = [b"\x01\x30\0\0\x40\0\0Ada\0\0\x02\0\0\0\x40\0\0Bob\0\x01\x20", TAIL].concat();
        assert_eq!(parse(&first, 10, 12, true), expected(b""));
        let second = [b"\x01\x30\0\0\x40\0\0Ada\0\0[x]\0\0\x02\0\0\0\x40\0\0Bob\0\0\0\x01\x20", TAIL].concat();
        assert_eq!(parse(&second, 10, 17, true), expected(b"[x]"));
        let third = [b"\x01\x30\0Ada\0\0[x]\0\0\x02\0\0Bob\0\0\0\x01\x20", TAIL].concat();
        assert_eq!(parse(&third, 10, 19, true), expected(b"[x]"));
        assert_eq!(parse(&third, 10, 12, true), expected(b"[x]"), "the version is not what it should be");
        // A bit 0, then the number and the ping, shifted by it; a bit 1, then the end and the tail, shifted by it.
        let mut fourth = b"\x01\x30\0Ada\0\0[x]\0".to_vec();
        fourth.extend_from_slice(b"\x04\0\0\0Bob\0\0\0");
        let end: u128 = TAIL.iter().rev().fold(0, |value, byte| value << 8 | u128::from(*byte));
        let shifted = (end << 8 | 0x20) << 1 | 1;
        fourth.extend_from_slice(&shifted.to_le_bytes()[..14]);
        assert_eq!(parse(&fourth, 13, 9, true), expected(b"[x]"));
        let players = Players::parse(&fourth, Version { major: 13, minor: 9 }, true).unwrap();
        assert_eq!(players.tail(), Some(Tail { is_ranked: true, time_left_ms: Some(60_000) }));
    }

    #[test]
    fn an_empty_server_has_a_list_without_players() {
        assert_eq!(parse(b"\x20\xff\xff\xff\xff", 1, 41, false), Some(Vec::new()));
        assert_eq!(parse(b"\x20", 1, 41, false), Some(Vec::new()));
        assert_eq!(parse(&[b"\x20", TAIL].concat(), 10, 19, true), Some(Vec::new()));
    }

    #[test]
    fn lists_that_do_not_end_where_the_datagram_does_are_errors() {
        for bytes in [
            &b""[..],
            b"\0\x30\0\0\x40\0\0Ada\0",
            b"\0\x30\0\0\x40\0\0Ada",
            b"\0\x30\0\0\x40\0\0Ada\0\x20\x05",
            b"\x03\x30\0\0\x40\0\0Ada\0\x03\x30\0\0\x40\0\0Bob\0\x20\xff\xff\xff\xff",
            b"\x21\x30\0\0\x40\0\0Ada\0\x20\xff\xff\xff\xff",
            &[0xff; 64],
        ] {
            for (major, is_quake_wars) in [(1, false), (2, false), (13, false), (10, true)] {
                assert_eq!(parse(bytes, major, 9, is_quake_wars), None, "{}", bytes.escape_ascii());
            }
        }
    }
}
