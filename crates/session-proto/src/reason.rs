//! The texts of refusals and disconnects that a client understands, because it logs in again after them (W50).
//!
//! Document 003 has no codes for reasons, only texts for people. A text that is not listed here is final.

/// A login is refused because every slot is taken.
pub(crate) const FULL: &str = "this server is full";

/// A login is refused, or its first message, because its address has as many sessions as it may have.
pub(crate) const TOO_MANY: &str = "too many from your address";

/// The slot that a login was promised has gone to another login (W28).
pub(crate) const SLOT_TAKEN: &str = "slot taken";

/// Data of a session that does not exist (S32).
pub(crate) const UNKNOWN_SESSION: &str = "unknown session";

/// The numbers of an encrypted session are used up (S21).
pub(crate) const NUMBERS_EXHAUSTED: &str = "all message numbers are used up";

/// The peer has not acknowledged anything for too long (W52).
pub(crate) const ACK_TIMEOUT: &str = "nothing was acknowledged for too long";

const PASSING: [&str; 6] = [FULL, TOO_MANY, SLOT_TAKEN, UNKNOWN_SESSION, NUMBERS_EXHAUSTED, ACK_TIMEOUT];

/// Shortest text that is recognised although it was cut: the reply to the shortest login has 20 bytes for its text (S16).
const MIN_CUT: usize = 12;

/// Whether a server that gave this reason may accept a later login.
pub(crate) fn is_passing(text: &str) -> bool {
    let is_known = |known: &&str| text.starts_with(*known) || (text.len() >= MIN_CUT && known.starts_with(text));
    PASSING.iter().any(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w50_reasons_that_can_pass_are_recognised_even_if_they_were_cut() {
        assert!(PASSING.into_iter().all(is_passing));
        assert!(is_passing("too many from your a") && is_passing("this server is"));
        for text in ["", "t", "this server runs another game", "this server requires encryption", "it is late"] {
            assert!(!is_passing(text), "{text}");
        }
    }
}
