//! The texts of refusals and disconnects after which a client logs in again: their causes are transient (W50).
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

/// A message is missing that the peer no longer has (W63).
pub(crate) const STALLED: &str = "a message was lost for good";

const TRANSIENT: [&str; 7] = [FULL, TOO_MANY, SLOT_TAKEN, UNKNOWN_SESSION, NUMBERS_EXHAUSTED, ACK_TIMEOUT, STALLED];

/// Shortest text that is recognised although it was cut: the reply to the shortest login has 15 bytes for its text (S16), and no
/// final reason starts with as many bytes of a transient one.
const MIN_CUT: usize = 15;

/// Whether a server that gave this reason may accept a later login.
pub(crate) fn is_transient(text: &str) -> bool {
    let is_known = |known: &&str| text == *known || (text.len() >= MIN_CUT && known.starts_with(text));
    TRANSIENT.iter().any(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DisconnectReason;

    #[test]
    fn w50_transient_reasons_are_recognised_even_if_they_were_cut() {
        assert!(TRANSIENT.into_iter().all(is_transient));
        let sent = [DisconnectReason::NumbersExhausted, DisconnectReason::AckTimeout, DisconnectReason::Stalled];
        assert!(sent.iter().all(|reason| is_transient(&reason.to_string())));
        assert!(is_transient("too many from your a") && is_transient("this server is "));
        for text in ["", "t", "this server ", "this server requires encryption", "slot taken by the admin"] {
            assert!(!is_transient(text), "{text}");
        }
    }
}
