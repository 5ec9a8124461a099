//! Names of guests: such as can be typed, and cannot be mistaken for something that the room says.
//!
//! The room's own lines begin with `--`, what guests do with `*`, what a team says with `[`, and what is said has a `:` behind
//! the name. So a name has letters, digits, and `-`, `_` or `.` in between.

/// The longest name, in characters.
const LONGEST: usize = 32;

/// What whoever runs the room is called.
const RESERVED: &str = "server";

/// What is left of a name.
pub fn plain(username: &str) -> String {
    let is_part = |c: char| is_letter(c) || matches!(c, '-' | '_' | '.');
    let words: Vec<_> = username.split(|c| !is_part(c)).filter(|word| !word.is_empty()).collect();
    let name: String = words.join("-").trim_matches(|c| !is_letter(c)).chars().take(LONGEST).collect();
    if name.is_empty() || name.eq_ignore_ascii_case(RESERVED) { "guest".into() } else { name }
}

/// Whether two names are the same for a reader.
pub fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Some letters of Korean cannot be seen.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() && !matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_look_like_the_room() {
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
            assert_eq!(plain(asked), given, "{asked:?}");
        }
        assert_eq!(plain(&"x".repeat(100)).len(), LONGEST);
        assert!(is_same("ÄRGER", "ärger"));
    }
}
