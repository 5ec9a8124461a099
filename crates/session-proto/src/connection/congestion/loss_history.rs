//! Loss rates of the last rounds: random loss takes the same share of whatever is sent, and a share that has grown is congestion
//! (W73).

use rallypoint_wire::session::MAX_DATAGRAM;

/// Number of loss rates that are remembered.
const LOSS_SAMPLES: usize = 8;

/// Smallest number of datagrams over which each is measured; it takes at least a round.
const MIN_LOSS_SAMPLE: u32 = 64;

/// A loss rate above this many times the smallest of them, plus the following two values, is congestion.
const MAX_LOSS_RATIO: f64 = 2.0;

/// How much the loss rate may grow in addition: networks differ from one moment to the next.
const MAX_LOSS_INCREASE: f64 = 0.05;

/// Number of standard deviations by which chance may raise it further.
const DEVIATIONS: f64 = 2.0;

/// A loss rate above this is congestion in any case: no network that is worth playing on loses as much at random.
const MAX_RANDOM_LOSS: f64 = 0.35;

/// Smallest number of datagrams of which most are lost that is congestion in any case, if some were acked meanwhile.
const HEAVY_SAMPLE: u32 = 12;

/// Bytes of the window for each datagram of such a sample, two datagrams: it has to be half of the window.
const HEAVY_SAMPLE_SHARE: f64 = 2.0 * MAX_DATAGRAM as f64;

/// Loss rates of the last rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossHistory {
    samples: [f64; LOSS_SAMPLES],
    count: usize,
    /// Datagrams of the sample that is being taken.
    pub acked: u32,
    pub lost: u32,
}

/// A loss rate, and those above which it is congestion: compared with the last rounds, and in any case.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossSample {
    pub loss: f64,
    pub limit: f64,
    pub max: f64,
}

// Indexing in this file cannot fail: indices are taken modulo the length of their array.
impl LossHistory {
    /// Completes a sample if it is large enough.
    pub fn end_sample(&mut self) -> Option<LossSample> {
        let total = self.acked + self.lost;
        if total < MIN_LOSS_SAMPLE {
            return None;
        }
        let loss = f64::from(self.lost) / f64::from(total);
        // Without earlier samples there is nothing to compare with.
        let min_rate = if self.count == 0 { MAX_RANDOM_LOSS } else { self.min_rate() };
        self.samples[self.count % LOSS_SAMPLES] = loss;
        self.count += 1;
        self.discard_sample();
        let limit = MAX_LOSS_RATIO * min_rate + MAX_LOSS_INCREASE;
        let with_deviation = |rate: f64| rate + DEVIATIONS * (rate * (1.0 - rate).max(0.0) / f64::from(total)).sqrt();
        Some(LossSample { loss, limit: with_deviation(limit), max: with_deviation(MAX_RANDOM_LOSS) })
    }

    /// The smallest of the last loss rates: random loss, for lack of a better estimate.
    pub fn min_rate(&self) -> f64 {
        let known = &self.samples[..self.count.min(LOSS_SAMPLES)];
        known.iter().copied().reduce(f64::min).unwrap_or_default().min(MAX_RANDOM_LOSS)
    }

    /// Whether most datagrams of the current sample are lost.
    pub fn is_heavy(&self, window: f64) -> bool {
        let min = HEAVY_SAMPLE.max((window / HEAVY_SAMPLE_SHARE) as u32);
        self.acked + self.lost >= min && (1..self.lost).contains(&self.acked)
    }

    /// Whether this many are expected to be lost of the current sample, at this loss rate.
    pub fn expects(&self, loss: f64, lost: f64) -> bool {
        f64::from(self.acked + self.lost) * loss >= lost
    }

    pub fn discard_sample(&mut self) {
        self.acked = 0;
        self.lost = 0;
    }
}
