//! Scheduled copies of messages that were just sent (S25).

use super::{SendBuffer, Status};
use rallypoint_wire::session::MessageNumber;
use std::time::Instant;

impl SendBuffer {
    /// The next scheduled copy that is due.
    pub fn next_copy(&mut self, now: Instant) -> Option<MessageNumber> {
        while let Some(&(at, number)) = self.copies.front() {
            if self.get(number).is_some_and(|message| message.status == Status::InFlight) {
                return (at <= now).then_some(number);
            }
            self.copies.pop_front();
        }
        None
    }

    /// The copy that [`next_copy`](Self::next_copy) returned was sent.
    pub fn on_copy_sent(&mut self) {
        if let Some((_, number)) = self.copies.pop_front()
            && let Some(message) = self.get_mut(number)
        {
            message.is_copied |= message.transmissions == 1;
            message.outcomes.on_sent();
        }
    }

    /// The copy that [`next_copy`](Self::next_copy) returned is not sent.
    pub fn cancel_copy(&mut self) {
        self.copies.pop_front();
    }

    /// When the next copy is due.
    pub fn copy_at(&self) -> Option<Instant> {
        self.copies.front().map(|(at, _)| *at)
    }

    /// Schedules a copy of a message that was just sent.
    pub fn schedule_copy(&mut self, at: Instant, number: MessageNumber) {
        // The queue stays in the order of time: a copy may be a moment late, behind one that was scheduled before it.
        let at = self.copies.back().map_or(at, |(last, _)| at.max(*last));
        self.copies.push_back((at, number));
    }
}
