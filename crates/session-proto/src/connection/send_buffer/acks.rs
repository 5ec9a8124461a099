//! Acks of messages that were sent (S23).

use super::{SendBuffer, Status};
use crate::connection::{
    ack_effect::{AckEffect, AckedMessage, ReceivedAck, RepeatedAck},
    arrival_evidence::ArrivalEvidence,
};
use rallypoint_wire::session::MessageNumber;
use std::time::Instant;

impl SendBuffer {
    /// The peer acks a message. Numbers that were never sent are ignored (S23).
    pub fn on_ack(&mut self, ack: &mut ReceivedAck<'_>, number: MessageNumber) -> AckEffect {
        let &mut ReceivedAck { now, numbers, newest, floor, min_resend_rtt, evidence_delay, ref mut repetitions_left } =
            ack;
        let position = number.distance_from(self.base) as usize;
        let Some(message) = self.messages.get_mut(position) else { return AckEffect::None };
        let status = message.status;
        let since = now.saturating_duration_since(message.times.sent_at);
        if matches!(status, Status::Unsent | Status::Acked) {
            if status == Status::Acked && message.outcomes.is_open() && *repetitions_left > 0 {
                *repetitions_left -= 1;
                let evidence = ArrivalEvidence::of_repeated(number, numbers, newest);
                message.outcomes.on_evidence(&mut self.loss, evidence, since >= evidence_delay);
            }
            return AckEffect::None;
        }
        let is_of_last = since >= min_resend_rtt;
        let is_single = message.transmissions == 1;
        let is_early = is_single && since < floor;
        // The ack of a copied message is trusted: a second one would not show that the first was forged.
        if is_early && !message.is_copied {
            message.times.acked_at = now;
            message.is_acked_early = true;
            return AckEffect::Early(since);
        }
        let is_spurious_resend = message.transmissions == 2 && !is_of_last;
        let is_spurious_loss = is_spurious_resend || (is_single && status == Status::Lost);
        let acked = AckedMessage {
            len: u64::from(message.span.len),
            order: message.order,
            rtt: (is_single && !is_early).then_some(since),
            first_sent_at: message.times.first_sent_at,
            is_overtaken: message.is_overtaken,
            snapshot: message.snapshot.filter(|_| !is_early && (is_single || is_of_last)),
            is_copied: message.is_copied,
            are_all_lost: !is_single && !is_spurious_resend,
            loss_sample: (message.is_single_loss || (is_single && !message.is_copied))
                .then_some(message.is_single_loss && !is_spurious_loss),
            is_spurious_resend,
            is_spurious_loss,
        };
        let is_pair = is_single && message.is_copied;
        message.outcomes.on_first_ack(&mut self.loss, is_pair, is_of_last);
        if message.outcomes.is_open() {
            message.outcomes.on_first_evidence(&mut self.loss, ArrivalEvidence::of_new(number, numbers));
        }
        message.status = Status::Acked;
        message.times.acked_at = now;
        message.is_queued = false;
        if status == Status::InFlight {
            self.unlink(number);
            self.in_flight -= acked.len;
        }
        if acked.snapshot.is_some() {
            self.newest_acked_order = self.newest_acked_order.max(acked.order);
        }
        while self.get(self.oldest_unacked).is_some_and(|message| message.status == Status::Acked) {
            self.oldest_unacked = self.oldest_unacked.next();
        }
        AckEffect::Acked(acked)
    }

    /// Whether a number was never sent.
    #[inline(always)]
    pub fn is_unsent(&self, number: MessageNumber) -> bool {
        // Everything before `next_unsent` was sent, except for the skipped one. That is almost every number that is acked.
        (!number.is_before(self.next_unsent) || self.skipped == Some(number))
            && match self.get(number) {
                Some(message) => message.transmissions == 0,
                None => !number.is_before(self.base),
            }
    }

    /// The ack of a message that was acked before, if the message was sent only once, so that one of the two acks shows how
    /// long the round trip took.
    pub fn repeated_ack(&self, now: Instant, number: MessageNumber) -> Option<RepeatedAck> {
        let message = self.get(number)?;
        let was_acked = message.status == Status::Acked || message.is_acked_early;
        let is_clear = was_acked && message.transmissions == 1 && !message.is_copied;
        is_clear.then(|| RepeatedAck {
            first: message.times.acked_at.saturating_duration_since(message.times.sent_at),
            second: now.saturating_duration_since(message.times.sent_at),
        })
    }
}
