//! What the operator is known by.

use std::{fmt, hint::black_box};
use thiserror::Error;

/// A secret that only the operator knows. It hides itself from `Debug`, and is compared in constant time.
#[derive(Clone)]
pub struct Token(Box<[u8]>);

/// A text is not a [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a token has 16 to 256 letters, digits or signs, and no spaces; `rallypoint admin token` makes one")]
pub struct NotAToken;

impl Token {
    /// A token, if it is long enough not to be guessed, and can be sent in a header.
    pub fn new(text: &str) -> Result<Self, NotAToken> {
        let is_fit = (16..=256).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_fit.then(|| Self(text.as_bytes().into())).ok_or(NotAToken)
    }

    /// The text itself, for whoever has to send it.
    #[must_use]
    pub fn expose(&self) -> &str {
        // It is ASCII.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Whether this is it. How long that takes says nothing about how much of it is right.
    pub(super) fn is(&self, guess: &[u8]) -> bool {
        let pairs = self.0.iter().zip(guess.iter().chain(std::iter::repeat(&0)));
        let differing = pairs.fold(0, |differing, (ours, theirs)| black_box(differing | (ours ^ theirs)));
        black_box(differing) == 0 && guess.len() == self.0.len()
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_fits() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        let others: [&[u8]; 5] =
            [b"", b"0123456789abcde", b"0123456789abcdeg", b"0123456789abcdef\0", b"x123456789abcdef"];
        for other in others {
            assert!(!token.is(other), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "Token(secret)");
    }

    #[test]
    fn what_can_be_guessed_or_not_be_sent_is_no_token() {
        for text in ["", "short", "0123456789abcde", "0123456789 abcdef", "0123456789abcdéf", &"x".repeat(257)] {
            assert_eq!(Token::new(text), Err(NotAToken), "{text}");
        }
    }
}
