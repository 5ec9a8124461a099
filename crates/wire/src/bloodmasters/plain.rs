//! Converts text for a reply: without colour codes (B12), and in ASCII (B2).

use alloc::{borrow::Cow, vec::Vec};

const COLOUR: u8 = b'^';

/// Removes colour codes, a `^` and one character each. A responder does this to its title and its players' names, and to
/// nothing else (B12).
///
/// A `^` directly before another one, or at the end, is removed alone (W3).
///
/// ```
/// use rallypoint_wire::bloodmasters::strip_colours;
///
/// assert_eq!(*strip_colours(b"^1Bob^7by"), *b"Bobby");
/// ```
#[must_use]
pub fn strip_colours(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&COLOUR) {
        return Cow::Borrowed(text);
    }
    let mut stripped = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte == COLOUR {
            bytes.next_if(|&code| code != COLOUR);
        } else {
            stripped.push(byte);
        }
    }
    Cow::Owned(stripped)
}

/// Replaces every character that is not ASCII by a `?`, as the strings of a reply require (B2).
#[must_use]
pub fn ascii(text: &str) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        Cow::Borrowed(text.as_bytes())
    } else {
        Cow::Owned(text.chars().map(|c| u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(b'?')).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b12_a_colour_code_is_a_caret_and_one_character() {
        for (coloured, plain) in [
            ("plain", "plain"),
            ("^1Red ^2Green", "Red Green"),
            ("^1", ""),
            ("a^xb", "ab"),
            ("", ""),
            // W3
            ("end^", "end"),
            ("^^1x", "x"),
            ("a^^", "a"),
        ] {
            assert_eq!(*strip_colours(coloured.as_bytes()), *plain.as_bytes(), "{coloured}");
        }
        assert!(matches!(strip_colours(b"plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn b2_characters_beyond_ascii_become_question_marks() {
        assert_eq!(*ascii("Café € 日本 end"), *b"Caf? ? ?? end");
        assert!(matches!(ascii("plain"), Cow::Borrowed(_)));
    }
}
