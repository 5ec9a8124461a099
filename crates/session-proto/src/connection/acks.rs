//! What has arrived and has to be said so (S23).

use super::rtt::ACK_DELAY;
use rallypoint_wire::session::{Control, MAX_NUMBERS, MessageNumber, NumberListBuf};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// So many numbers may wait to be acked, if many datagrams are handed in at once: the largest window. What comes on top is
/// sent again by the peer.
const MOST_PENDING: usize = 16_384;

/// How long the ack of a message waits for the next message, if messages come so evenly that the next one will be here by
/// then (W31). An ack costs 38 bytes and more with its headers: two messages of a game that sends 60 per second share one.
const EVEN_DELAY: Duration = Duration::from_millis(20);

/// After so many messages in a row, each within that time, they come evenly.
const EVEN_AFTER: u8 = 4;

/// The second of two copies that came so soon after the first says nothing about the fate of the ack.
const TWICE_WITHIN: Duration = Duration::from_millis(10);

/// Its ack is said again with the next one, or after this if there is none.
const SAY_AGAIN_AFTER: Duration = Duration::from_millis(40);

/// So many of the numbers that wait are looked through for one that came twice.
const LOOKED_THROUGH: usize = 64;

/// How many numbers are remembered for repetition. A power of two.
const REMEMBERED: usize = 8;

/// How many are repeated in an ack: three acks in a row have to be lost before it costs anything. In an even stream nothing is
/// repeated unless datagrams evidently get lost, and then in so many acks to come: where nothing gets lost it would be
/// a third of what acks cost (W31).
const REPEATED: usize = 4;
const WORRIED_FOR: u32 = 256;

/// So many are repeated, in so many acks to come, when it is acks that get lost.
const REPEATED_IF_ACKS_ARE_LOST: usize = 8;
const UNHEARD_FOR: u32 = 64;

#[derive(Debug)]
pub(crate) struct Acks {
    pending: VecDeque<MessageNumber>,
    recent: [MessageNumber; REMEMBERED],
    /// How many numbers were ever put into `recent`.
    remembered: usize,
    due: Option<Instant>,
    worried: u32,
    unheard: u32,
    last_arrival: Instant,
    last_emitted: Instant,
    /// How many messages in a row came within [`EVEN_DELAY`] of each other.
    even: u8,
}

impl Acks {
    pub fn new(now: Instant) -> Self {
        let none = MessageNumber::FIRST;
        Self {
            pending: VecDeque::with_capacity(2 * MAX_NUMBERS),
            recent: [none; _],
            remembered: 0,
            due: None,
            worried: 0,
            unheard: 0,
            last_arrival: now,
            last_emitted: now,
            even: 0,
        }
    }

    /// A new message arrived. It is urgent if one before it is missing; and every second one is. So is the very first: until
    /// that is acked, a client that is not encrypted drops what it is sent.
    pub fn arrived(&mut self, now: Instant, number: MessageNumber, urgent: bool) {
        let soon = now.saturating_duration_since(self.last_arrival) <= EVEN_DELAY;
        self.even = if soon { (self.even + 1).min(EVEN_AFTER) } else { 0 };
        self.last_arrival = now;
        if urgent {
            self.worried = WORRIED_FOR;
        }
        let is_first = self.remembered == 0 && self.pending.is_empty();
        self.push(now, number, urgent || is_first);
    }

    /// A message arrived again. If it came twice in a moment, the peer sent it twice to be sure; otherwise the peer did not get
    /// the ack.
    pub fn arrived_again(&mut self, now: Instant, number: MessageNumber) {
        if self.pending.iter().rev().take(LOOKED_THROUGH).any(|pending| *pending == number) {
            return;
        }
        self.worried = WORRIED_FOR;
        let last = self.recent.iter().take(self.remembered);
        if now.saturating_duration_since(self.last_emitted) <= TWICE_WITHIN
            && last.copied().any(|acked| acked == number)
        {
            let at = now + SAY_AGAIN_AFTER;
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        } else {
            self.unheard = UNHEARD_FOR;
            self.push(now, number, true);
        }
    }

    /// When an ack has to go out.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Appends the ack.
    pub fn emit(&mut self, now: Instant, out: &mut Vec<u8>) {
        let mut list = NumberListBuf::new();
        let count = self.pending.len().min(MAX_NUMBERS);
        for &number in self.pending.iter().take(count) {
            list.push(number);
        }
        let repeated = match (self.unheard, self.worried) {
            (1.., _) => REPEATED_IF_ACKS_ARE_LOST,
            (0, 0) if self.is_even() => 0,
            _ => REPEATED,
        };
        self.worried = self.worried.saturating_sub(1);
        self.unheard = self.unheard.saturating_sub(1);
        for back in 1..=repeated.min(self.remembered) {
            let number = self.recent[(self.remembered - back) % REMEMBERED];
            if list.is_full() {
                break;
            }
            list.push(number);
        }
        for number in self.pending.drain(..count) {
            self.recent[self.remembered % REMEMBERED] = number;
            self.remembered += 1;
        }
        // Only its remainder and whether it is small matter.
        if self.remembered >= 4 * REMEMBERED {
            self.remembered -= 2 * REMEMBERED;
        }
        if self.pending.is_empty() {
            self.due = None;
        }
        self.last_emitted = now;
        Control::Ack(list.as_list()).emit(out);
    }

    fn is_even(&self) -> bool {
        self.even >= EVEN_AFTER
    }

    fn push(&mut self, now: Instant, number: MessageNumber, urgent: bool) {
        if self.pending.len() < MOST_PENDING {
            self.pending.push_back(number);
        }
        let delay = if self.is_even() { EVEN_DELAY } else { ACK_DELAY };
        let at = if urgent || self.pending.len() >= 2 { now } else { now + delay };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_wire::session::ClientDatagram;

    fn numbers(acks: &mut Acks, now: Instant) -> Vec<u32> {
        let mut out = Vec::new();
        acks.emit(now, &mut out);
        let Ok(ClientDatagram::Control(Control::Ack(list))) = ClientDatagram::parse(&out) else { panic!("not an ack") };
        list.iter().map(MessageNumber::get).collect()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn s23_every_second_message_is_acked_at_once_and_one_alone_within_10_ms() {
        let now = Instant::now();
        let mut acks = Acks::new(now);
        acks.arrived(now, MessageNumber::new(0), false);
        assert_eq!(acks.due(), Some(now), "the very first");
        assert_eq!(numbers(&mut acks, now), [0]);
        acks.arrived(now, MessageNumber::new(1), false);
        assert_eq!(acks.due(), Some(now + ACK_DELAY));
        acks.arrived(now, MessageNumber::new(2), false);
        assert_eq!(acks.due(), Some(now));
        assert_eq!(numbers(&mut acks, now), [1, 2, 0]);
        assert_eq!(acks.due(), None);
        acks.arrived(now, MessageNumber::new(4), true);
        assert_eq!(acks.due(), Some(now));
    }

    #[test]
    fn s23_spare_room_repeats_the_last_acked_numbers() {
        let mut now = Instant::now();
        let mut acks = Acks::new(now);
        for number in 0..100 {
            now += ms(50);
            acks.arrived(now, MessageNumber::new(number), false);
            let expected: Vec<u32> = (number.saturating_sub(4)..=number).rev().collect();
            assert_eq!(numbers(&mut acks, now), expected);
        }
    }

    #[test]
    fn w31_two_messages_of_an_even_stream_share_an_ack_and_nothing_is_repeated_until_something_is_lost() {
        let start = Instant::now();
        let (mut acks, mut now) = (Acks::new(start), start);
        for number in 0..21 {
            now += ms(16);
            acks.arrived(now, MessageNumber::new(number), false);
            if acks.due().is_some_and(|due| due <= now) {
                numbers(&mut acks, now);
            }
        }
        now += ms(16);
        acks.arrived(now, MessageNumber::new(21), false);
        assert_eq!(acks.due(), Some(now + EVEN_DELAY));
        now += ms(16);
        acks.arrived(now, MessageNumber::new(22), false);
        assert_eq!((acks.due(), numbers(&mut acks, now)), (Some(now), vec![21, 22]));
        now += ms(32);
        acks.arrived(now, MessageNumber::new(24), true);
        assert_eq!((acks.due(), numbers(&mut acks, now)), (Some(now), vec![24, 22, 21, 20, 19]));
    }

    #[test]
    fn s23_a_duplicate_is_acked_at_once_unless_it_is_one_of_two_that_came_together() {
        let now = Instant::now();
        let mut acks = Acks::new(now);
        acks.arrived(now, MessageNumber::new(0), false);
        acks.arrived_again(now + ms(1), MessageNumber::new(0));
        assert_eq!(acks.due(), Some(now));
        assert_eq!(numbers(&mut acks, now + ms(10)), [0]);
        acks.arrived_again(now + ms(15), MessageNumber::new(0));
        assert_eq!(acks.due(), Some(now + ms(15) + SAY_AGAIN_AFTER));
        assert_eq!(numbers(&mut acks, now + ms(55)), [0]);
        acks.arrived_again(now + ms(100), MessageNumber::new(0));
        assert_eq!(acks.due(), Some(now + ms(100)));
    }

    #[test]
    fn s23_an_ack_has_at_most_63_numbers() {
        let now = Instant::now();
        let mut acks = Acks::new(now);
        for number in 0..100 {
            acks.arrived(now, MessageNumber::new(number), true);
        }
        assert_eq!(numbers(&mut acks, now).len(), 63);
        assert_eq!(acks.due(), Some(now));
        assert_eq!(numbers(&mut acks, now).len(), 37 + REPEATED);
        assert_eq!(acks.due(), None);
    }
}
