//! Messages that cannot be opened, and the number of them that ends a session (S30).

/// Decryption failures after which the session is closed: the integrity limit of RFC 9001 for ChaCha20-Poly1305; that of AES-GCM
/// is higher. With fewer, a forger could end a session by sending datagrams that cannot be opened.
const LIMIT: u64 = 1 << 36;

/// Counts decryption failures of a session, and forgets none of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DecryptionFailures(u64);

impl DecryptionFailures {
    /// Counts one. Returns true if the limit is reached.
    pub fn add(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        self.0 >= LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ConnectionConfig, DisconnectReason,
        connection::{Codec, Connection, ConnectionEvent, DataDisposition, LoginRtt, Protection, Side},
        crypto::{Cipher, Secret},
    };
    use rallypoint_wire::session::{ClientSealed, MessageNumber, Payload, SlotIndex, Uid};
    use std::time::{Duration, Instant};

    /// A session that receives datagrams of an attacker who knows everything but the keys.
    struct Target {
        connection: Connection,
        index: SlotIndex,
        uid: Uid,
        now: Instant,
    }

    impl Target {
        fn new(side: Side) -> Self {
            let now = Instant::now();
            let secret = Secret::new([7; 32]);
            let protection = match side {
                Side::Client => Protection::for_client(Cipher::ChaCha20Poly1305, &secret),
                Side::Server => Protection::for_server(Cipher::ChaCha20Poly1305, &secret),
            };
            let index = SlotIndex::new(3).unwrap();
            let uid = Uid::new(0x0102_0304);
            let codec = Codec { side, index, uid, protection };
            let rtt = LoginRtt { at_least: Duration::from_millis(50), is_exact: true };
            let peer = ([192, 0, 2, 1], 1_000).into();
            let connection = Connection::new(now, &ConnectionConfig::default(), codec, peer, rtt);
            Self { connection, index, uid, now }
        }

        /// Handles forged messages, with numbers within the window and a length of 0 to 15 bytes.
        fn handle_forged(&mut self, count: u64) {
            let forged = [0x5a; 31];
            for round in 0..count {
                let bytes = &forged[..16 + round as usize % 16];
                let number = MessageNumber::new((round % 4_000) as u32);
                let sealed = Payload::new(bytes).unwrap();
                let input = ClientSealed { number, index: self.index, uid: self.uid, sealed }.seal_input();
                let disposition = self.connection.handle_data(self.now, number, bytes, Some(&input), usize::MAX);
                assert_eq!(disposition, DataDisposition::Unproven);
            }
        }

        fn end(&mut self) -> Option<DisconnectReason> {
            std::iter::from_fn(|| self.connection.poll_event()).find_map(|event| match event {
                ConnectionEvent::Closed(reason) => Some(reason),
                _ => None,
            })
        }
    }

    #[test]
    fn s30_ten_million_messages_that_cannot_be_opened_do_not_end_a_session() {
        for (side, count) in [(Side::Client, 65_601), (Side::Server, 10_000_000)] {
            let mut target = Target::new(side);
            target.handle_forged(count);
            assert_eq!(target.connection.receive.decryption_failures.0, count, "none is forgotten");
            assert!(target.end().is_none() && !target.connection.is_closed());
            assert_eq!(target.connection.stats().dropped, count);
        }
    }

    #[test]
    fn s30_the_last_of_2_36_messages_that_cannot_be_opened_ends_a_session() {
        for side in [Side::Client, Side::Server] {
            let mut target = Target::new(side);
            target.connection.receive.decryption_failures = DecryptionFailures(LIMIT - 2);
            target.handle_forged(1);
            assert!(target.end().is_none() && !target.connection.is_closed());
            target.handle_forged(1);
            assert_eq!(target.end(), Some(DisconnectReason::DecryptionFailures));
            assert!(target.connection.is_closed());
        }
    }
}
