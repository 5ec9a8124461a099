//! How a new address proves that what is sent there arrives there (S31, W34).
//!
//! Acks are not authenticated, and whoever has a session knows which number comes next. So a number of messages without bytes
//! is prepared, and only some of them, chosen by chance, are sent. Whoever acks most of those, and none of the others, has
//! seen them: with 64 messages of which 16 are sent, a guess is right once in two thousand million times.

use rallypoint_wire::session::MessageNumber;

/// So many messages are prepared, or half a window if that is less: the smallest window gives one guess in 120,000.
pub(super) const PREPARED: usize = 64;

/// So many of them are sent.
const SENT: u32 = 16;

/// The ack of so many of those is the proof: some may get lost.
const NEEDED: u32 = 12;

/// Sets of prepared messages are bits, the first message the lowest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Challenge {
    first: MessageNumber,
    count: u32,
    chosen: u64,
    sent: u64,
    acked: u64,
}

/// What an ack means for a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Nothing,
    Proven,
    /// It names a message that was never sent.
    Guessed,
}

impl Challenge {
    /// `count` messages without bytes from `first` on are prepared. `chance` is one that nobody can guess.
    pub fn new(first: MessageNumber, count: usize, chance: &mut u64) -> Self {
        let count = count.clamp(2 * SENT as usize, PREPARED) as u32;
        let mut chosen = 0_u64;
        while chosen.count_ones() < SENT {
            chosen |= 1 << (mix(chance) % u64::from(count));
        }
        Self { first, count, chosen, sent: 0, acked: 0 }
    }

    /// The message that is to be sent next.
    pub fn next(&self) -> Option<MessageNumber> {
        let left = self.chosen & !self.sent;
        (left != 0).then(|| self.first.plus(left.trailing_zeros()))
    }

    pub fn on_sent(&mut self, number: MessageNumber) {
        self.sent |= self.bit(number);
    }

    pub fn on_ack(&mut self, number: MessageNumber) -> Verdict {
        let bit = self.bit(number);
        if bit & !self.sent != 0 {
            return Verdict::Guessed;
        }
        self.acked |= bit;
        if self.acked.count_ones() >= NEEDED { Verdict::Proven } else { Verdict::Nothing }
    }

    /// Whether a message may be sent for the first time: what comes behind the prepared ones has to wait for them anyway.
    pub fn is_before(&self, number: MessageNumber) -> bool {
        number.is_before(self.first)
    }

    fn bit(&self, number: MessageNumber) -> u64 {
        let at = number.distance_from(self.first);
        if at < self.count { 1 << at } else { 0 }
    }
}

/// The next of a row of numbers that look random to whoever does not know the first (SplitMix64).
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(challenge: &mut Challenge) -> Vec<MessageNumber> {
        let next = std::iter::from_fn(|| {
            let number = challenge.next()?;
            challenge.on_sent(number);
            Some(number)
        });
        next.collect()
    }

    #[test]
    fn w34_most_of_what_was_sent_is_the_proof() {
        for (count, mut chance) in [(PREPARED, 1), (32, 2)] {
            let first = MessageNumber::new(u32::MAX - 7);
            let mut challenge = Challenge::new(first, count, &mut chance);
            assert_eq!(challenge.on_ack(first.plus(u32::MAX)), Verdict::Nothing, "sent long ago");
            let numbers = sent(&mut challenge);
            assert!(numbers.len() == 16 && numbers.iter().all(|n| n.distance_from(first) < count as u32));
            let verdicts: Vec<_> = numbers.iter().map(|number| challenge.on_ack(*number)).collect();
            assert_eq!(verdicts[..11], [Verdict::Nothing; 11]);
            assert_eq!(verdicts[11], Verdict::Proven);
            assert!(challenge.is_before(first.plus(u32::MAX)) && !challenge.is_before(first));
        }
    }

    #[test]
    fn w34_what_was_not_sent_cannot_be_acked() {
        let first = MessageNumber::new(5);
        let mut challenge = Challenge::new(first, PREPARED, &mut 3);
        let numbers = sent(&mut challenge);
        for number in (0..64).map(|at| first.plus(at)) {
            assert_eq!(challenge.on_ack(number) == Verdict::Guessed, !numbers.contains(&number));
        }
        let mut chance = 3;
        let choices: std::collections::HashSet<u64> =
            (0..1_000).map(|_| Challenge::new(first, PREPARED, &mut chance).chosen).collect();
        assert_eq!(choices.len(), 1_000);
    }
}
