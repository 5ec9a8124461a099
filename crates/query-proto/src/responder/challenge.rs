//! Challenges: numbers that only a client at the address of a query can have received.

use siphasher::sip::SipHasher24;
use std::{
    fmt,
    hash::Hasher,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

/// Makes and checks challenges. They are not stored: each is a keyed hash of an address and of the time.
pub(super) struct Challenges {
    key: [u8; 16],
    /// Time of the first query.
    epoch: Option<Instant>,
}

/// The client that a query came from.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    key: [u8; 16],
    address: SocketAddr,
    period: u64,
}

/// How long a challenge is valid at least; at most twice as long. A query follows its challenge within seconds.
const PERIOD: Duration = Duration::from_secs(30);

impl Challenges {
    pub fn new(seed: u128) -> Self {
        Self { key: seed.to_le_bytes(), epoch: None }
    }

    /// The client at an address.
    pub fn client(&mut self, now: Instant, address: SocketAddr) -> Client {
        let epoch = *self.epoch.get_or_insert(now);
        let period = now.saturating_duration_since(epoch).as_secs() / PERIOD.as_secs();
        Client { key: self.key, address, period }
    }
}

impl Client {
    /// A new challenge. It is neither 0 nor -1, which clients send that have none.
    pub fn challenge(&self) -> [u8; 4] {
        self.challenge_of(self.period)
    }

    /// Whether the client was sent this challenge recently.
    pub fn has_received(&self, challenge: [u8; 4]) -> bool {
        let periods = [Some(self.period), self.period.checked_sub(1)];
        periods.into_iter().flatten().any(|period| self.challenge_of(period) == challenge)
    }

    fn challenge_of(&self, period: u64) -> [u8; 4] {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(b"challenge");
        match self.address.ip() {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write_u16(self.address.port());
        hasher.write_u64(period);
        let hash = hasher.finish() as u32 & 0x7fff_ffff;
        hash.max(1).to_le_bytes()
    }
}

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Challenges(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_valid_for_its_client_for_a_short_time() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let client: SocketAddr = ([192, 0, 2, 1], 4000).into();
        let mut challenges = Challenges::new(7);
        let challenge = challenges.client(start, client).challenge();
        for seconds in [0, 29, 30, 59] {
            assert!(challenges.client(after(seconds), client).has_received(challenge), "after {seconds} s");
        }
        assert!(!challenges.client(after(60), client).has_received(challenge));
        for other in [([192, 0, 2, 1], 4001), ([192, 0, 2, 2], 4000)] {
            assert!(!challenges.client(start, other.into()).has_received(challenge));
        }
        assert!(!Challenges::new(8).client(start, client).has_received(challenge));
        for none in [[0; 4], [255; 4]] {
            assert!(!challenges.client(start, client).has_received(none));
        }
    }
}
