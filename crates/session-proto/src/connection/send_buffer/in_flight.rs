//! Messages in flight, in the order of transmission, and which of them are lost (S25).

use super::{SendBuffer, Status};
use crate::connection::recovery::LOSS_THRESHOLD;
use rallypoint_wire::session::MessageNumber;
use std::time::{Duration, Instant};

/// Messages that were declared lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossCount {
    pub total: u32,
    /// Those that were sent once, with a copy.
    pub copied: u32,
    pub bytes: u64,
    /// Position of the last of the lost transmissions in the order of all transmissions.
    pub newest_order: u64,
    /// Whether one was declared lost because no ack came in time, without a later one being acked.
    pub has_timed_out: bool,
}

impl SendBuffer {
    /// Declares messages lost: `threshold` later transmissions are acked; or one is, and `loss_delay` has passed; or `timeout`
    /// has passed, whatever is acked.
    pub fn detect_losses(
        &mut self,
        now: Instant,
        threshold: u64,
        loss_delay: Duration,
        timeout: Duration,
    ) -> LossCount {
        let mut losses = LossCount::default();
        while let Some(number) = self.first_in_flight {
            let Some(message) = self.get(number) else { break };
            let acked_later = self.newest_acked_order.saturating_sub(message.order);
            let is_lost = acked_later >= threshold
                || (acked_later > 0 && now >= message.times.sent_at + loss_delay)
                || now >= message.times.sent_at + timeout;
            if !is_lost {
                break;
            }
            losses.has_timed_out |= acked_later == 0;
            // Several at once are one loss event, and maybe only a lost ack.
            let found = self.declare_lost(number, losses.total == 0);
            if let Some(message) = self.get_mut(number) {
                message.is_overtaken = acked_later >= LOSS_THRESHOLD;
            }
            losses.total += found.total;
            losses.copied += found.copied;
            losses.bytes += found.bytes;
            losses.newest_order = losses.newest_order.max(found.newest_order);
        }
        losses
    }

    /// When [`detect_losses`](Self::detect_losses) may find something.
    pub fn loss_detection_at(&self, loss_delay: Duration, timeout: Duration) -> Option<Instant> {
        let message = self.get(self.first_in_flight?)?;
        let is_passed = self.newest_acked_order > message.order;
        Some(message.times.sent_at + if is_passed { loss_delay.min(timeout) } else { timeout })
    }

    pub(super) fn declare_lost(&mut self, number: MessageNumber, is_first_of_event: bool) -> LossCount {
        self.unlink(number);
        let position = number.distance_from(self.base) as usize;
        let Some(message) = self.messages.get_mut(position) else { return LossCount::default() };
        message.status = Status::Lost;
        message.is_queued = true;
        message.is_overtaken = false;
        let len = u64::from(message.span.len);
        let order = message.order;
        let is_single = message.transmissions == 1;
        let copied = is_single && message.is_copied;
        let single = is_single && !message.is_copied;
        message.is_single_loss |= is_first_of_event && single;
        message.outcomes.on_lost(&mut self.loss, copied);
        self.in_flight -= len;
        self.resends.push_back(number);
        LossCount { total: 1, copied: copied.into(), bytes: len, newest_order: order, has_timed_out: false }
    }

    /// Appends a message to the list of messages in flight.
    pub(super) fn link(&mut self, number: MessageNumber) {
        let last = self.last_in_flight.replace(number);
        if let Some(message) = self.get_mut(number) {
            message.previous = last;
            message.next = None;
        }
        match last.and_then(|last| self.get_mut(last)) {
            Some(last) => last.next = Some(number),
            None => self.first_in_flight = Some(number),
        }
    }

    /// Removes a message from the list of messages in flight.
    pub(super) fn unlink(&mut self, number: MessageNumber) {
        let Some(message) = self.get_mut(number) else { return };
        let previous = message.previous.take();
        let next = message.next.take();
        match previous.and_then(|previous| self.get_mut(previous)) {
            Some(previous) => previous.next = next,
            None => self.first_in_flight = next,
        }
        match next.and_then(|next| self.get_mut(next)) {
            Some(next) => next.previous = previous,
            None => self.last_in_flight = previous,
        }
    }
}
