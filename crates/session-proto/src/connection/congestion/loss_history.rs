//! Loss rates of the last rounds: random loss takes the same share of whatever is sent, and a share that has grown is congestion
//! (W73).

/// Number of loss rates that are remembered, each measured over at least a round and `MIN_LOSS_SAMPLE` datagrams. A loss rate
/// above `MAX_LOSS_RATIO` times the smallest of them plus `MAX_LOSS_INCREASE`, and `DEVIATIONS` standard deviations, is congestion.
const LOSS_SAMPLES: usize = 8;
const MIN_LOSS_SAMPLE: u32 = 64;
const MAX_LOSS_RATIO: f64 = 2.0;
const MAX_LOSS_INCREASE: f64 = 0.05;
const DEVIATIONS: f64 = 2.0;

/// A loss rate above this is congestion in any case: no network that is worth playing on loses as much at random.
const MAX_RANDOM_LOSS: f64 = 0.35;

/// Number of lost datagrams that are congestion in any case if fewer, but not none, were acked meanwhile.
const HEAVY_SAMPLE: u32 = 12;

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
        let floor = if self.count == 0 { MAX_RANDOM_LOSS } else { self.floor() };
        self.samples[self.count % LOSS_SAMPLES] = loss;
        self.count += 1;
        self.discard_sample();
        let limit = MAX_LOSS_RATIO * floor + MAX_LOSS_INCREASE;
        let with_deviation = |rate: f64| rate + DEVIATIONS * (rate * (1.0 - rate).max(0.0) / f64::from(total)).sqrt();
        Some(LossSample { loss, limit: with_deviation(limit), max: with_deviation(MAX_RANDOM_LOSS) })
    }

    /// The smallest of the last loss rates: random loss, for lack of a better estimate.
    pub fn floor(&self) -> f64 {
        let known = &self.samples[..self.count.min(LOSS_SAMPLES)];
        known.iter().copied().reduce(f64::min).unwrap_or_default().min(MAX_RANDOM_LOSS)
    }

    /// Whether most datagrams of the current sample are lost.
    pub fn is_heavy(&self, window: f64) -> bool {
        let min = HEAVY_SAMPLE.max((window / 1_016.0) as u32);
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
