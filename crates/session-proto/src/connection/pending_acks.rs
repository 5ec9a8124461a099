//! Received message numbers that still have to be acknowledged (S23).

use super::{
    recent_acks::{Arrivals, RecentAcks},
    rtt::ACK_DELAY,
    steady_stream::SteadyStream,
};
use rallypoint_wire::session::{Control, MAX_NUMBERS, MessageNumber, NumberListBuf};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Maximum number of unacknowledged numbers when many datagrams are handed in at once: the largest window. The peer resends
/// what exceeds it.
const MAX_PENDING: usize = 16_384;

/// Time for which the ack of a message waits for the next message in a steady stream, where the next one will have arrived by
/// then (W31). An ack costs 38 bytes and more with its headers: two messages of a game that sends 60 per second share one.
const STEADY_DELAY: Duration = Duration::from_millis(20);

/// A duplicate that arrives within this time after the ack of the original says nothing about the fate of that ack: the peer
/// sent the message twice to be safe.
const COPY_INTERVAL: Duration = Duration::from_millis(10);

/// The number of such a duplicate is repeated with the next ack, or after this time if there is none.
const REPEAT_DELAY: Duration = Duration::from_millis(40);

/// Number of pending numbers that are searched for a duplicate.
const MAX_SEARCHED: usize = 64;

/// Number of acked numbers that are repeated in an ack: three acks in a row have to be lost before that has an effect.
const REPEATED: usize = 4;

/// Number of acks in which a steady stream repeats numbers after datagrams evidently got lost: where nothing is lost, repetition
/// would be a third of the cost of acks (W31).
const REPEAT_AFTER_LOSS: u32 = 128;

/// Number of acked numbers that are repeated in an ack when acks get lost.
const REPEATED_AFTER_ACK_LOSS: usize = 8;

/// Number of acks in which as many are repeated after that.
const REPEAT_AFTER_ACK_LOSS: u32 = 64;

/// Collects received numbers and decides when to ack them.
#[derive(Debug)]
pub(crate) struct PendingAcks {
    pending: VecDeque<Arrivals>,
    recent: RecentAcks,
    due: Option<Instant>,
    /// Number of acks to come that repeat numbers because messages get lost.
    loss_repeats: u32,
    /// Number of acks to come that repeat numbers because acks get lost.
    ack_loss_repeats: u32,
    arrivals: SteadyStream,
    last_emitted: Instant,
}

impl PendingAcks {
    pub fn new(now: Instant) -> Self {
        Self {
            pending: VecDeque::with_capacity(2 * MAX_NUMBERS),
            recent: RecentAcks::new(),
            due: None,
            loss_repeats: 0,
            ack_loss_repeats: 0,
            arrivals: SteadyStream::new(now),
            last_emitted: now,
        }
    }

    /// A new message arrived. It is acked at once if an earlier one is missing, and so is every second message, and the very
    /// first: until that is acked, a client of a plain session drops what it receives. In a sparse stream each message is acked
    /// at once: no other would share the ack, and a delay would make the round trip look longer to the peer.
    pub fn on_message(&mut self, now: Instant, number: MessageNumber, has_gap: bool) {
        let is_sparse = self.arrivals.on_message(now);
        if has_gap {
            self.loss_repeats = REPEAT_AFTER_LOSS;
        }
        let is_first = self.recent.is_empty() && self.pending.is_empty();
        self.push(now, Arrivals::first(number), has_gap || is_first || is_sparse);
    }

    /// A message arrived again. If it arrived twice in quick succession, the peer sent it twice to be safe; otherwise the peer
    /// did not receive the ack.
    pub fn on_duplicate(&mut self, now: Instant, number: MessageNumber) {
        if let Some(pending) = self.pending.iter_mut().rev().take(MAX_SEARCHED).find(|pending| pending.number == number)
        {
            return pending.add();
        }
        self.loss_repeats = REPEAT_AFTER_LOSS;
        let is_soon = now.saturating_duration_since(self.last_emitted) <= COPY_INTERVAL;
        if is_soon && let Some(acked) = self.recent.repeatable(number) {
            acked.add();
            let at = now + REPEAT_DELAY;
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
            return;
        }
        self.ack_loss_repeats = REPEAT_AFTER_ACK_LOSS;
        let mut arrivals = self.recent.take(number).unwrap_or(Arrivals::first(number));
        arrivals.add();
        arrivals.is_late = true;
        self.push(now, arrivals, true);
    }

    /// When the last message arrived that had not arrived before.
    pub fn last_arrival(&self) -> Instant {
        self.arrivals.last()
    }

    /// When an ack has to be sent.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Appends the ack. It repeats nothing if the link is crowded: behind messages that wait, repetitions would be a fifth of the
    /// bytes of a game that sends and receives, and take as long to send as to catch up.
    pub fn emit(&mut self, now: Instant, is_crowded: bool, out: &mut Vec<u8>) {
        let mut list = NumberListBuf::new();
        let count = self.count_for_ack();
        let pending = self.pending.iter().take(count);
        // Late ones come first, and further occurrences take the place of repetitions.
        let mut occurrences = 0;
        for late in pending.clone().filter(|pending| pending.is_late) {
            occurrences += late.occurrences() - 1;
            (0..late.occurrences()).for_each(|_| {
                list.push(late.number);
            });
        }
        for new in pending.filter(|pending| !pending.is_late) {
            list.push(new.number);
        }
        let repeated = match (self.ack_loss_repeats, self.loss_repeats) {
            // An ack without new numbers has nothing but repetitions.
            _ if is_crowded && count > 0 => 0,
            (1.., _) => REPEATED_AFTER_ACK_LOSS,
            (0, 0) if self.arrivals.is_steady() => 0,
            _ => REPEATED,
        };
        self.loss_repeats = self.loss_repeats.saturating_sub(1);
        self.ack_loss_repeats = self.ack_loss_repeats.saturating_sub(1);
        self.recent.repeat(repeated.saturating_sub(occurrences), &mut list);
        for pending in self.pending.drain(..count) {
            self.recent.push(pending);
        }
        if self.pending.is_empty() {
            self.due = None;
        }
        self.last_emitted = now;
        Control::Ack(list.as_list()).emit(out);
    }

    /// Number of pending numbers for which an ack has room, each as often as it is named. A peer whose acks were lost resends
    /// all that they named: if each of those were named only once, what arrived would count as lost (W82).
    fn count_for_ack(&self) -> usize {
        let mut room = MAX_NUMBERS;
        let fits = |pending: &&Arrivals| {
            let left = room.checked_sub(pending.occurrences());
            room = left.unwrap_or(0);
            left.is_some()
        };
        self.pending.iter().take_while(fits).count()
    }

    fn push(&mut self, now: Instant, arrivals: Arrivals, is_urgent: bool) {
        if self.pending.len() < MAX_PENDING {
            self.pending.push_back(arrivals);
        }
        let delay = if self.arrivals.is_steady() { STEADY_DELAY } else { ACK_DELAY };
        let at = if is_urgent || self.pending.len() >= 2 { now } else { now + delay };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_wire::session::ClientDatagram;

    fn numbers(acks: &mut PendingAcks, now: Instant) -> Vec<u32> {
        let mut out = Vec::new();
        acks.emit(now, false, &mut out);
        let Ok(ClientDatagram::Control(Control::Ack(list))) = ClientDatagram::parse(&out) else { panic!("not an ack") };
        list.iter().map(MessageNumber::get).collect()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn s23_every_second_message_is_acked_at_once_and_a_single_one_within_10_ms() {
        let now = Instant::now();
        let mut acks = PendingAcks::new(now);
        acks.on_message(now, MessageNumber::new(0), false);
        assert_eq!(acks.due(), Some(now), "the very first");
        assert_eq!(numbers(&mut acks, now), [0]);
        acks.on_message(now, MessageNumber::new(1), false);
        assert_eq!(acks.due(), Some(now + ACK_DELAY));
        acks.on_message(now, MessageNumber::new(2), false);
        assert_eq!(acks.due(), Some(now));
        assert_eq!(numbers(&mut acks, now), [1, 2, 0]);
        assert_eq!(acks.due(), None);
        acks.on_message(now, MessageNumber::new(4), true);
        assert_eq!(acks.due(), Some(now));
    }

    #[test]
    fn s23_an_ack_repeats_the_last_acked_numbers() {
        let mut now = Instant::now();
        let mut acks = PendingAcks::new(now);
        for number in 0..100 {
            now += ms(50);
            acks.on_message(now, MessageNumber::new(number), false);
            let expected: Vec<u32> = (number.saturating_sub(4)..=number).rev().collect();
            assert_eq!(numbers(&mut acks, now), expected);
        }
    }

    #[test]
    fn w31_two_messages_of_a_steady_stream_share_an_ack_that_repeats_nothing_until_a_loss() {
        let start = Instant::now();
        let mut acks = PendingAcks::new(start);
        let mut now = start;
        for number in 0..21 {
            now += ms(16);
            acks.on_message(now, MessageNumber::new(number), false);
            if acks.due().is_some_and(|due| due <= now) {
                numbers(&mut acks, now);
            }
        }
        now += ms(16);
        acks.on_message(now, MessageNumber::new(21), false);
        assert_eq!(acks.due(), Some(now + STEADY_DELAY));
        now += ms(16);
        acks.on_message(now, MessageNumber::new(22), false);
        assert_eq!((acks.due(), numbers(&mut acks, now)), (Some(now), vec![21, 22]));
        now += ms(32);
        acks.on_message(now, MessageNumber::new(24), true);
        assert_eq!((acks.due(), numbers(&mut acks, now)), (Some(now), vec![24, 22, 21, 20, 19]));
    }

    #[test]
    fn s23_a_duplicate_is_acked_at_once_unless_it_is_a_copy_sent_right_after_the_original() {
        let now = Instant::now();
        let mut acks = PendingAcks::new(now);
        acks.on_message(now, MessageNumber::new(0), false);
        acks.on_duplicate(now + ms(1), MessageNumber::new(0));
        assert_eq!(acks.due(), Some(now));
        assert_eq!(numbers(&mut acks, now + ms(10)), [0]);
        acks.on_duplicate(now + ms(15), MessageNumber::new(0));
        assert_eq!(acks.due(), Some(now + ms(15) + REPEAT_DELAY));
        assert_eq!(numbers(&mut acks, now + ms(55)), [0, 0], "it arrived more than twice");
        acks.on_duplicate(now + ms(100), MessageNumber::new(0));
        assert_eq!(acks.due(), Some(now + ms(100)));
    }

    #[test]
    fn w82_a_late_duplicate_is_named_as_often_as_it_arrived_in_place_of_repetitions() {
        let mut now = Instant::now();
        let mut acks = PendingAcks::new(now);
        for number in 0..20 {
            now += ms(50);
            acks.on_message(now, MessageNumber::new(number), false);
            numbers(&mut acks, now);
        }
        acks.on_duplicate(now + ms(30), MessageNumber::new(15));
        assert_eq!(numbers(&mut acks, now + ms(30)), [15, 15, 19, 18, 17, 16, 14, 13, 12]);
        // Its place tells the same later.
        now += ms(50);
        acks.on_message(now, MessageNumber::new(20), false);
        assert_eq!(numbers(&mut acks, now), [20, 15, 19, 18, 17, 16, 14, 13, 12]);
    }

    #[test]
    fn s23_an_ack_has_at_most_63_numbers() {
        let now = Instant::now();
        let mut acks = PendingAcks::new(now);
        for number in 0..100 {
            acks.on_message(now, MessageNumber::new(number), true);
        }
        assert_eq!(numbers(&mut acks, now).len(), 63);
        assert_eq!(acks.due(), Some(now));
        assert_eq!(numbers(&mut acks, now).len(), 37 + REPEATED);
        assert_eq!(acks.due(), None);
    }
}
