//! Sent payloads whose messages may be dropped: what becomes of them when something newer is sent or their time is over.

use super::ChannelIndex;
use rallypoint_wire::session::MessageNumber;
use std::{collections::VecDeque, time::Instant};

/// Maximum number of payloads that are tracked. Beyond it the oldest is resent as it is, which is correct and only wasteful.
const MAX_TRACKED: usize = 1_024;

/// A payload without reliable messages.
#[derive(Clone, Copy, Debug)]
struct DroppablePayload {
    number: MessageNumber,
    /// The sequenced channels whose newest message is in it, as a bit set.
    newest_of: u32,
    /// When the last of its expiring messages expires.
    expires_at: Option<Instant>,
}

/// The droppable payloads that are still of use.
#[derive(Debug, Default)]
pub(super) struct DroppablePayloads(VecDeque<DroppablePayload>);

impl DroppablePayloads {
    /// A payload is sent.
    pub fn push(&mut self, number: MessageNumber, newest_of: u32, expires_at: Option<Instant>) {
        if self.0.len() >= MAX_TRACKED {
            self.0.pop_front();
        }
        self.0.push_back(DroppablePayload { number, newest_of, expires_at });
    }

    /// A newer message of a sequenced channel is about to be sent.
    pub fn supersede(&mut self, now: Instant, channel: ChannelIndex, discard: impl FnMut(MessageNumber)) {
        let bit = 1 << channel.get();
        for payload in &mut self.0 {
            payload.newest_of &= !bit;
        }
        self.expire(now, discard);
    }

    /// Calls `discard` for payloads that are of no use any more.
    pub fn expire(&mut self, now: Instant, mut discard: impl FnMut(MessageNumber)) {
        self.0.retain(|payload| {
            let is_useful = payload.newest_of != 0 || payload.expires_at.is_some_and(|at| now < at);
            if !is_useful {
                discard(payload.number);
            }
            is_useful
        });
    }
}
