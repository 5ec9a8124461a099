//! The text that describes a server in the legacy protocol.
//!
//! ```text
//! !private![ctf_truefort] Bacon Town 24/7 [3/10] - Randomizer
//! ^^^^^^^^^                                                     optional: a password is required
//!          ^^^^^^^^^^^^^^^                                      optional: the map
//!                         ^^^^^^^^^^^^^^^                       the name
//!                                        ^^^^^^^               optional: players/slots, or players+bots/slots
//!                                               ^^^^^^^^^^^^^   optional: the mod
//! ```
//!
//! Names are free text, so a text can be ambiguous. It is interpreted as follows (W9):
//! - the map is the text between a `[` at the start and the first `] `;
//! - the counts are the *last* ones that are followed by ` - ` or by the end: a server appends its own counts to its name,
//!   whatever the name contains;
//! - the mod is the text after ` - ` after the counts; without counts, the text after the first ` - `;
//! - everything else, such as counts that are not numbers, belongs to the name.
//!
//! Emitting a parsed text gives the same text, except for leading zeros in counts.

use crate::{DecodeError, Reader, Writer};
use alloc::vec::Vec;

/// Maximum length of a text in bytes: its length field is one byte.
const MAX_TEXT: usize = 255;

/// Maximum length in bytes of the map and of the mod in a text that has to be truncated: together with the longest counts
/// this leaves 92 bytes for the name.
const MAX_PART: usize = 64;

const PRIVATE: &[u8] = b"!private!";
const MOD: &[u8] = b" - ";

/// Description of a server in the legacy protocol. Texts are bytes in any code page (L5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info<'a> {
    /// Whether a password is required.
    pub private: bool,
    /// Current map.
    pub map: Option<&'a [u8]>,
    /// Server name.
    pub name: &'a [u8],
    /// Players, bots and slots.
    pub counts: Option<Counts>,
    /// Mod of the game.
    pub modification: Option<&'a [u8]>,
}

/// Players, bots and slots of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Number of human players.
    pub players: u16,
    /// Number of bots.
    pub bots: u16,
    /// Number of player slots.
    pub slots: u16,
}

impl<'a> Info<'a> {
    /// Parses a text. This cannot fail: text that fits no other part is the name.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Self {
        let (private, text) = text.strip_prefix(PRIVATE).map_or((false, text), |rest| (true, rest));
        let (map, text) = split_map(text).map_or((None, text), |(map, rest)| (Some(map), rest));
        if let Some((name, counts, rest)) = split_counts(text) {
            return Self { private, map, name, counts: Some(counts), modification: rest.strip_prefix(MOD) };
        }
        let (name, modification) =
            split_once(text, MOD).map_or((text, None), |(name, modification)| (name, Some(modification)));
        Self { private, map, name, counts: None, modification }
    }

    /// Parses a text with its length.
    pub(super) fn parse_counted(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let length = reader.u8("info length")?;
        reader.bytes(usize::from(length), "info text").map(Self::parse)
    }

    /// Appends the text, truncated to 255 bytes: first map and mod are truncated to 64 bytes each, then the name to the
    /// remaining space, so that the counts and the mod are kept. UTF-8 is truncated between characters (W10).
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.write(&mut Writer::new(out));
    }

    pub(super) fn emit_counted(&self, writer: &mut Writer<'_>) {
        let at = writer.written();
        writer.u8(0);
        self.write(writer);
        // At most `MAX_TEXT`.
        let length = (writer.written() - at - 1) as u8;
        writer.patch(at, &[length]);
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let fitting = if self.size() <= MAX_TEXT {
            *self
        } else {
            let part = |text| cut(text, MAX_PART);
            let short = Self { map: self.map.map(part), modification: self.modification.map(part), name: b"", ..*self };
            Self { name: cut(self.name, MAX_TEXT - short.size()), ..short }
        };
        fitting.write_whole(writer);
    }

    fn write_whole(&self, writer: &mut Writer<'_>) {
        if self.private {
            writer.bytes(PRIVATE);
        }
        if let Some(map) = self.map {
            writer.u8(b'[');
            writer.bytes(map);
            writer.bytes(b"] ");
        }
        writer.bytes(self.name);
        match self.counts {
            Some(Counts { players, bots: 0, slots }) => writer.display(format_args!(" [{players}/{slots}]")),
            Some(Counts { players, bots, slots }) => writer.display(format_args!(" [{players}+{bots}/{slots}]")),
            None => {}
        }
        if let Some(modification) = self.modification {
            writer.bytes(MOD);
            writer.bytes(modification);
        }
    }

    /// Number of bytes that `write_whole` writes.
    fn size(&self) -> usize {
        let private = if self.private { PRIVATE.len() } else { 0 };
        let map = self.map.map_or(0, |map| b"[] ".len() + map.len());
        let counts = self.counts.map_or(0, Counts::size);
        let modification = self.modification.map_or(0, |modification| MOD.len() + modification.len());
        private + map + self.name.len() + counts + modification
    }
}

impl Counts {
    fn size(self) -> usize {
        let digits = |number: u16| number.checked_ilog10().map_or(1, |log| log as usize + 1);
        let bots = if self.bots == 0 { 0 } else { 1 + digits(self.bots) };
        " [/]".len() + digits(self.players) + bots + digits(self.slots)
    }

    /// Parses ` [players/slots]` or ` [players+bots/slots]`; also returns the rest.
    fn parse(text: &[u8]) -> Option<(Self, &[u8])> {
        let (players, text) = parse_number(text.strip_prefix(b" [")?)?;
        let (bots, text) = match text.strip_prefix(b"+") {
            Some(text) => parse_number(text)?,
            None => (0, text),
        };
        let (slots, text) = parse_number(text.strip_prefix(b"/")?)?;
        Some((Self { players, bots, slots }, text.strip_prefix(b"]")?))
    }
}

/// Parses the digits at the start of a text as a 16-bit number; also returns the rest.
fn parse_number(text: &[u8]) -> Option<(u16, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    let number = core::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, rest))
}

fn split_map(text: &[u8]) -> Option<(&[u8], &[u8])> {
    split_once(text.strip_prefix(b"[")?, b"] ")
}

/// Splits a text into the name, the last valid counts, and the rest: nothing, or ` - ` and the mod.
fn split_counts(text: &[u8]) -> Option<(&[u8], Counts, &[u8])> {
    (0..text.len()).rev().find_map(|at| {
        let (counts, rest) = Counts::parse(&text[at..])?;
        (rest.is_empty() || rest.starts_with(MOD)).then_some((&text[..at], counts, rest))
    })
}

fn split_once<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    Some((&text[..at], &text[at + separator.len()..]))
}

/// The first `max` bytes at most, without splitting a UTF-8 character.
fn cut(text: &[u8], max: usize) -> &[u8] {
    let end = match core::str::from_utf8(text) {
        Ok(text) => text.floor_char_boundary(max),
        Err(_) => max.min(text.len()),
    };
    &text[..end]
}

#[cfg(test)]
mod tests;
