//! Measures the share of lost datagrams for the statistics: of all transmissions, copies and resends included (W82).
//!
//! A loss is counted when it is detected, and not when a resend is acked: at the end of a download, the messages that are acked
//! last are those that were lost, and would count most. If the datagram has arrived after all, the count is taken back.
//!
//! Of a message and its copy, the first that arrives is acked. Whether the other one arrived too is known a little later from the
//! order of the numbers in acks, or not at all if those acks are lost: then it counts as lost with the share of those that
//! are known. A peer that does not use this order seems to receive no copies. Then the share follows from how often both are
//! lost, as if losses were independent of each other.

use super::average::flush_subnormal;

/// Number of transmissions over which the loss is averaged: 68 s of a game that sends 60 messages per second, each of them twice.
/// With fewer, chance alone would change the displayed loss by more than a tenth.
const MEMORY: f64 = 8_192.0;

/// Share of missing copies above which the peer is one that does not tell which copies arrived.
const MAX_MISSING: f64 = 0.9;

/// Share of lost datagrams, from the fate of transmissions. Older ones count less.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossMeter {
    /// Transmissions, except for the second one of each arrived pair.
    transmissions: Observations,
    /// Messages with a copy; they are lost if both transmissions are.
    pairs: Observations,
    /// Second transmissions of arrived pairs whose fate is known.
    copies: Observations,
}

/// A number of observations, and of those that were lost.
#[derive(Clone, Copy, Debug, Default)]
struct Observations {
    count: f64,
    lost: f64,
}

impl LossMeter {
    /// A transmission turned out to be lost or received.
    pub fn add(&mut self, is_lost: bool) {
        self.transmissions.decay();
        self.pairs.decay();
        self.copies.decay();
        self.transmissions.add(is_lost);
    }

    /// A transmission that counted as lost has arrived.
    pub fn revoke_loss(&mut self) {
        self.transmissions.revoke_loss();
    }

    /// A message and its copy are lost. They are added as two transmissions as well.
    pub fn add_lost_pair(&mut self) {
        self.pairs.add(true);
    }

    /// A message with a copy has arrived, once or twice. It is added as one transmission as well.
    pub fn add_arrived_pair(&mut self) {
        self.pairs.add(false);
    }

    /// The second transmission of an arrived pair turned out to be lost or received.
    pub fn add_copy(&mut self, is_lost: bool) {
        self.copies.add(is_lost);
    }

    /// The second transmission of an arrived pair counted as lost, and has arrived.
    pub fn revoke_copy_loss(&mut self) {
        self.copies.revoke_loss();
    }

    /// Whether the peer tells which copies arrived.
    pub fn peer_reports_copies(&self) -> bool {
        self.copies.share() <= MAX_MISSING
    }

    /// The share of lost datagrams, from 0 to 1.
    pub fn loss(&self) -> f64 {
        let missing = if self.peer_reports_copies() && self.copies.count > 0.0 {
            self.copies.share()
        } else {
            // Of two, one or both arrived: the share of those of which one arrived, if both are lost independently.
            let loss = self.pairs.share().sqrt();
            2.0 * loss / (1.0 + loss)
        };
        let arrived_pairs = (self.pairs.count - self.pairs.lost).max(0.0);
        let count = self.transmissions.count + arrived_pairs;
        if count > 0.0 { ((self.transmissions.lost + missing * arrived_pairs) / count).min(1.0) } else { 0.0 }
    }
}

impl Observations {
    fn add(&mut self, is_lost: bool) {
        self.count += 1.0;
        self.lost += f64::from(u8::from(is_lost));
    }

    fn revoke_loss(&mut self) {
        self.lost = (self.lost - 1.0).max(0.0);
    }

    fn decay(&mut self) {
        self.count = flush_subnormal(self.count - self.count / MEMORY);
        self.lost = flush_subnormal(self.lost - self.lost / MEMORY);
    }

    fn share(&self) -> f64 {
        if self.count > 0.0 { self.lost / self.count } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_netsim::Rng;

    #[test]
    fn a_loss_long_ago_is_forgotten_and_not_subnormal() {
        let mut meter = LossMeter::default();
        meter.add(true);
        meter.add_lost_pair();
        meter.add_copy(true);
        for _ in 0..400_000 {
            meter.add(false);
        }
        let LossMeter { transmissions, pairs, copies } = meter;
        assert_eq!((transmissions.lost, pairs.lost, copies.lost, copies.count), (0.0, 0.0, 0.0, 0.0));
        assert!(transmissions.count > 0.99 * MEMORY);
    }

    #[test]
    fn w82_a_loss_that_is_taken_back_does_not_count() {
        let mut meter = LossMeter::default();
        for _ in 0..2_000 {
            meter.add(true);
            meter.revoke_loss();
            meter.add_copy(true);
            meter.revoke_copy_loss();
        }
        assert!(meter.loss() < 0.001, "{meter:?}");
        meter.revoke_loss();
        assert_eq!(meter.transmissions.lost, 0.0);
    }

    /// Messages with copies; `is_told`: the peer tells which of them arrived.
    fn loss_of_pairs(percent: u64, is_told: bool) -> f64 {
        let mut rng = Rng::new(percent);
        let mut meter = LossMeter::default();
        let loss = percent as f64 / 100.0;
        for _ in 0..200_000 {
            if rng.chance(loss * loss) {
                meter.add_lost_pair();
                meter.add(true);
                meter.add(true);
            } else {
                meter.add_arrived_pair();
                meter.add(false);
                // One of the two has arrived: the other one is lost with this probability.
                meter.add_copy(!is_told || rng.chance(2.0 * loss / (1.0 + loss)));
            }
        }
        meter.loss() * 100.0
    }

    #[test]
    fn w82_the_loss_of_pairs_is_measured_with_peers_that_tell_which_copies_arrived_and_with_others() {
        for percent in [1, 5, 10, 20, 30] {
            let truth = percent as f64;
            let [told, untold] = [true, false].map(|is_told| loss_of_pairs(percent, is_told));
            assert!((told - truth).abs() < 0.15 * truth, "{percent} %: {told}");
            assert!((untold - truth).abs() < 0.35 * truth, "{percent} %: {untold}");
        }
    }
}
