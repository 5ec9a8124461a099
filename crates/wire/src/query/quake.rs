//! What Quake, QuakeWorld and Quake 2 have in common: their character set and the colours of their players.
//!
//! A text consists of bytes that number the 256 pictures of a font. The upper half repeats the lower one in another colour, and
//! the first 32 pictures are brackets, golden digits, dots and pieces of lines.
//!
//! ```
//! use rallypoint_wire::query::quake::to_ascii;
//!
//! assert_eq!(*to_ascii(b"\x10\xc1\xe4\xe1\x11 \x12\x13"), *b"[Ada] 01");
//! ```

use alloc::{borrow::Cow, string::String};

/// What the first 32 pictures resemble. Tabs and line breaks are spaces.
const LOW: &[u8; 32] = b"?####.###  # >..[]0123456789.<=>";

/// What the pictures from 128 on resemble, where that is not a character without colour.
const HIGH: &[u8; 16] = b"<=>##.#### # >..";

/// Replaces the pictures of a font by the characters that they resemble: the result consists of printable ASCII characters.
#[must_use]
pub fn to_ascii(text: &[u8]) -> Cow<'_, [u8]> {
    if text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.iter().map(|byte| resembling(*byte)).collect())
}

/// As [`to_ascii`], as a text.
#[must_use]
pub fn to_text(text: &[u8]) -> String {
    to_ascii(text).iter().map(|byte| char::from(*byte)).collect()
}

/// As [`to_text`], without the colour codes of DarkPlaces and FTE: a `^` and a digit, or `^x` and three hexadecimal digits.
///
/// ```
/// use rallypoint_wire::query::quake::to_text_without_colours;
///
/// assert_eq!(to_text_without_colours(b"^1Ro^x0f0bot\x91 ^^ ^a"), "Robot] ^^ ^a");
/// ```
#[must_use]
pub fn to_text_without_colours(text: &[u8]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'^', [b'x', a, b, c, behind @ ..]) if [a, b, c].iter().all(|byte| byte.is_ascii_hexdigit()) => behind,
            (b'^', [b'0'..=b'9', behind @ ..]) => behind,
            _ => {
                shown.push(char::from(resembling(byte)));
                behind
            }
        };
    }
    shown
}

const fn resembling(byte: u8) -> u8 {
    match byte {
        0x80..=0x8f => HIGH[(byte & 0x0f) as usize],
        _ => match byte & 0x7f {
            low @ 0..=0x1f => LOW[low as usize],
            0x7f => b'<',
            printable => printable,
        },
    }
}

/// Number of colours that players can choose.
pub const COLOURS: usize = 14;

/// Names of the colours of shirts and trousers, by number.
const NAMES: [&str; COLOURS] = [
    "White", "Brown", "Lavender", "Green", "Red", "Olive", "Orange", "Peach", "Purple", "Magenta", "Beige", "Aqua",
    "Yellow", "Blue",
];

/// Approximate red, green and blue of the colours.
const RGB: [[u8; 3]; COLOURS] = [
    [235, 235, 235],
    [143, 111, 35],
    [139, 139, 203],
    [107, 107, 15],
    [127, 0, 0],
    [175, 103, 35],
    [255, 171, 71],
    [231, 155, 123],
    [171, 87, 131],
    [187, 115, 159],
    [219, 195, 187],
    [103, 123, 111],
    [255, 243, 27],
    [0, 0, 255],
];

/// Name, and red, green and blue of a colour. Games with more colours repeat them.
#[must_use]
pub fn colour(number: u8) -> (&'static str, [u8; 3]) {
    let index = usize::from(number) % COLOURS;
    (NAMES[index], RGB[index])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_byte_is_a_printable_character() {
        let all: Vec<u8> = (0..=255).collect();
        let ascii = to_ascii(&all);
        assert_eq!(ascii.len(), 256);
        assert!(ascii.iter().all(|byte| matches!(byte, b' '..=b'~')), "{}", ascii.escape_ascii());
        assert_eq!(&ascii[0xa1..0xff], &ascii[0x21..0x7f]);
    }

    #[test]
    fn plain_text_is_not_copied() {
        assert!(matches!(to_ascii(b"Ada"), Cow::Borrowed(b"Ada")));
        assert_eq!(to_text(b"a\tb\nc\xff\x8d"), "a b c<>");
    }
}
