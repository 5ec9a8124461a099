//! Messages on their way to the application: put in order, each once (S22, S27).

use rallypoint_wire::session::MessageNumber;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// A message of the largest size fits into a block.
const BLOCK: usize = 504;

/// What became of a number that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// It is new, and now stored.
    New {
        /// Whether it is above all that were seen before.
        newest: bool,
        /// Whether one before it is missing.
        gap: bool,
    },
    /// It was here before.
    Duplicate,
    /// It lies above the window: dropped without an ack, which is the flow control.
    Above,
    /// `fill` refused it: it is as if it had never come.
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    at: u32,
    len: u16,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Missing,
    /// Seen, with nothing left to deliver.
    Done,
    Waiting(Block),
}

/// A number that is missing, and when to ask for it.
#[derive(Clone, Copy, Debug)]
struct Hole {
    number: MessageNumber,
    ask_at: Instant,
}

#[derive(Debug)]
pub(crate) struct Incoming {
    window: usize,
    ordered: bool,
    /// The first number that has not been seen.
    base: MessageNumber,
    /// What has been seen from there on; the first slot is `base`.
    slots: VecDeque<Slot>,
    inbox: VecDeque<Block>,
    /// The block that the application is reading.
    reading: Option<u32>,
    blocks: Vec<[u8; BLOCK]>,
    free: Vec<u32>,
    /// Missing numbers in the order in which to ask for them.
    holes: VecDeque<Hole>,
    /// Something above the window was dropped, so the peer has to be told when there is room again.
    turned_away: bool,
}

impl Incoming {
    pub fn new(first: MessageNumber, window: usize, ordered: bool) -> Self {
        Self {
            window,
            ordered,
            base: first,
            slots: VecDeque::new(),
            inbox: VecDeque::new(),
            reading: None,
            blocks: Vec::new(),
            free: Vec::new(),
            holes: VecDeque::new(),
            turned_away: false,
        }
    }

    /// Looks at a number; if it is new, `fill` writes the message into the given room and says how long it is.
    ///
    /// `allowance` is how much more memory may be used.
    pub fn arrive(
        &mut self,
        now: Instant,
        number: MessageNumber,
        ask_after: Duration,
        allowance: usize,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Arrived {
        let offset = number.distance_from(self.base) as usize;
        if number.is_before(self.base) {
            return Arrived::Duplicate;
        }
        if offset + self.inbox.len() >= self.window || (self.free.is_empty() && allowance < BLOCK && offset > 0) {
            self.turned_away = true;
            return Arrived::Above;
        }
        if !matches!(self.slots.get(offset), None | Some(Slot::Missing)) {
            return Arrived::Duplicate;
        }
        let at = self.take_block();
        let Some(len) = self.blocks.get_mut(at as usize).and_then(|block| fill(block)) else {
            self.free.push(at);
            return Arrived::Refused;
        };
        let newest = offset >= self.slots.len();
        for missing in self.slots.len()..offset {
            self.slots.push_back(Slot::Missing);
            self.holes.push_back(Hole { number: self.base.plus(missing as u32), ask_at: now + ask_after });
        }
        let block = Block { at, len: len as u16 };
        let slot = match (len, self.ordered) {
            // Without bytes it is acknowledged, never delivered (S15).
            (0, _) => {
                self.free.push(at);
                Slot::Done
            }
            (_, true) => Slot::Waiting(block),
            (_, false) => {
                self.inbox.push_back(block);
                Slot::Done
            }
        };
        match self.slots.get_mut(offset) {
            Some(place) => *place = slot,
            None => self.slots.push_back(slot),
        }
        self.advance();
        Arrived::New { newest, gap: !self.slots.is_empty() }
    }

    /// The next message for the application. Its bytes stay until the next call.
    pub fn read(&mut self) -> Option<&[u8]> {
        if let Some(done) = self.reading.take() {
            self.free.push(done);
        }
        let block = self.inbox.pop_front()?;
        self.reading = Some(block.at);
        self.blocks.get(block.at as usize)?.get(..usize::from(block.len))
    }

    pub fn is_readable(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// When a missing number has to be asked for.
    pub fn ask_at(&self) -> Option<Instant> {
        self.holes.front().map(|hole| hole.ask_at)
    }

    /// Takes the next missing number that it is time to ask for; it comes up again after `again`.
    pub fn ask(&mut self, now: Instant, again: Duration) -> Option<MessageNumber> {
        while let Some(hole) = self.holes.front().copied().filter(|hole| hole.ask_at <= now) {
            self.holes.pop_front();
            let offset = hole.number.distance_from(self.base) as usize;
            if matches!(self.slots.get(offset), Some(Slot::Missing)) {
                self.holes.push_back(Hole { ask_at: now + again, ..hole });
                return Some(hole.number);
            }
        }
        None
    }

    /// If there is room again after something was turned away: the number to ask for.
    pub fn reopened(&mut self) -> Option<MessageNumber> {
        let room = self.turned_away && self.slots.len() + self.inbox.len() < self.window / 2;
        room.then(|| {
            self.turned_away = false;
            self.base.plus(self.slots.len() as u32)
        })
    }

    /// Bytes in use.
    pub fn memory(&self) -> usize {
        (self.blocks.len() - self.free.len()) * BLOCK
    }

    fn advance(&mut self) {
        while let Some(slot) = self.slots.front() {
            match *slot {
                Slot::Missing => break,
                Slot::Done => {}
                Slot::Waiting(block) => self.inbox.push_back(block),
            }
            self.slots.pop_front();
            self.base = self.base.next();
        }
        if self.slots.is_empty() {
            self.holes.clear();
        }
    }

    fn take_block(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.blocks.push([0; BLOCK]);
            (self.blocks.len() - 1) as u32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const ASK_AFTER: Duration = Duration::from_millis(10);

    fn put(incoming: &mut Incoming, now: Instant, number: u32) -> Arrived {
        let fill = |room: &mut [u8]| {
            room[..4].copy_from_slice(&number.to_le_bytes());
            Some(4)
        };
        incoming.arrive(now, MessageNumber::new(number), ASK_AFTER, usize::MAX, fill)
    }

    fn read(incoming: &mut Incoming) -> Option<u32> {
        incoming.read().map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
    }

    proptest! {
        /// Against a set of numbers.
        #[test]
        fn s27_in_order_each_once(
            start in prop_oneof![Just(0), Just(u32::MAX - 20), any::<u32>()],
            steps in prop::collection::vec((0..80u32, any::<bool>()), 1..300),
        ) {
            let now = Instant::now();
            let mut incoming = Incoming::new(MessageNumber::new(start), 64, true);
            let (mut seen, mut next) = (BTreeSet::new(), 0u32);
            for (ahead, reads) in steps {
                let number = (next + ahead).saturating_sub(10);
                let arrived = put(&mut incoming, now, start.wrapping_add(number));
                let above = number >= next + 64;
                let expected_new = !above && number >= next && !seen.contains(&number);
                prop_assert_eq!(matches!(arrived, Arrived::New { .. }), expected_new, "{:?}", arrived);
                prop_assert_eq!(arrived == Arrived::Above, above);
                if expected_new {
                    seen.insert(number);
                }
                while let Some(read) = reads.then(|| read(&mut incoming)).flatten() {
                    prop_assert_eq!(read, start.wrapping_add(next));
                    prop_assert!(seen.remove(&next));
                    next += 1;
                }
                if reads {
                    prop_assert!(!seen.contains(&next));
                }
                prop_assert!(incoming.blocks.len() <= 65);
            }
        }
    }

    #[test]
    fn s27_unordered_delivers_on_arrival_and_once() {
        let now = Instant::now();
        let mut incoming = Incoming::new(MessageNumber::FIRST, 64, false);
        put(&mut incoming, now, 2);
        put(&mut incoming, now, 0);
        assert_eq!(put(&mut incoming, now, 2), Arrived::Duplicate);
        put(&mut incoming, now, 1);
        assert_eq!(std::iter::from_fn(|| read(&mut incoming)).collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!(put(&mut incoming, now, 1), Arrived::Duplicate);
    }

    #[test]
    fn s25_a_hole_is_asked_for_until_it_is_filled() {
        let now = Instant::now();
        let mut incoming = Incoming::new(MessageNumber::FIRST, 64, true);
        put(&mut incoming, now, 0);
        assert_eq!(incoming.ask_at(), None);
        put(&mut incoming, now, 3);
        let due = now + ASK_AFTER;
        assert_eq!(incoming.ask_at(), Some(due));
        let again = Duration::from_millis(50);
        assert_eq!(incoming.ask(now, again), None);
        assert_eq!(incoming.ask(due, again).map(MessageNumber::get), Some(1));
        assert_eq!(incoming.ask(due, again).map(MessageNumber::get), Some(2));
        assert_eq!(incoming.ask(due, again), None);
        put(&mut incoming, now, 1);
        assert_eq!(incoming.ask(due + again, again).map(MessageNumber::get), Some(2));
        put(&mut incoming, now, 2);
        assert_eq!(incoming.ask_at(), None);
    }

    #[test]
    fn s30_what_does_not_open_is_as_if_it_had_never_come() {
        let now = Instant::now();
        let mut incoming = Incoming::new(MessageNumber::FIRST, 64, true);
        let refused = incoming.arrive(now, MessageNumber::new(5), ASK_AFTER, usize::MAX, |_| None);
        assert_eq!((refused, incoming.memory(), incoming.ask_at()), (Arrived::Refused, 0, None));
        assert!(matches!(put(&mut incoming, now, 5), Arrived::New { .. }));
    }
}
