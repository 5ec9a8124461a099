//! Challenges that need no memory: the time at which one was sent, and a keyed hash of time and address.

use crate::HashKeys;
use siphasher::sip::SipHasher24;
use std::{
    hash::Hasher,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

/// How long a challenge is valid: a reply takes one round trip.
const VALID: Duration = Duration::from_secs(5);

/// Characters of the time and of the hash.
const TIME: usize = 6;
const HASH: usize = 10;

/// Characters that servers of all versions return as they are.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[derive(Debug)]
pub(super) struct Challenges {
    keys: HashKeys,
    /// The time from which times are counted.
    start: Option<Instant>,
}

impl Challenges {
    pub fn new(keys: &HashKeys) -> Self {
        Self { keys: keys.clone(), start: None }
    }

    /// The challenge for a server, as of now.
    pub fn challenge(&mut self, now: Instant, server: SocketAddr) -> [u8; TIME + HASH] {
        let start = *self.start.get_or_insert(now);
        self.at(now.saturating_duration_since(start).as_millis() as u64, server)
    }

    /// The time since the challenge was sent to this server; `None` if it was not, or too long ago.
    pub fn verify(&self, now: Instant, server: SocketAddr, challenge: &[u8]) -> Option<Duration> {
        let sent = challenge.get(..TIME)?.iter().try_fold(0u64, |time, digit| {
            let value = DIGITS.iter().position(|other| other == digit)?;
            Some(time << 6 | value as u64)
        })?;
        // The comparison need not take constant time: every guess costs a datagram, and a new challenge has another hash.
        if self.at(sent, server) != challenge {
            return None;
        }
        let sent = self.start?.checked_add(Duration::from_millis(sent))?;
        Some(now.saturating_duration_since(sent)).filter(|age| *age <= VALID)
    }

    fn at(&self, millis: u64, server: SocketAddr) -> [u8; TIME + HASH] {
        let mut hasher = SipHasher24::new_with_key(&self.keys.public_ids);
        hasher.write(b"quake3 challenge");
        hasher.write_u64(self.keys.tables);
        hasher.write_u64(millis);
        match server.ip() {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write_u16(server.port());
        let hash = hasher.finish();
        let digit = |value: u64, index: usize| DIGITS[(value >> (6 * index) & 63) as usize];
        std::array::from_fn(|index| match index {
            0..TIME => digit(millis, TIME - 1 - index),
            _ => digit(hash, index - TIME),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_valid_for_one_server_and_five_seconds() {
        let now = Instant::now();
        let mut challenges = Challenges::new(&HashKeys::default());
        let server: SocketAddr = "203.0.113.9:27960".parse().unwrap();
        let other = "203.0.113.9:27961".parse().unwrap();
        challenges.challenge(now, server);
        let sent = now + Duration::from_secs(3_600);
        let challenge = challenges.challenge(sent, server);
        let later = sent + Duration::from_millis(40);
        assert_eq!(challenges.verify(later, server, &challenge), Some(Duration::from_millis(40)));
        assert_eq!(challenges.verify(later, other, &challenge), None);
        assert_eq!(challenges.verify(later, server, &challenge[1..]), None);
        assert_eq!(challenges.verify(sent + VALID + Duration::from_secs(1), server, &challenge), None);
        for index in 0..challenge.len() {
            let mut wrong = challenge;
            wrong[index] = if wrong[index] == b'A' { b'B' } else { b'A' };
            assert_eq!(challenges.verify(later, server, &wrong), None, "{index}");
        }
    }
}
