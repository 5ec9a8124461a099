//! Text from strangers in columns.

pub use crate::ask::output::terminal::columns;
use crate::ask::output::terminal::fit as fit_plain;
use unicode_width::UnicodeWidthChar;

/// No line is longer, whatever a server sends.
const LONGEST: usize = 400;

/// A text without what would shift columns: signs that join or change others, and heaps of accents. Control characters are
/// already gone; should one come, it goes here.
pub fn plain(text: &str) -> String {
    let (mut plain, mut marks) = (String::new(), 0);
    for c in text.chars().take(LONGEST) {
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

/// A text from anywhere in exactly so many columns.
pub fn fit(text: &str, wide: usize, to_the_right: bool) -> String {
    fit_plain(&plain(text), wide, to_the_right)
}

/// The end of a text that fits into so many columns: what is typed last stays in sight.
pub fn clip_left(text: &str, most: usize) -> String {
    let mut from = text;
    while columns(from) > most {
        let mut chars = from.chars();
        chars.next();
        from = chars.as_str();
    }
    from.to_owned()
}

/// A text in lines of at most so many columns, broken between words where that is possible.
pub fn wrap(text: &str, wide: usize) -> Vec<String> {
    let wide = wide.max(1);
    let mut lines = vec![String::new()];
    for word in plain(text).split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        let space = usize::from(!line.is_empty());
        if columns(line) + space + columns(word) <= wide {
            line.extend(std::iter::repeat_n(' ', space));
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(String::new());
        }
        for c in word.chars() {
            let line = lines.last_mut().expect("there is always one");
            if columns(line) + c.width().unwrap_or(0) > wide && !line.is_empty() {
                lines.push(String::new());
            }
            lines.last_mut().expect("there is always one").push(c);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_shifts_a_column() {
        assert_eq!(plain("a\u{301}\u{301}\u{301}b"), "a\u{301}b");
        assert_eq!(plain("👩\u{200d}👩\u{200d}👧❤\u{fe0f}"), "👩👩👧❤");
        assert_eq!(plain("\u{301}x\x1b[2J"), "x [2J");
        assert_eq!(plain(&"x".repeat(100_000)).len(), LONGEST);
    }

    #[test]
    fn lines_are_broken_between_words_if_possible() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("onetwothree x", 4), ["onet", "woth", "ree", "x"]);
        assert_eq!(wrap("七人の侍", 5), ["七人", "の侍"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("七", 1), ["七"]);
    }
}
