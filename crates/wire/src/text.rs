//! Sanitizes text from the network for display (ruling L5).

use alloc::{borrow::Cow, string::String};

/// Windows-1252 at 0x80 to 0x9f. Its five unassigned bytes are shown as the replacement character.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž', '\u{fffd}', //
    '\u{fffd}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{fffd}', 'ž', 'Ÿ',
];

/// Decodes bytes for display: as UTF-8 or, if they are not valid UTF-8, as Windows-1252. The result is sanitized in either
/// case.
///
/// Tabs and line breaks become spaces. Other control characters become `U+FFFD`, and so do characters that are invisible
/// or that reorder or hide the text around them (bidirectional controls, invisible tags). Joiners and variation selectors
/// (as in emoji and in Persian) are kept after a visible character beyond ASCII, so that a name never consists of them
/// alone and no ASCII word can hide one. Markup is not escaped: that is up to the code that writes HTML, JSON or CSV.
///
/// ```
/// use rallypoint_wire::text;
///
/// assert_eq!(text::display(b"Bacon Town"), "Bacon Town");
/// assert_eq!(text::display(b"Caf\xe9 \x80"), "Café €");
/// assert_eq!(text::display(b"red\x1b[31m\ttext"), "red\u{fffd}[31m text");
/// ```
#[must_use]
pub fn display(bytes: &[u8]) -> Cow<'_, str> {
    match core::str::from_utf8(bytes) {
        Ok(text) => sanitize(text),
        Err(_) => Cow::Owned(sanitize_chars(bytes.iter().map(|&byte| windows_1252(byte))).collect()),
    }
}

/// Sanitizes text that is already decoded, as [`display`] does.
#[must_use]
pub fn sanitize(text: &str) -> Cow<'_, str> {
    // Most names are printable ASCII, which is much faster to check by bytes.
    let is_plain = || text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_plain() || sanitize_chars(text.chars()).eq(text.chars()) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(sanitize_chars(text.chars()).collect::<String>())
    }
}

fn sanitize_chars(text: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    text.scan(' ', |before, c| {
        let is_visible = !before.is_ascii() && *before != char::REPLACEMENT_CHARACTER && !is_joiner(*before);
        let is_emoji = *before == '\u{fe0f}' && c == '\u{200d}';
        let is_alone = is_joiner(c) && !is_visible && !is_emoji;
        *before = if is_alone { char::REPLACEMENT_CHARACTER } else { sanitize_char(c) };
        Some(*before)
    })
}

/// Whether a character changes the shape of the one before it and is invisible by itself.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

fn windows_1252(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS_1252[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

fn sanitize_char(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => ' ',
        // Control characters, then those that change the direction of the text, then invisible ones.
        _ if c.is_control() => char::REPLACEMENT_CHARACTER,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' => {
            char::REPLACEMENT_CHARACTER
        }
        '\u{200b}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => {
            char::REPLACEMENT_CHARACTER
        }
        '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l5_utf8_is_shown_unchanged() {
        assert!(matches!(display("Größe 七 🎮".as_bytes()), Cow::Borrowed("Größe 七 🎮")));
    }

    #[test]
    fn l5_joiners_are_kept_after_visible_characters() {
        for text in ["👩\u{200d}🚀", "❤\u{fe0f}\u{200d}🔥", "می\u{200c}خواهم"] {
            assert!(matches!(sanitize(text), Cow::Borrowed(_)), "{text}");
        }
        assert_eq!(sanitize("ad\u{200d}min"), "ad\u{fffd}min");
        assert_eq!(sanitize("七\u{200d}\u{200d}\u{fe0f}"), "七\u{200d}\u{fffd}\u{fffd}");
    }

    #[test]
    fn l5_other_bytes_are_windows_1252() {
        assert_eq!(display(&[0x47, 0xfc, 0x6e, 0x74, 0x65, 0x72, 0x92, 0x73]), "Günter’s");
        for byte in 0..=255u8 {
            // 0xff makes it invalid UTF-8, so every byte is decoded as Windows-1252.
            assert_eq!(display(&[byte, 0xff]).chars().count(), 2, "{byte:#x}");
        }
    }

    #[test]
    fn l5_control_bidirectional_and_invisible_characters_are_replaced() {
        for c in ['\0', '\x07', '\x1b', '\x7f', '\u{85}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200f}', '\u{e0041}'] {
            assert_eq!(sanitize(c.encode_utf8(&mut [0; 4])), "\u{fffd}", "{c:?}");
        }
        for c in "\u{2060}\u{ad}\u{34f}\u{180e}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{fe0f}\u{200d}\u{e0100}".chars() {
            assert_eq!(sanitize(c.encode_utf8(&mut [0; 4])), "\u{fffd}", "{c:?}");
        }
        assert_eq!(sanitize("a\tb\r\nc\u{2028}d"), "a b  c d");
    }
}
