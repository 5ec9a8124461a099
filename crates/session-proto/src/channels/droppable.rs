//! Sent payloads whose messages may be dropped: what becomes of them when something newer is sent or their time is over.

use super::ChannelIndex;
use rallypoint_wire::session::MessageNumber;
use std::{collections::VecDeque, time::Instant};

/// Maximum number of payloads that are tracked. Beyond it the oldest is resent as it is, which is correct and only wasteful.
const MAX_TRACKED: usize = 1_024;

/// A payload with messages of a sequenced channel.
#[derive(Clone, Copy, Debug)]
struct SequencedPayload {
    number: MessageNumber,
    /// The sequenced channels whose newest message is in it, as a bit set.
    newest_of: u32,
    /// When the last of its expiring messages expires.
    expires_at: Option<Instant>,
}

/// The droppable payloads that are still useful.
#[derive(Debug, Default)]
pub(super) struct DroppablePayloads {
    /// Few: those that a newer message has replaced are removed at once.
    sequenced: VecDeque<SequencedPayload>,
    /// Payloads with expiring messages only, in the order in which they were sent, which is about that in which they expire.
    expiring: VecDeque<(MessageNumber, Instant)>,
}

impl DroppablePayloads {
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sequenced.is_empty() && self.expiring.is_empty()
    }

    /// A payload is sent.
    pub fn push(&mut self, number: MessageNumber, newest_of: u32, expires_at: Option<Instant>) {
        match expires_at {
            Some(expires_at) if newest_of == 0 => push_bounded(&mut self.expiring, (number, expires_at)),
            _ => push_bounded(&mut self.sequenced, SequencedPayload { number, newest_of, expires_at }),
        }
    }

    /// A newer message of a sequenced channel is about to be sent.
    pub fn supersede(&mut self, now: Instant, channel: ChannelIndex, discard: impl FnMut(MessageNumber)) {
        let bit = 1 << channel.get();
        for payload in &mut self.sequenced {
            payload.newest_of &= !bit;
        }
        self.expire(now, discard);
    }

    /// Calls `discard` for payloads that are of no use any more.
    pub fn expire(&mut self, now: Instant, mut discard: impl FnMut(MessageNumber)) {
        while let Some((number, _)) = self.expiring.pop_front_if(|(_, expires_at)| now >= *expires_at) {
            discard(number);
        }
        if self.sequenced.is_empty() {
            return;
        }
        self.sequenced.retain(|payload| {
            let is_useful = payload.newest_of != 0 || payload.expires_at.is_some_and(|at| now < at);
            if !is_useful {
                discard(payload.number);
            }
            is_useful
        });
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, entry: T) {
    if queue.len() >= MAX_TRACKED {
        queue.pop_front();
    }
    queue.push_back(entry);
}
