//! How long acked messages are kept, in case their acks were forged (S24).

use super::{SendBuffer, Status};
use std::time::{Duration, Instant};

/// Number of last messages that are kept even if memory is scarce: a receiver whose message was acked by a forger may notice
/// the hole only when the next message arrives (S24).
const MIN_KEPT: usize = 64;

/// Beyond this number of windows, acked messages are kept for a shorter time.
const MAX_FULL_RETENTION_WINDOWS: usize = 4;

/// How long acked messages are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    pub after: Duration,
    /// The time if many messages are kept or memory is scarce.
    pub shortened: Duration,
    /// Whether no whole window can be kept.
    pub is_memory_scarce: bool,
    /// Whether all messages are kept, as long as they are not many: the peer says that it lacks acked ones.
    pub is_disputed: bool,
}

impl SendBuffer {
    /// Frees messages that were acked long enough ago, if everything older is acked and a window of later messages is kept (S24).
    pub fn release(&mut self, now: Instant, retention: Retention) {
        while let Some(at) = self.release_at(retention)
            && at <= now
            && let Some(message) = self.messages.pop_front()
        {
            self.ring.pop(message.span);
            self.base = self.base.next();
        }
    }

    /// When the oldest message can be freed.
    pub fn release_at(&self, retention: Retention) -> Option<Instant> {
        let kept = if retention.is_memory_scarce { MIN_KEPT } else { self.window };
        let is_releasable = self.messages.len() > kept && self.base != self.oldest_unacked;
        let message = self.messages.front().filter(|_| is_releasable)?;
        let is_shortened = retention.is_memory_scarce || self.messages.len() > MAX_FULL_RETENTION_WINDOWS * self.window;
        if retention.is_disputed && !is_shortened {
            return None;
        }
        let after = if is_shortened { retention.shortened.min(retention.after) } else { retention.after };
        (message.status == Status::Acked && !message.is_queued).then(|| message.times.acked_at + after)
    }
}
