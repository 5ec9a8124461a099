//! Measures the share of lost datagrams for the statistics, copied messages included.
//!
//! A message that is sent once shows directly whether its transmission was lost. Of a message with a copy only the loss of
//! both transmissions shows, which happens with the square of the probability. The two kinds of observations are combined
//! according to how much each of them says.
//!
//! A loss is counted when it is detected, and not when a resend is acked: at the end of a download, the messages that are acked
//! last are those that were lost, and would count most. If the message has arrived after all, the count is taken back (W82).

use super::average::cut_off;

/// Number of messages over which the loss is averaged: 68 s of a game that sends 60 per second. With fewer, chance alone would
/// change the displayed loss by more than a tenth.
const MEMORY: f64 = 4_096.0;

/// Loss for which the observations are weighted when none was seen.
const MIN_WEIGHTED_LOSS: f64 = 0.01;

/// Share of lost datagrams, from the fate of messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossMeter {
    /// Messages without a copy, and those with one.
    single: Observations,
    copied: Observations,
}

/// A number of messages, and how many of them were lost, with older ones counting less.
#[derive(Clone, Copy, Debug, Default)]
struct Observations {
    count: f64,
    lost: f64,
}

impl LossMeter {
    /// The first transmission of a message, or with a copy the first two, turned out to be lost or received.
    pub fn add(&mut self, has_copy: bool, is_lost: bool) {
        self.single.decay();
        self.copied.decay();
        let observations = if has_copy { &mut self.copied } else { &mut self.single };
        observations.count += 1.0;
        observations.lost += f64::from(u8::from(is_lost));
    }

    /// A message that was counted as lost has arrived after all, with this probability.
    pub fn take_back(&mut self, has_copy: bool, probability: f64) {
        let observations = if has_copy { &mut self.copied } else { &mut self.single };
        observations.lost = (observations.lost - probability).max(0.0);
    }

    /// The share of lost datagrams, from 0 to 1.
    pub fn loss(&self) -> f64 {
        // Messages are copied from a loss on, so that the last one without a copy is always lost: it counts less.
        let single = Observations { lost: (self.single.lost - 0.5).max(0.0), ..self.single }.share();
        let copied = self.copied.share().sqrt();
        let total = (self.single.count + self.copied.count).max(1.0);
        let rough = ((single * self.single.count + copied * self.copied.count) / total).max(MIN_WEIGHTED_LOSS);
        // The reciprocal variance of each estimate.
        let single_weight = self.single.count / (rough * (1.0 - rough).max(MIN_WEIGHTED_LOSS));
        let copied_weight = 4.0 * self.copied.count / (1.0 - rough * rough).max(MIN_WEIGHTED_LOSS);
        let weights = single_weight + copied_weight;
        if weights > 0.0 { (single * single_weight + copied * copied_weight) / weights } else { 0.0 }
    }
}

impl Observations {
    fn decay(&mut self) {
        self.count = cut_off(self.count - self.count / MEMORY);
        self.lost = cut_off(self.lost - self.lost / MEMORY);
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
        meter.add(true, true);
        meter.add(false, true);
        for _ in 0..200_000 {
            meter.add(false, false);
        }
        assert_eq!((meter.single.lost, meter.copied.lost, meter.copied.count), (0.0, 0.0, 0.0));
        assert!(meter.single.count > 0.99 * MEMORY);
    }

    #[test]
    fn w82_a_loss_that_is_taken_back_does_not_count() {
        let mut meter = LossMeter::default();
        for number in 0..2_000 {
            let has_copy = number % 2 == 0;
            meter.add(has_copy, true);
            meter.take_back(has_copy, 1.0);
        }
        assert!(meter.loss() < 0.001, "{meter:?}");
        meter.take_back(false, 1.0);
        assert_eq!(meter.single.lost, 0.0);
    }

    #[test]
    fn the_loss_is_measured_with_and_without_copies() {
        for percent in [1_u32, 5, 10, 20, 30] {
            for copied_of_eight in [0, 4, 7] {
                let mut rng = Rng::new(u64::from(percent));
                let mut meter = LossMeter::default();
                let mut is_lost = || rng.below(100) < u64::from(percent);
                for message in 0..200_000 {
                    let has_copy = message % 8 < copied_of_eight;
                    let first = is_lost();
                    meter.add(has_copy, first && (!has_copy || is_lost()));
                }
                let measured = meter.loss() * 100.0;
                let truth = f64::from(percent);
                assert!((measured - truth).abs() < 0.35 * truth, "{percent} % {copied_of_eight}/8: {measured}");
            }
        }
    }
}
