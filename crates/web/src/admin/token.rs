//! The token that authenticates the operator.

use std::{fmt, hint::black_box};
use thiserror::Error;

/// The secret that authenticates the operator. `Debug` hides it, and it is compared in constant time.
///
/// ```
/// use rallypoint_web::AdminToken;
///
/// let token = AdminToken::new("0123456789abcdef").unwrap();
/// assert_eq!(format!("{token:?}"), "AdminToken(secret)");
/// assert!(AdminToken::new("too short").is_err());
/// ```
#[derive(Clone)]
pub struct AdminToken(Box<[u8]>);

/// A text cannot be used as an [`AdminToken`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a token consists of 16 to 256 ASCII letters, digits and punctuation marks; `rallypoint admin token` generates one"
)]
pub struct InvalidAdminToken;

impl AdminToken {
    /// Checks that a token is too long to be guessed, and can be sent in a header.
    pub fn new(text: &str) -> Result<Self, InvalidAdminToken> {
        let is_valid = (16..=256).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then(|| Self(text.as_bytes().into())).ok_or(InvalidAdminToken)
    }

    /// The secret text, for a client that has to send it.
    #[must_use]
    pub fn expose(&self) -> &str {
        // It is ASCII.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Whether a guess is the token. The time it takes does not depend on how much of the guess is right.
    pub(super) fn matches(&self, guess: &[u8]) -> bool {
        let pairs = self.0.iter().zip(guess.iter().chain(std::iter::repeat(&0)));
        let differing = pairs.fold(0, |differing, (ours, theirs)| black_box(differing | (ours ^ theirs)));
        black_box(differing) == 0 && guess.len() == self.0.len()
    }
}

impl PartialEq for AdminToken {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_matches() {
        let token = AdminToken::new("0123456789abcdef").unwrap();
        assert!(token.matches(b"0123456789abcdef"));
        let others: [&[u8]; 5] =
            [b"", b"0123456789abcde", b"0123456789abcdeg", b"0123456789abcdef\0", b"x123456789abcdef"];
        for other in others {
            assert!(!token.matches(other), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "AdminToken(secret)");
    }

    #[test]
    fn tokens_are_long_and_can_be_sent_in_a_header() {
        for text in ["", "short", "0123456789abcde", "0123456789 abcdef", "0123456789abcdéf", &"x".repeat(257)] {
            assert_eq!(AdminToken::new(text), Err(InvalidAdminToken), "{text}");
        }
    }
}
