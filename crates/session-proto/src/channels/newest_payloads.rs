//! Payloads that contain the newest message of a sequenced channel together with other messages. They are resent until a newer
//! message replaces it.

use super::priority_group::ChannelSet;
use rallypoint_wire::session::MessageNumber;
use std::time::Instant;

/// Maximum number of payloads that are tracked. Beyond it the oldest is resent as it is, which is correct and only wasteful.
const MAX_TRACKED: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct NewestPayload {
    number: MessageNumber,
    /// The sequenced channels whose newest message is in it, at least one.
    newest_of: ChannelSet,
    /// When the last of its expiring messages expires.
    expires_at: Option<Instant>,
}

/// The payloads with the newest messages of sequenced channels. Few: those that a newer message has replaced are removed at once.
#[derive(Debug, Default)]
pub(super) struct NewestPayloads {
    payloads: Vec<NewestPayload>,
}

impl NewestPayloads {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.payloads.is_empty()
    }

    /// A payload is sent, with the newest messages of these channels.
    pub fn push(&mut self, number: MessageNumber, newest_of: ChannelSet, expires_at: Option<Instant>) {
        if self.payloads.len() >= MAX_TRACKED {
            self.payloads.remove(0);
        }
        self.payloads.push(NewestPayload { number, newest_of, expires_at });
    }

    /// A newer message of a sequenced channel is about to be sent. Calls `discard` for payloads that are obsolete then, with
    /// the time at which they become so.
    pub fn supersede(&mut self, now: Instant, channel: ChannelSet, mut discard: impl FnMut(MessageNumber, Instant)) {
        self.payloads.retain_mut(|payload| {
            payload.newest_of &= !channel;
            let is_useful = payload.newest_of != 0;
            if !is_useful {
                discard(payload.number, payload.expires_at.unwrap_or(now));
            }
            is_useful
        });
    }
}
