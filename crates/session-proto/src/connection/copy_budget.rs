//! The byte budget of copies that all connections of an endpoint share (S25).

use super::byte_bucket::ByteBucket;
use std::time::Instant;

/// Maximum rate of copies of all connections of an endpoint together, in bytes per second.
const ENDPOINT_COPY_RATE: f64 = 128_000.0;

/// The byte budget of copies that all connections of an endpoint share: their players may be behind the same link.
#[derive(Debug, Default)]
pub(crate) struct CopyBudget(Option<ByteBucket>);

impl CopyBudget {
    /// Whether there are enough bytes for a copy.
    pub fn admits(&mut self, now: Instant, len: usize) -> bool {
        self.bucket(now).admits(now, len)
    }

    /// A copy is sent.
    pub fn charge(&mut self, now: Instant, len: usize) {
        self.bucket(now).take(now, len);
    }

    fn bucket(&mut self, now: Instant) -> &mut ByteBucket {
        self.0.get_or_insert_with(|| ByteBucket::new(now, ENDPOINT_COPY_RATE))
    }
}
