//! Received messages on their way to the application: put in order, each delivered once (S22, S27).

use super::{
    block_pool::{BLOCK, BlockIndex, BlockPool},
    resend_requests::ResendRequests,
    stall_detector::StallDetector,
};
use rallypoint_wire::session::{MessageNumber, NumberListBuf};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Length of the shortest header of a data datagram, which is what the budget of requests counts.
const MIN_HEADER: usize = 11;

/// The result of [`ReceiveBuffer::insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insertion {
    /// The message is new and was stored.
    New {
        /// Whether its number is above all numbers received before.
        is_newest: bool,
        /// Whether an earlier message is missing.
        has_gap: bool,
    },
    /// The message was received before.
    Duplicate,
    /// The number lies above the window. The message is dropped without an ack, which is the flow control.
    AboveWindow,
    /// As above, and the oldest message has been missing longer than the peer keeps it (W63).
    Stalled,
    /// `fill` rejected the message: nothing has changed.
    Rejected,
}

/// A stored message.
#[derive(Clone, Copy, Debug)]
struct StoredMessage {
    block: BlockIndex,
    len: u16,
}

/// State of a number from `base` on.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Missing,
    /// Received, with nothing left to deliver.
    Done,
    /// Received, and waiting for an earlier message.
    Waiting(StoredMessage),
}

/// The receive window, and the messages that are ready to be read.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    window: usize,
    is_ordered: bool,
    /// The first number that has not been received.
    base: MessageNumber,
    /// State of the numbers from `base` on.
    entries: VecDeque<Entry>,
    /// Messages that can be read.
    ready: VecDeque<StoredMessage>,
    /// The message that the application is reading.
    reading: Option<StoredMessage>,
    blocks: BlockPool,
    requests: ResendRequests,
    /// The number after the newest one that the peer has sent, whether that was stored or lies above the window.
    sent_end: MessageNumber,
    stall: StallDetector,
    /// A message above the window was dropped, so the peer has to be notified when there is room again.
    has_dropped: bool,
}

impl ReceiveBuffer {
    pub fn new(first: MessageNumber, window: usize, is_ordered: bool) -> Self {
        Self {
            window,
            is_ordered,
            base: first,
            entries: VecDeque::new(),
            ready: VecDeque::new(),
            reading: None,
            blocks: BlockPool::default(),
            requests: ResendRequests::new(first),
            sent_end: first,
            stall: StallDetector::default(),
            has_dropped: false,
        }
    }

    /// Stores a message if its number is new and inside the window. `fill` writes the message into the given bytes and returns
    /// its length, or `None` to reject it. It is called for every message that has an effect, a duplicate included.
    ///
    /// Numbers that are skipped are requested after `request_delay`. `allowance` is the number of bytes by which the memory
    /// may grow.
    pub fn insert(
        &mut self,
        now: Instant,
        number: MessageNumber,
        request_delay: Duration,
        allowance: usize,
        fill: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Insertion {
        let offset = number.distance_from(self.base) as usize;
        let is_before = number.is_before(self.base);
        let is_above = !is_before
            && (offset + self.ready.len() >= self.window
                || (!self.blocks.has_free() && allowance < BLOCK && offset > 0));
        // While the application does not read, the oldest message need not be missing.
        if is_above && !(self.ready.is_empty() && self.stall.is_check_due(now)) {
            self.has_dropped = true;
            return Insertion::AboveWindow;
        }
        let block = self.blocks.allocate();
        let Some(len) = self.blocks.get_mut(block).and_then(|bytes| fill(bytes)) else {
            self.blocks.free(block);
            return Insertion::Rejected;
        };
        if self.sent_end.is_before(number.next()) {
            self.sent_end = number.next();
        }
        if is_above {
            self.blocks.free(block);
            self.has_dropped = true;
            self.requests.on_dropped(len + MIN_HEADER);
            self.track_holes(now + request_delay);
            return if self.stall.on_message_above_window(now) { Insertion::Stalled } else { Insertion::AboveWindow };
        }
        if is_before || !matches!(self.entries.get(offset), None | Some(Entry::Missing)) {
            self.blocks.free(block);
            return Insertion::Duplicate;
        }
        let is_newest = offset >= self.entries.len();
        let message = StoredMessage { block, len: len as u16 };
        let has_advanced =
            if self.entries.is_empty() && offset == 0 { self.store_next(message) } else { self.store(offset, message) };
        self.requests.on_message(now, number, len + MIN_HEADER, has_advanced);
        if self.base.is_before(self.sent_end) {
            self.track_holes(now + request_delay);
        } else {
            self.requests.clear(self.base);
        }
        Insertion::New { is_newest, has_gap: !self.entries.is_empty() }
    }

    /// The next message for the application. Its bytes stay valid until the next call.
    #[inline(always)]
    pub fn read(&mut self) -> Option<&[u8]> {
        self.release_read();
        self.reading = Some(self.ready.pop_front()?);
        Some(self.last_read())
    }

    /// The message that [`read`](Self::read) returned last.
    #[inline]
    pub fn last_read(&self) -> &[u8] {
        self.last_read_from(0)
    }

    /// The same without its first bytes.
    #[inline]
    pub fn last_read_from(&self, start: usize) -> &[u8] {
        let stored = |message: StoredMessage| self.blocks.get(message.block)?.get(start..usize::from(message.len));
        self.reading.and_then(stored).unwrap_or_default()
    }

    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The highest number that was received; the one before the first if there is none.
    pub fn newest(&self) -> MessageNumber {
        self.base.plus((self.entries.len() as u32).wrapping_sub(1))
    }

    /// Frees the memory of the message that was read last.
    #[inline(always)]
    pub fn release_read(&mut self) {
        if let Some(done) = self.reading.take() {
            self.blocks.free(done.block);
        }
    }

    /// Keeps the messages that can be read and frees all other memory: nothing will arrive any more.
    pub fn keep_readable(&mut self) {
        self.reading = None;
        self.entries = VecDeque::new();
        self.requests.clear(self.base);
        self.blocks.keep(self.ready.iter_mut().map(|message| &mut message.block));
        self.ready.shrink_to_fit();
    }

    /// Delivers messages on arrival from now on, beginning with those that wait for an earlier one.
    pub fn deliver_on_arrival(&mut self) {
        self.is_ordered = false;
        for entry in &mut self.entries {
            if let Entry::Waiting(message) = *entry {
                self.ready.push_back(message);
                *entry = Entry::Done;
            }
        }
    }

    /// When missing numbers have to be requested.
    pub fn request_at(&self) -> Option<Instant> {
        self.requests.due()
    }

    /// Adds the missing numbers that are due to a request.
    pub fn emit_requests(&mut self, now: Instant, rtt: Duration, list: &mut NumberListBuf) {
        self.requests.emit(now, rtt, list);
    }

    /// Whether a message above the window was dropped.
    #[inline]
    pub fn has_dropped(&self) -> bool {
        self.has_dropped
    }

    /// The number to request once half of the window is free again after a message was dropped above it.
    pub fn take_reopened(&mut self) -> Option<MessageNumber> {
        let has_room = self.has_dropped && self.entries.len() + self.ready.len() < self.window / 2;
        has_room.then(|| {
            self.has_dropped = false;
            self.base.plus(self.entries.len() as u32)
        })
    }

    /// Bytes in use.
    pub fn memory(&self) -> usize {
        self.blocks.in_use() * BLOCK
    }

    /// Stores the message that comes next while none waits for it. Almost every message does, and needs no entry.
    #[inline]
    fn store_next(&mut self, message: StoredMessage) -> bool {
        if message.len > 0 {
            self.ready.push_back(message);
        } else {
            self.blocks.free(message.block);
        }
        self.base = self.base.next();
        self.stall.on_advance();
        true
    }

    /// Stores a message with this distance from `base`. Returns whether the window has moved.
    fn store(&mut self, offset: usize, message: StoredMessage) -> bool {
        for _ in self.entries.len()..offset {
            self.entries.push_back(Entry::Missing);
        }
        let entry = match (message.len, self.is_ordered) {
            // A message without bytes is acknowledged and never delivered (S15).
            (0, _) => {
                self.blocks.free(message.block);
                Entry::Done
            }
            (_, true) => Entry::Waiting(message),
            (_, false) => {
                self.ready.push_back(message);
                Entry::Done
            }
        };
        match self.entries.get_mut(offset) {
            Some(missing) => *missing = entry,
            None => self.entries.push_back(entry),
        }
        self.advance()
    }

    /// Moves the window over the messages that are no longer missing. Returns whether it has moved.
    fn advance(&mut self) -> bool {
        let before = self.base;
        while let Some(entry) = self.entries.front() {
            match *entry {
                Entry::Missing => break,
                Entry::Done => {}
                Entry::Waiting(message) => self.ready.push_back(message),
            }
            self.entries.pop_front();
            self.base = self.base.next();
        }
        let has_advanced = self.base != before;
        if has_advanced {
            self.stall.on_advance();
        }
        has_advanced
    }

    /// Has the oldest missing numbers requested at `request_at`.
    fn track_holes(&mut self, request_at: Instant) {
        let base = self.base;
        let entries = &self.entries;
        let is_missing = |number: MessageNumber| {
            matches!(entries.get(number.distance_from(base) as usize), None | Some(Entry::Missing))
        };
        let window_end = base.plus(self.window as u32);
        let end = if self.sent_end.is_before(window_end) { self.sent_end } else { window_end };
        self.requests.track(base, end, request_at, is_missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const REQUEST_DELAY: Duration = Duration::from_millis(10);

    fn put(buffer: &mut ReceiveBuffer, now: Instant, number: u32) -> Insertion {
        let fill = |bytes: &mut [u8]| {
            bytes[..4].copy_from_slice(&number.to_le_bytes());
            Some(4)
        };
        buffer.insert(now, MessageNumber::new(number), REQUEST_DELAY, usize::MAX, fill)
    }

    fn read(buffer: &mut ReceiveBuffer) -> Option<u32> {
        buffer.read().map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
    }

    proptest! {
        /// Compares the buffer with a set of numbers.
        #[test]
        fn s27_messages_are_delivered_in_order_and_once(
            start in prop_oneof![Just(0), Just(u32::MAX - 20), any::<u32>()],
            steps in prop::collection::vec((0..80u32, any::<bool>()), 1..300),
        ) {
            let now = Instant::now();
            let mut buffer = ReceiveBuffer::new(MessageNumber::new(start), 64, true);
            let mut received = BTreeSet::new();
            let mut next = 0u32;
            for (ahead, reads) in steps {
                let number = (next + ahead).saturating_sub(10);
                let inserted = put(&mut buffer, now, start.wrapping_add(number));
                let above = number >= next + 64;
                let expected_new = !above && number >= next && !received.contains(&number);
                prop_assert_eq!(matches!(inserted, Insertion::New { .. }), expected_new, "{:?}", inserted);
                prop_assert_eq!(inserted == Insertion::AboveWindow, above);
                if expected_new {
                    received.insert(number);
                }
                while let Some(read) = reads.then(|| read(&mut buffer)).flatten() {
                    prop_assert_eq!(read, start.wrapping_add(next));
                    prop_assert!(received.remove(&next));
                    next += 1;
                }
                if reads {
                    prop_assert!(!received.contains(&next));
                }
                prop_assert!(buffer.blocks.len() <= 65);
            }
        }
    }

    #[test]
    fn w51_unread_messages_take_no_more_memory_than_is_counted() {
        let now = Instant::now();
        let mut buffer = ReceiveBuffer::new(MessageNumber::FIRST, 4_096, true);
        (0..4_000).for_each(|number| assert!(matches!(put(&mut buffer, now, number), Insertion::New { .. })));
        (0..3_990).for_each(|number| assert_eq!(read(&mut buffer), Some(number)));
        put(&mut buffer, now, 4_005);
        buffer.keep_readable();
        assert_eq!((buffer.memory(), buffer.blocks.capacity()), (10 * BLOCK, 10));
        assert!((3_990..4_000).all(|number| read(&mut buffer) == Some(number)) && read(&mut buffer).is_none());
    }

    #[test]
    fn s27_unordered_messages_are_delivered_on_arrival_and_once() {
        let now = Instant::now();
        let mut buffer = ReceiveBuffer::new(MessageNumber::FIRST, 64, false);
        put(&mut buffer, now, 2);
        put(&mut buffer, now, 0);
        assert_eq!(put(&mut buffer, now, 2), Insertion::Duplicate);
        put(&mut buffer, now, 1);
        assert_eq!(std::iter::from_fn(|| read(&mut buffer)).collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!(put(&mut buffer, now, 1), Insertion::Duplicate);
    }

    fn request(buffer: &mut ReceiveBuffer, now: Instant) -> Vec<u32> {
        let mut list = NumberListBuf::new();
        buffer.emit_requests(now, Duration::from_millis(40), &mut list);
        list.as_list().iter().map(MessageNumber::get).collect()
    }

    #[test]
    fn s25_a_missing_number_is_requested_until_it_arrives() {
        let now = Instant::now();
        let mut buffer = ReceiveBuffer::new(MessageNumber::FIRST, 64, true);
        put(&mut buffer, now, 0);
        assert_eq!(buffer.request_at(), None);
        put(&mut buffer, now, 3);
        let due = now + REQUEST_DELAY;
        assert_eq!(buffer.request_at(), Some(due));
        let retry_after = Duration::from_millis(60);
        assert!(request(&mut buffer, now).is_empty());
        assert_eq!(request(&mut buffer, due), [1, 2]);
        assert!(request(&mut buffer, due).is_empty());
        put(&mut buffer, now, 1);
        assert_eq!(request(&mut buffer, due + retry_after), [2]);
        put(&mut buffer, now, 2);
        assert_eq!(buffer.request_at(), None);
    }

    #[test]
    fn s30_a_message_that_cannot_be_opened_changes_nothing() {
        let now = Instant::now();
        let mut buffer = ReceiveBuffer::new(MessageNumber::FIRST, 64, true);
        let rejected = buffer.insert(now, MessageNumber::new(5), REQUEST_DELAY, usize::MAX, |_| None);
        assert_eq!((rejected, buffer.memory(), buffer.request_at()), (Insertion::Rejected, 0, None));
        assert!(matches!(put(&mut buffer, now, 5), Insertion::New { .. }));
    }
}
