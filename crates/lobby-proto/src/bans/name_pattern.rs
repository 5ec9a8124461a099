//! Patterns for server names.

use std::{convert::Infallible, fmt, str::FromStr};

/// A pattern for whole names: `*` matches any number of characters, `?` exactly one; case is ignored.
///
/// ```
/// use rallypoint_lobby_proto::NamePattern;
///
/// let pattern = NamePattern::new("*casino*");
/// assert!(pattern.matches("Best CASINO in town"));
/// assert!(!pattern.matches("Bacon Town"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    text: Box<str>,
    folded: Box<[char]>,
}

impl NamePattern {
    /// A pattern from its text. Every text is a valid pattern.
    #[must_use]
    pub fn new(pattern: &str) -> Self {
        Self { text: pattern.into(), folded: fold_case(pattern).into() }
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the whole name matches. Takes time proportional to the product of both lengths in the worst case.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.matches_folded(&fold_case(name))
    }

    /// Whether a name matches that [`fold_case`] has converted.
    pub(super) fn matches_folded(&self, name: &[char]) -> bool {
        let pattern = &self.folded;
        let mut p = 0;
        let mut n = 0;
        // Where to resume if the characters after the last `*` do not match: after that `*`, one character later.
        let mut retry: Option<(usize, usize)> = None;
        while n < name.len() {
            match pattern.get(p) {
                Some('*') => {
                    p += 1;
                    retry = Some((p, n));
                }
                Some(&c) if c == '?' || c == name[n] => {
                    p += 1;
                    n += 1;
                }
                _ => match retry {
                    Some((star, from)) => {
                        p = star;
                        n = from + 1;
                        retry = Some((star, n));
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|&c| c == '*')
    }
}

/// A text in lower case, as characters.
pub(super) fn fold_case(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

impl FromStr for NamePattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::new(text))
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names_regardless_of_case() {
        for (pattern, name, matches) in [
            ("*casino*", "Best CASINO in town", true),
            ("casino", "casino royale", false),
            ("b?con", "Bacon", true),
            ("*a*b*c", "xxaxxbxxc", true),
            ("*a*b*c", "xxaxxbxxd", false),
            ("*", "", true),
            ("", "x", false),
            ("größe*", "GRÖSSE", false),
            ("grö*", "GRÖSSE", true),
        ] {
            assert_eq!(NamePattern::new(pattern).matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_name_cannot_make_matching_slow() {
        assert!(!NamePattern::new("*a*a*a*a*a*a*a*b").matches(&"a".repeat(4_000)));
    }
}
