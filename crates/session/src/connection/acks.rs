//! What has arrived and has to be said so (S23).

use super::rtt::ACK_DELAY;
use rallypoint_wire::session::{Control, MAX_NUMBERS, MessageNumber, NumberListBuf};
use std::{collections::VecDeque, time::Instant};

/// So many numbers may wait to be acked, if many datagrams are handed in at once: the largest window. What comes on top is
/// sent again by the peer.
const MOST_PENDING: usize = 16_384;

/// How many numbers are remembered for repetition. A power of two.
const REMEMBERED: usize = 8;

/// How many of them are repeated in every ack: with this many, game traffic stays under 1.6 times its payload, and three
/// acks in a row have to be lost before it costs anything.
const REPEATED: usize = 3;

/// How many are repeated while acks evidently get lost, and for how many acks that goes on.
const REPEATED_UNDER_LOSS: usize = 8;
const WORRIED_FOR: u32 = 64;

#[derive(Debug)]
pub(crate) struct Acks {
    pending: VecDeque<MessageNumber>,
    recent: [MessageNumber; REMEMBERED],
    /// How many numbers were ever put into `recent`.
    remembered: usize,
    due: Option<Instant>,
    worried: u32,
}

impl Acks {
    pub fn new() -> Self {
        let none = MessageNumber::FIRST;
        Self {
            pending: VecDeque::with_capacity(2 * MAX_NUMBERS),
            recent: [none; _],
            remembered: 0,
            due: None,
            worried: 0,
        }
    }

    /// A message arrived. It is urgent if it is a duplicate or shows a gap; and every second one is.
    pub fn arrived(&mut self, now: Instant, number: MessageNumber, urgent: bool) {
        if self.pending.len() < MOST_PENDING {
            self.pending.push_back(number);
        }
        let at = if urgent || self.pending.len() >= 2 { now } else { now + ACK_DELAY };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// A message arrived again. If its ack is not one of the last, the peer did not get it; if it is, the peer sent the
    /// message twice to be sure.
    pub fn arrived_again(&mut self, now: Instant, number: MessageNumber) {
        let last = self.recent.iter().rev().take(self.remembered.min(REMEMBERED));
        if !last.chain(&self.pending).any(|&acked| acked == number) {
            self.worried = WORRIED_FOR;
        }
        self.arrived(now, number, true);
    }

    /// When an ack has to go out.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Appends the ack.
    pub fn emit(&mut self, out: &mut Vec<u8>) {
        let mut list = NumberListBuf::new();
        let count = self.pending.len().min(MAX_NUMBERS);
        for &number in self.pending.iter().take(count) {
            list.push(number);
        }
        let repeated = if self.worried > 0 { REPEATED_UNDER_LOSS } else { REPEATED };
        self.worried = self.worried.saturating_sub(1);
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
        Control::Ack(list.as_list()).emit(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_wire::session::ClientDatagram;

    fn numbers(acks: &mut Acks) -> Vec<u32> {
        let mut out = Vec::new();
        acks.emit(&mut out);
        let Ok(ClientDatagram::Control(Control::Ack(list))) = ClientDatagram::parse(&out) else { panic!("not an ack") };
        list.iter().map(MessageNumber::get).collect()
    }

    #[test]
    fn s23_every_second_message_is_acked_at_once_and_one_alone_within_10_ms() {
        let (mut acks, now) = (Acks::new(), Instant::now());
        acks.arrived(now, MessageNumber::new(0), false);
        assert_eq!(acks.due(), Some(now + ACK_DELAY));
        acks.arrived(now, MessageNumber::new(1), false);
        assert_eq!(acks.due(), Some(now));
        assert_eq!(numbers(&mut acks), [0, 1]);
        assert_eq!(acks.due(), None);
        acks.arrived(now, MessageNumber::new(3), true);
        assert_eq!(acks.due(), Some(now));
    }

    #[test]
    fn s23_spare_room_repeats_the_last_acked_numbers() {
        let (mut acks, now) = (Acks::new(), Instant::now());
        for number in 0..100 {
            acks.arrived(now, MessageNumber::new(number), false);
            let said = numbers(&mut acks);
            let expected: Vec<u32> = (number.saturating_sub(3)..=number).rev().collect();
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn s23_an_ack_has_at_most_63_numbers() {
        let (mut acks, now) = (Acks::new(), Instant::now());
        for number in 0..100 {
            acks.arrived(now, MessageNumber::new(number), true);
        }
        assert_eq!(numbers(&mut acks).len(), 63);
        assert_eq!(acks.due(), Some(now));
        assert_eq!(numbers(&mut acks).len(), 37 + REPEATED);
        assert_eq!(acks.due(), None);
    }
}
