//! The numbers that were acked last, and how they are repeated (S23).
//!
//! The order of repeated numbers tells the peer which of its datagrams arrived more than once, so that it can count how many of
//! them are lost although each message is sent twice (W82): first those that did, oldest first, then the others, newest first.
//! So a number before a newer one arrived more than once, and a number after a newer one did not. This takes no bytes.

use rallypoint_wire::session::{MessageNumber, NumberListBuf};

/// Number of acked numbers that are remembered: those of a second of a game, in which a message is resent whose ack was lost. A
/// power of two.
const REMEMBERED: usize = 64;

/// Maximum number of repetitions in an ack.
const MAX_REPEATED: usize = 8;

/// Maximum number of arrivals of a message that are told from each other.
const MAX_ARRIVALS: u8 = 8;

/// A number, and how often its message has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrivals {
    pub number: MessageNumber,
    /// Zero for an entry that is not valid any more.
    pub count: u8,
    /// Whether it is acked again because its first ack was evidently lost.
    pub is_late: bool,
}

impl Arrivals {
    pub fn first(number: MessageNumber) -> Self {
        Self { number, count: 1, is_late: false }
    }

    pub fn add(&mut self) {
        self.count = (self.count + 1).min(MAX_ARRIVALS);
    }

    /// How often the number is named when it is acked: if that is late, as often as it arrived. A copy that arrived before its ack
    /// was due shows when the number is repeated.
    pub fn occurrences(self) -> usize {
        if self.is_late { self.count.into() } else { 1 }
    }

    /// How often the number is named when it is repeated. Its place says that it arrived more than once, so one less is enough.
    fn repetitions(self) -> usize {
        usize::from(self.count).saturating_sub(1).max(1)
    }
}

const INVALID: Arrivals = Arrivals { number: MessageNumber::FIRST, count: 0, is_late: false };

/// Ring of the numbers that were acked last.
#[derive(Debug)]
pub(super) struct RecentAcks {
    ring: [Arrivals; REMEMBERED],
    /// Number of entries written, from which multiples of the ring's length are subtracted to keep it small.
    written: usize,
}

// Indexing in this file cannot fail: every index is taken modulo the length of the ring.
impl RecentAcks {
    pub fn new() -> Self {
        Self { ring: [INVALID; _], written: 0 }
    }

    /// Whether nothing was ever acked.
    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// The entry of a number, if it is one of those that can be repeated.
    pub fn repeatable(&mut self, number: MessageNumber) -> Option<&mut Arrivals> {
        self.find(number, MAX_REPEATED)
    }

    /// Removes the entry of a number.
    pub fn take(&mut self, number: MessageNumber) -> Option<Arrivals> {
        self.find(number, REMEMBERED).map(|entry| std::mem::replace(entry, INVALID))
    }

    /// The entry of a number among the last ones.
    fn find(&mut self, number: MessageNumber, last: usize) -> Option<&mut Arrivals> {
        let mut newest_first = (1..=self.written.min(last)).map(|back| (self.written - back) % REMEMBERED);
        let is_wanted = |index: &usize| self.ring[*index].number == number && self.ring[*index].count > 0;
        let index = newest_first.find(is_wanted)?;
        Some(&mut self.ring[index])
    }

    /// A number is acked.
    pub fn push(&mut self, arrivals: Arrivals) {
        self.ring[self.written % REMEMBERED] = arrivals;
        self.written += 1;
        // Only its remainder matters, and whether it is small.
        if self.written >= 4 * REMEMBERED {
            self.written -= 2 * REMEMBERED;
        }
    }

    /// Repeats the last numbers, with `count` repetitions altogether, at most eight, as far as there is room.
    pub fn repeat(&self, count: usize, list: &mut NumberListBuf) {
        let count = count.min(MAX_REPEATED);
        let mut sorted = [INVALID; MAX_REPEATED];
        let mut len = 0;
        let mut repetitions = 0;
        for back in 1..=self.written.min(REMEMBERED) {
            let entry = self.ring[(self.written - back) % REMEMBERED];
            if entry.count == 0 {
                continue;
            }
            repetitions += entry.repetitions();
            if repetitions > count {
                break;
            }
            // They arrive mostly in order, so that the newest is sorted already.
            let mut at = len;
            while at > 0 && sorted[at - 1].number.is_before(entry.number) {
                sorted[at] = sorted[at - 1];
                at -= 1;
            }
            sorted[at] = entry;
            len += 1;
        }
        let sorted = &sorted[..len];
        let repeated = sorted.iter().rev().filter(|entry| entry.count > 1);
        for entry in repeated.chain(sorted.iter().filter(|entry| entry.count == 1)) {
            (0..entry.repetitions()).for_each(|_| {
                list.push(entry.number);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(acks: &RecentAcks, count: usize) -> Vec<u32> {
        let mut list = NumberListBuf::new();
        acks.repeat(count, &mut list);
        list.as_list().iter().map(MessageNumber::get).collect()
    }

    #[test]
    fn w82_the_order_of_repeated_numbers_tells_which_arrived_twice() {
        let mut acks = RecentAcks::new();
        for number in [1, 2, 5, 4, 6] {
            acks.push(Arrivals::first(MessageNumber::new(number)));
        }
        assert_eq!(repeated(&acks, 4), [6, 5, 4, 2]);
        acks.repeatable(MessageNumber::new(2)).unwrap().add();
        acks.repeatable(MessageNumber::new(5)).unwrap().add();
        assert_eq!(repeated(&acks, 4), [2, 5, 6, 4]);
        // It arrived three times, so it is named twice, in place of another number.
        let mut late = acks.take(MessageNumber::new(4)).unwrap();
        late.add();
        late.add();
        acks.push(late);
        assert_eq!(repeated(&acks, 4), [4, 4, 5, 6]);
        assert_eq!(repeated(&acks, 100), [2, 4, 4, 5, 6, 1]);
    }
}
