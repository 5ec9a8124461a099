//! Challenge by which a new address proves that it receives what is sent to it (S31, W34).
//!
//! Acks are not authenticated, and any player of a session knows which number comes next. So a run of messages without bytes
//! is prepared, and only some of them, chosen at random, are sent. A peer that acks most of those and none of the others
//! has received them: with 64 messages of which 16 are sent, a guess succeeds once in two billion attempts.

use rallypoint_wire::session::MessageNumber;

/// Maximum number of prepared messages. Half a window is used if that is less: the smallest window allows one successful
/// guess in 120,000.
pub(super) const MAX_PREPARED: usize = 64;

/// Number of prepared messages that are sent.
const SENT: u32 = 16;

/// Number of acked messages that proves the address: some may be lost.
const REQUIRED: u32 = 12;

/// A run of prepared messages. Sets of them are bit masks, with the first message in the lowest bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathChallenge {
    first: MessageNumber,
    count: u32,
    chosen: u64,
    sent: u64,
    acked: u64,
}

/// Effect of an ack on a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChallengeState {
    Pending,
    /// Enough of the sent messages are acked.
    Passed,
    /// The ack names a message that was never sent: the peer is guessing.
    Failed,
}

impl PathChallenge {
    /// Prepares `count` messages without bytes, starting at `first`. `random` must be unpredictable; it is advanced.
    pub fn new(first: MessageNumber, count: usize, random: &mut u64) -> Self {
        let count = count.clamp(2 * SENT as usize, MAX_PREPARED) as u32;
        let mut chosen = 0_u64;
        while chosen.count_ones() < SENT {
            chosen |= 1 << (split_mix(random) % u64::from(count));
        }
        Self { first, count, chosen, sent: 0, acked: 0 }
    }

    /// The next message to send.
    pub fn next(&self) -> Option<MessageNumber> {
        let left = self.chosen & !self.sent;
        (left != 0).then(|| self.first.plus(left.trailing_zeros()))
    }

    pub fn on_sent(&mut self, number: MessageNumber) {
        self.sent |= self.bit(number);
    }

    pub fn on_ack(&mut self, number: MessageNumber) -> ChallengeState {
        let bit = self.bit(number);
        if bit & !self.sent != 0 {
            return ChallengeState::Failed;
        }
        self.acked |= bit;
        if self.acked.count_ones() >= REQUIRED { ChallengeState::Passed } else { ChallengeState::Pending }
    }

    /// Whether a message lies before the prepared ones. Messages behind them have to wait for them anyway.
    pub fn is_behind(&self, number: MessageNumber) -> bool {
        number.is_before(self.first)
    }

    fn bit(&self, number: MessageNumber) -> u64 {
        let offset = number.distance_from(self.first);
        if offset < self.count { 1 << offset } else { 0 }
    }
}

/// SplitMix64: the next number of a sequence that looks random without knowledge of its start.
pub(super) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send_all(challenge: &mut PathChallenge) -> Vec<MessageNumber> {
        let next = std::iter::from_fn(|| {
            let number = challenge.next()?;
            challenge.on_sent(number);
            Some(number)
        });
        next.collect()
    }

    #[test]
    fn w34_acks_of_most_sent_messages_pass_the_challenge() {
        for (count, mut random) in [(MAX_PREPARED, 1), (32, 2)] {
            let first = MessageNumber::new(u32::MAX - 7);
            let mut challenge = PathChallenge::new(first, count, &mut random);
            assert_eq!(challenge.on_ack(first.plus(u32::MAX)), ChallengeState::Pending, "sent long ago");
            let numbers = send_all(&mut challenge);
            assert!(numbers.len() == 16 && numbers.iter().all(|n| n.distance_from(first) < count as u32));
            let states: Vec<_> = numbers.iter().map(|number| challenge.on_ack(*number)).collect();
            assert_eq!(states[..11], [ChallengeState::Pending; 11]);
            assert_eq!(states[11], ChallengeState::Passed);
            assert!(challenge.is_behind(first.plus(u32::MAX)) && !challenge.is_behind(first));
        }
    }

    #[test]
    fn w34_an_ack_of_an_unsent_message_fails_the_challenge() {
        let first = MessageNumber::new(5);
        let mut challenge = PathChallenge::new(first, MAX_PREPARED, &mut 3);
        let numbers = send_all(&mut challenge);
        for number in (0..64).map(|offset| first.plus(offset)) {
            assert_eq!(challenge.on_ack(number) == ChallengeState::Failed, !numbers.contains(&number));
        }
        let mut random = 3;
        let choices: std::collections::HashSet<u64> =
            (0..1_000).map(|_| PathChallenge::new(first, MAX_PREPARED, &mut random).chosen).collect();
        assert_eq!(choices.len(), 1_000);
    }
}
