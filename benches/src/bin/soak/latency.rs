//! Latencies of requests, in bounded memory.

/// Number of classes per factor of two.
const PER_OCTAVE: f64 = 8.0;
/// Number of classes: up to some hours.
const CLASSES: usize = 352;

/// A histogram of latencies with a resolution of nine percent.
#[derive(Debug)]
pub struct Latencies {
    counts: [u64; CLASSES],
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: [0; CLASSES] }
    }
}

impl Latencies {
    pub fn add(&mut self, latency: std::time::Duration) {
        let class = (latency.as_nanos() as f64).max(1.0).log2() * PER_OCTAVE;
        self.counts[(class as usize).min(CLASSES - 1)] += 1;
    }

    /// The latency in nanoseconds below which this share of all are; 0 if there are none.
    pub fn quantile(&self, share: f64) -> f64 {
        let total: u64 = self.counts.iter().sum();
        let rank = (total as f64 * share).ceil().max(1.0) as u64;
        let mut below = 0;
        let class = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        class.filter(|_| total > 0).map_or(0.0, |class| ((class + 1) as f64 / PER_OCTAVE).exp2())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn quantiles_are_within_the_resolution() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), 0.0);
        for millisecond in 1..=100 {
            latencies.add(Duration::from_millis(millisecond));
        }
        for (share, expected) in [(0.5, 50e6), (0.99, 99e6), (1.0, 100e6)] {
            let found = latencies.quantile(share);
            assert!((expected..expected * 1.1).contains(&found), "{share}: {found}");
        }
    }
}
