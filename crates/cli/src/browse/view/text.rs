//! Text from untrusted servers in columns.

pub use crate::output::terminal::columns;
use crate::output::terminal::{fit as fit_plain, wrap as wrap_plain};
use unicode_width::UnicodeWidthChar;

/// Maximum length of a text, in characters.
const MAX_CHARS: usize = 400;

/// Removes what would shift columns: joiners, variation selectors, stacked accents. Control characters have been removed
/// before; one that is left is replaced here.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut marks = 0;
    for c in text.chars().take(MAX_CHARS) {
        let is_joiner = matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{34f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{ad}');
        match c.width() {
            _ if is_joiner => {}
            Some(0) if marks >= 1 || plain.is_empty() => {}
            Some(0) => {
                marks += 1;
                plain.push(c);
            }
            Some(_) => {
                marks = 0;
                plain.push(c);
            }
            None => plain.push(' '),
        }
    }
    plain
}

/// Truncates or pads an untrusted text to exactly this width.
pub fn fit(text: &str, wide: usize, is_right_aligned: bool) -> String {
    fit_plain(&plain(text), wide, is_right_aligned)
}

/// The end of a text that fits into this width: what is being typed stays visible.
pub fn clip_left(text: &str, most: usize) -> String {
    let mut from = text;
    while columns(from) > most {
        let mut chars = from.chars();
        chars.next();
        from = chars.as_str();
    }
    from.to_owned()
}

/// Breaks an untrusted text into lines of at most this width.
pub fn wrap(text: &str, wide: usize) -> Vec<String> {
    wrap_plain(&plain(text), wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_texts_do_not_shift_columns() {
        assert_eq!(plain("a\u{301}\u{301}\u{301}b"), "a\u{301}b");
        assert_eq!(plain("👩\u{200d}👩\u{200d}👧❤\u{fe0f}"), "👩👩👧❤");
        assert_eq!(plain("\u{301}x\x1b[2J"), "x [2J");
        assert_eq!(plain(&"x".repeat(100_000)).len(), MAX_CHARS);
    }

    #[test]
    fn untrusted_texts_are_wrapped() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("onetwothree x", 4), ["onet", "woth", "ree", "x"]);
        assert_eq!(wrap("七人の侍", 5), ["七人", "の侍"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("七", 1), ["七"]);
    }
}
