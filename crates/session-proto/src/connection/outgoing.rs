//! Messages on their way to the peer: what was sent when, what was acked, what has to be sent again (S21 to S25).
//!
//! Every message keeps its bytes as they go over the wire: a repeat sends the same bytes, and nothing is sealed twice (S30).
//! What is under way forms a list in the order of sending, so that whatever is overdue stands at its head, and nothing is
//! searched for when an ack comes.

use super::{
    congestion::Snapshot,
    store::{Place, Store},
};
use rallypoint_wire::session::MessageNumber;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// So many of the last messages are kept however long ago they were acked: a receiver that was cheated by a forged ack may
/// notice the hole only when the next message comes (S24).
const KEPT: usize = 64;

/// If more windows than the first are kept, they are kept for a shorter time; more than the second never are.
const MANY_WINDOWS: usize = 2;
const MOST_WINDOWS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not sent yet.
    Waiting,
    /// Sent, and neither acked nor given up.
    Flying,
    /// Has to be sent again.
    Lost,
    Acked,
}

#[derive(Debug)]
struct Sent {
    place: Place,
    state: State,
    /// Stands in `repeats`.
    queued: bool,
    /// How often it was sent, blind copies not counted.
    times: u16,
    /// It was sent a second time without a reason to believe that the first was lost.
    copied: bool,
    /// It was the first to be given up in its turn, after it had been sent once, without a copy.
    lost_alone: bool,
    /// The order of its last transmission among all.
    order: u64,
    sent_at: Instant,
    acked_at: Instant,
    snapshot: Option<Snapshot>,
    /// Neighbours in the list of what is under way.
    before: Option<MessageNumber>,
    after: Option<MessageNumber>,
}

/// What an ack said about a message that was not acked before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub len: u64,
    /// The order of its last transmission among all.
    pub order: u64,
    /// The time since it was sent, if it was sent once (Karn).
    pub rtt: Option<Duration>,
    pub snapshot: Option<Snapshot>,
    /// Whether it got lost when it was sent for the first time, if it was then sent without a copy.
    pub first_lost: Option<bool>,
    /// It was repeated, but the answer came too soon to be one to the repeat.
    pub spurious: bool,
}

/// What was found lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    pub all: u32,
    /// Those that were sent once with a copy.
    pub copied: u32,
}

#[derive(Debug)]
pub(crate) struct Outgoing {
    window: usize,
    /// So many messages of the window are not the caller's.
    reserve: usize,
    /// The number of the first slot.
    base: MessageNumber,
    slots: VecDeque<Sent>,
    store: Store,
    /// The oldest number that is not acked.
    oldest: MessageNumber,
    /// The first number that was never sent. Some behind it may have been (S31).
    unsent: MessageNumber,
    first: Option<MessageNumber>,
    last: Option<MessageNumber>,
    in_flight: u64,
    repeats: VecDeque<MessageNumber>,
    copies: VecDeque<(Instant, MessageNumber)>,
    next_order: u64,
    newest_acked: u64,
}

impl Outgoing {
    pub fn new(first: MessageNumber, window: usize, reserve: usize) -> Self {
        Self {
            window,
            reserve,
            base: first,
            slots: VecDeque::new(),
            store: Store::default(),
            oldest: first,
            unsent: first,
            first: None,
            last: None,
            in_flight: 0,
            repeats: VecDeque::new(),
            copies: VecDeque::new(),
            next_order: 1,
            newest_acked: 0,
        }
    }

    /// The number of the next message.
    pub fn next(&self) -> MessageNumber {
        self.base.plus(self.slots.len() as u32)
    }

    /// Whether another message fits into the window, and what is kept of the acked ones is not too much.
    pub fn has_room(&self) -> bool {
        self.has_room_for(1 + self.reserve) && self.slots.len() < MOST_WINDOWS * self.window
    }

    /// Whether so many messages fit into the window, the reserve included.
    pub fn has_room_for(&self, messages: usize) -> bool {
        self.unacked() + messages <= self.window
    }

    /// How many messages are not acked.
    pub fn unacked(&self) -> usize {
        self.next().distance_from(self.oldest) as usize
    }

    /// How many messages are not acked, those without bytes not counted, whose datagrams have just `empty` bytes.
    pub fn undelivered(&self, empty: usize) -> usize {
        let first = self.oldest.distance_from(self.base) as usize;
        let is_open = |sent: &&Sent| sent.state != State::Acked && usize::from(sent.place.len) > empty;
        self.slots.iter().skip(first).filter(is_open).count()
    }

    /// How many messages were never sent.
    pub fn waiting(&self) -> usize {
        self.next().distance_from(self.unsent) as usize
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Bytes in use.
    pub fn memory(&self) -> usize {
        self.store.used()
    }

    /// Takes the datagram of the next message.
    pub fn push(&mut self, now: Instant, datagram: &[u8]) {
        let place = self.store.push(datagram, self.slots.iter_mut().map(|sent| &mut sent.place));
        self.slots.push_back(Sent {
            place,
            state: State::Waiting,
            queued: false,
            times: 0,
            copied: false,
            lost_alone: false,
            order: 0,
            sent_at: now,
            acked_at: now,
            snapshot: None,
            before: None,
            after: None,
        });
    }

    /// The next message that was never sent.
    pub fn next_waiting(&self) -> Option<MessageNumber> {
        (self.waiting() > 0).then_some(self.unsent)
    }

    /// The next message that has to be sent again.
    pub fn next_repeat(&mut self) -> Option<MessageNumber> {
        while let Some(&number) = self.repeats.front() {
            match self.slot(number) {
                // An acked one is there because the receiver asked for it.
                Some(sent) if sent.queued => return Some(number),
                _ => self.repeats.pop_front(),
            };
        }
        None
    }

    /// The oldest message that was sent and is not acked, and when it was sent last.
    pub fn oldest_sent(&self) -> Option<(MessageNumber, Instant)> {
        let sent = self.slot(self.oldest)?;
        (sent.times > 0).then_some((self.oldest, sent.sent_at))
    }

    /// The newest message that was sent.
    pub fn last_sent(&self) -> Option<MessageNumber> {
        (self.unsent != self.base).then(|| self.unsent.plus(u32::MAX))
    }

    /// A blind copy whose time has come.
    pub fn next_copy(&mut self, now: Instant) -> Option<MessageNumber> {
        while let Some(&(at, number)) = self.copies.front() {
            let flying = self.slot(number).is_some_and(|sent| sent.state == State::Flying);
            if flying {
                return (at <= now).then_some(number);
            }
            self.copies.pop_front();
        }
        None
    }

    /// The copy that came up was sent.
    pub fn on_copied(&mut self) {
        self.copies.pop_front();
    }

    pub fn copy_at(&self) -> Option<Instant> {
        self.copies.front().map(|(at, _)| *at)
    }

    /// Plans a blind copy of a message that was just sent.
    pub fn plan_copy(&mut self, at: Instant, number: MessageNumber) {
        // In the order of time: what comes later than planned before it is only a moment too early.
        let at = self.copies.back().map_or(at, |(last, _)| at.max(*last));
        if let Some(sent) = self.slot_mut(number) {
            sent.copied = true;
            self.copies.push_back((at, number));
        }
    }

    pub fn datagram(&self, number: MessageNumber) -> &[u8] {
        self.slot(number).map_or(&[], |sent| self.store.get(sent.place))
    }

    /// A message is sent, for the first time or again. True if it was sent before.
    pub fn on_sent(&mut self, now: Instant, number: MessageNumber, snapshot: Snapshot) -> bool {
        let order = self.next_order;
        let Some(sent) = self.slot_mut(number) else { return false };
        let (state, again) = (sent.state, sent.times > 0);
        sent.queued = false;
        sent.sent_at = now;
        sent.times = sent.times.saturating_add(1);
        if state == State::Acked {
            return true;
        }
        sent.order = order;
        sent.snapshot = Some(snapshot);
        sent.state = State::Flying;
        let len = u64::from(sent.place.len);
        self.next_order += 1;
        if state == State::Flying {
            self.unlink(number);
        } else {
            self.in_flight += len;
        }
        self.link(number);
        while self.slot(self.unsent).is_some_and(|sent| sent.state != State::Waiting) {
            self.unsent = self.unsent.next();
        }
        again
    }

    /// The peer says that it has a message. Numbers that were never sent are ignored (S23).
    pub fn on_ack(&mut self, now: Instant, number: MessageNumber, min_rtt: Duration) -> Option<Acked> {
        let sent = self.slot_mut(number)?;
        let state = sent.state;
        if matches!(state, State::Waiting | State::Acked) {
            return None;
        }
        let since = now.saturating_duration_since(sent.sent_at);
        let of_repeat = since >= min_rtt * 3 / 4;
        let spurious = sent.times == 2 && !of_repeat;
        let acked = Acked {
            len: u64::from(sent.place.len),
            order: sent.order,
            rtt: (sent.times == 1).then_some(since),
            snapshot: sent.snapshot.filter(|_| sent.times == 1 || of_repeat),
            first_lost: (sent.lost_alone || (sent.times == 1 && !sent.copied)).then_some(sent.lost_alone && !spurious),
            spurious,
        };
        sent.state = State::Acked;
        sent.acked_at = now;
        sent.queued = false;
        if state == State::Flying {
            self.unlink(number);
            self.in_flight -= acked.len;
        }
        if acked.snapshot.is_some() {
            self.newest_acked = self.newest_acked.max(acked.order);
        }
        while self.slot(self.oldest).is_some_and(|sent| sent.state == State::Acked) {
            self.oldest = self.oldest.next();
        }
        Some(acked)
    }

    /// The peer asks for a message. It is served, acked or not, but not twice within `at_most_every` (S24, S25).
    pub fn on_asked(&mut self, now: Instant, number: MessageNumber, at_most_every: Duration) -> Option<Losses> {
        let sent = self.slot_mut(number)?;
        if sent.times == 0 || sent.queued || now.saturating_duration_since(sent.sent_at) < at_most_every {
            return None;
        }
        if sent.state == State::Flying {
            return Some(self.give_up(number, true));
        }
        sent.queued = true;
        self.repeats.push_back(number);
        Some(Losses::default())
    }

    /// Finds what is lost: `threshold` datagrams that were sent later are acked, or one was and it is `loss_delay` ago; or
    /// it is `overdue` ago, whatever was acked.
    pub fn detect(&mut self, now: Instant, threshold: u64, loss_delay: Duration, overdue: Option<Duration>) -> Losses {
        let mut losses = Losses::default();
        while let Some(number) = self.first {
            let Some(sent) = self.slot(number) else { break };
            let passed = self.newest_acked.saturating_sub(sent.order);
            let lost = passed >= threshold
                || (passed > 0 && now >= sent.sent_at + loss_delay)
                || overdue.is_some_and(|overdue| now >= sent.sent_at + overdue);
            if !lost {
                break;
            }
            // Several at once are one mishap, maybe only that of an ack.
            let found = self.give_up(number, losses.all == 0);
            losses.all += found.all;
            losses.copied += found.copied;
        }
        losses
    }

    /// When [`detect`](Self::detect) may find something.
    pub fn detect_at(&self, loss_delay: Duration, overdue: Option<Duration>) -> Option<Instant> {
        let sent = self.slot(self.first?)?;
        let passed = (self.newest_acked > sent.order).then(|| sent.sent_at + loss_delay);
        let overdue = overdue.map(|overdue| sent.sent_at + overdue);
        passed.into_iter().chain(overdue).min()
    }

    /// Frees what was acked so long `after`, with everything older than it (S24); if there is much of it, after the shorter
    /// time.
    pub fn release(&mut self, now: Instant, after: Duration, hurried: Duration) {
        while let Some(at) = self.release_at(after, hurried)
            && at <= now
            && let Some(sent) = self.slots.pop_front()
        {
            self.store.pop(sent.place);
            self.base = self.base.next();
        }
    }

    /// When the oldest slot can be freed, if nothing else holds it.
    pub fn release_at(&self, after: Duration, hurried: Duration) -> Option<Instant> {
        let sent = self.slots.front().filter(|_| self.slots.len() > KEPT && self.base != self.oldest)?;
        let after = if self.slots.len() > MANY_WINDOWS * self.window { hurried.min(after) } else { after };
        (sent.state == State::Acked && !sent.queued).then(|| sent.acked_at + after)
    }

    fn give_up(&mut self, number: MessageNumber, alone: bool) -> Losses {
        self.unlink(number);
        let Some(sent) = self.slot_mut(number) else { return Losses::default() };
        sent.state = State::Lost;
        sent.queued = true;
        let len = u64::from(sent.place.len);
        let copied = sent.times == 1 && sent.copied;
        sent.lost_alone |= alone && sent.times == 1 && !sent.copied;
        self.in_flight -= len;
        self.repeats.push_back(number);
        Losses { all: 1, copied: copied.into() }
    }

    fn slot(&self, number: MessageNumber) -> Option<&Sent> {
        self.slots.get(number.distance_from(self.base) as usize)
    }

    fn slot_mut(&mut self, number: MessageNumber) -> Option<&mut Sent> {
        self.slots.get_mut(number.distance_from(self.base) as usize)
    }

    fn link(&mut self, number: MessageNumber) {
        let last = self.last.replace(number);
        if let Some(sent) = self.slot_mut(number) {
            (sent.before, sent.after) = (last, None);
        }
        match last.and_then(|last| self.slot_mut(last)) {
            Some(last) => last.after = Some(number),
            None => self.first = Some(number),
        }
    }

    fn unlink(&mut self, number: MessageNumber) {
        let Some(sent) = self.slot_mut(number) else { return };
        let (before, after) = (sent.before.take(), sent.after.take());
        match before.and_then(|before| self.slot_mut(before)) {
            Some(before) => before.after = after,
            None => self.first = after,
        }
        match after.and_then(|after| self.slot_mut(after)) {
            Some(after) => after.before = before,
            None => self.last = before,
        }
    }
}
