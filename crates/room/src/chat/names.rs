//! Names of guests, which can be typed and cannot be mistaken for messages of the room.
//!
//! Messages of the room start with `--`, actions with `*`, team chat with `[`, and in chat a `:` follows the name. So a name
//! consists of letters and digits, with `-`, `_` or `.` in between.

/// Maximum length of a name in characters.
const MAX_NAME: usize = 32;

/// Name of the operator in chat.
const RESERVED: &str = "server";

/// The allowed part of a name, or `guest`.
pub fn sanitize_name(username: &str) -> String {
    let is_part = |c: char| is_letter(c) || matches!(c, '-' | '_' | '.');
    let words: Vec<_> = username.split(|c| !is_part(c)).filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").trim_matches(|c| !is_letter(c)).chars().take(MAX_NAME).collect();
    if name.is_empty() || name.eq_ignore_ascii_case(RESERVED) { "guest".into() } else { name }
}

/// Whether two names differ in case at most.
pub fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Whether a character is a visible letter or digit; four Hangul fillers are invisible.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() && !matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_imitate_messages_of_the_room() {
        for (asked, given) in [
            ("alice", "alice"),
            ("Ann Lee", "Ann-Lee"),
            ("Жанна_2.0", "Жанна_2.0"),
            ("-- bob has left", "bob-has-left"),
            ("* bob waves", "bob-waves"),
            ("[red] bob", "red-bob"),
            ("［red］ bob: hi", "red-bob-hi"),
            ("‐‐ server", "guest"),
            ("Server", "guest"),
            ("∗∗∗", "guest"),
            ("\u{202e}evil\u{200b}", "evil"),
            ("\u{3164}", "guest"),
            ("", "guest"),
        ] {
            assert_eq!(sanitize_name(asked), given, "{asked:?}");
        }
        assert_eq!(sanitize_name(&"x".repeat(100)).len(), MAX_NAME);
        assert!(is_same("ÄRGER", "ärger"));
    }
}
