//! Decides what is sent next: queues, priorities, rates, and the packing of messages into payloads.

mod direct;
mod fill_state;
mod single;

use super::{
    ChannelFault, ChannelIndex, ChannelMode, ChannelTable, MessageId,
    droppable_limit::DroppableLimit,
    droppable_traffic::DroppableTraffic,
    message_store::OutgoingMessage,
    newest_payloads::NewestPayloads,
    priority_group::{ChannelSet, PriorityGroup, bit},
    reliable_limit::{ReliableAdmission, ReliableLimit},
    replies::Replies,
    send_channel::{CREDIT_WINDOW, SendChannel},
    table::MIN_QUEUE,
};
use crate::{
    Connection, SendError,
    connection::{Side, Source},
};
use direct::{DirectDroppable, MAX_SINGLE_MESSAGE_POLLS};
use fill_state::{FillState, WaitingDroppable};
use rallypoint_wire::session::{
    ClientData, MAX_DATAGRAM, MessageNumber,
    channels::{FRAGMENT_HEADER, MESSAGE_HEADER, RecordWriter, Sequences},
};
use std::{collections::VecDeque, ops::ControlFlow, time::Instant};

/// Maximum number of receipts that wait to be polled. A correct peer sends at most one per message.
const MAX_RECEIPTS: usize = 1 << 16;

/// The sending half of a session.
#[derive(Debug)]
pub(super) struct Sender {
    channels: Vec<SendChannel>,
    /// The channels with messages that wait, those that are reliable, and those whose messages expire.
    waiting: ChannelSet,
    reliable: ChannelSet,
    expiring: ChannelSet,
    /// Reliable channels that are limited by delay while a droppable one is in use: all but those that go before every droppable
    /// one.
    delay_limited: ChannelSet,
    /// The channels by priority; those that have the same take turns.
    order: Vec<PriorityGroup>,
    writer: RecordWriter,
    newest: NewestPayloads,
    reliable_limit: ReliableLimit,
    droppable_limit: DroppableLimit,
    traffic: DroppableTraffic,
    receipts: VecDeque<MessageId>,
    /// Bytes of a datagram around a message that is sent without a queue, and whether droppable messages are sent like
    /// that.
    direct_overhead: usize,
    is_droppable_direct: bool,
    direct_droppable: DirectDroppable,
    /// Number of polls in a row that sent a single message.
    single_message_polls: u8,
    /// A channel may have been full.
    has_blocked: bool,
}

/// The kind of messages in a payload: only whole payloads are dropped, so the two kinds never share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadKind {
    Reliable,
    Droppable,
}

/// Properties of a payload of droppable messages.
#[derive(Clone, Copy, Debug, Default)]
struct DroppableContents {
    newest_of: ChannelSet,
    expires_at: Option<Instant>,
}

impl Sender {
    pub fn new(table: &ChannelTable, side: Side) -> Self {
        let channels: Vec<SendChannel> = table
            .iter()
            .map(|(index, channel)| {
                let max = if side == Side::Client { channel.max_to_server } else { channel.max_to_client };
                SendChannel::new(index, channel, max)
            })
            .collect();
        let order = PriorityGroup::of_all(&channels);
        let set_of = |is_chosen: &dyn Fn(&SendChannel) -> bool| {
            let chosen = channels.iter().filter(|channel| is_chosen(channel));
            chosen.fold(0, |set, channel| set | bit(channel.index.get().into()))
        };
        let reliable = set_of(&|channel| channel.mode.is_reliable());
        let expiring = set_of(&|channel| channel.mode == ChannelMode::Expiring);
        let droppable = channels.iter().filter(|channel| !channel.mode.is_reliable() && channel.max_size > 0);
        let first_priority = droppable.map(|channel| channel.priority).min().unwrap_or(0);
        let delay_limited = set_of(&|channel| channel.mode.is_reliable() && channel.priority >= first_priority);
        Self {
            channels,
            waiting: 0,
            reliable,
            expiring,
            delay_limited,
            order,
            writer: RecordWriter::new(0),
            newest: NewestPayloads::default(),
            reliable_limit: ReliableLimit::default(),
            droppable_limit: DroppableLimit::default(),
            traffic: DroppableTraffic::default(),
            receipts: VecDeque::new(),
            direct_overhead: 0,
            is_droppable_direct: false,
            direct_droppable: DirectDroppable::default(),
            single_message_polls: 0,
            has_blocked: false,
        }
    }

    /// Queues a message. Inlined with its callers up to the server and the client: otherwise each of them would copy message and
    /// result.
    #[inline(always)]
    pub fn send(
        &mut self,
        now: Instant,
        channel: ChannelIndex,
        message: OutgoingMessage<'_>,
    ) -> Result<MessageId, SendError> {
        let Self { channels, waiting, reliable, droppable_limit, has_blocked, .. } = self;
        let position = usize::from(channel.get());
        let channel = channels.get_mut(position).ok_or(SendError::NoChannel)?;
        let length = message.as_bytes().len();
        let id = channel.push(now, message).inspect_err(|_| *has_blocked = true)?;
        *waiting |= bit(position);
        if *reliable & bit(position) == 0 {
            droppable_limit.on_offer(now, length + ClientData::HEADER + MESSAGE_HEADER);
        }
        Ok(id)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Bytes of memory that the messages that wait take.
    pub fn queue_memory(&self) -> usize {
        self.channels.iter().map(SendChannel::memory).sum()
    }

    /// Whether nothing waits to be sent or polled.
    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.receipts.is_empty() && !self.has_blocked
    }

    /// Whether a message of a reliable channel waits.
    pub fn has_reliable(&self) -> bool {
        self.channels.iter().any(|channel| channel.mode.is_reliable() && !channel.is_empty())
    }

    /// Whether there is room for a message of this length.
    pub fn has_room(&self, channel: ChannelIndex, length: usize) -> bool {
        self.channels.get(usize::from(channel.get())).is_some_and(|channel| channel.has_room(length))
    }

    /// Whether a channel that was full has room again. Each time is reported once.
    #[inline]
    pub fn take_writable(&mut self) -> bool {
        self.has_blocked && self.unblock()
    }

    fn unblock(&mut self) -> bool {
        let mut is_writable = false;
        self.has_blocked = false;
        for channel in &mut self.channels {
            // Room for the largest message may come only when the queue is empty.
            if channel.is_blocked && channel.has_room(channel.max_size.min(MIN_QUEUE)) {
                channel.is_blocked = false;
                is_writable = true;
            }
            self.has_blocked |= channel.is_blocked;
        }
        is_writable
    }

    /// The next receipt of the peer.
    #[inline]
    pub fn poll_receipt(&mut self) -> Option<MessageId> {
        self.receipts.pop_front()
    }

    pub fn handle_credit(&mut self, channel: ChannelIndex, sequence: u16) -> Result<(), ChannelFault> {
        let fault = ChannelFault::OutOfRange(channel.get());
        let channel = self.channels.get_mut(usize::from(channel.get())).ok_or(fault)?;
        if channel.on_credit(sequence) { Ok(()) } else { Err(fault) }
    }

    pub fn handle_receipt(&mut self, channel: ChannelIndex, sequences: Sequences<'_>) -> Result<(), ChannelFault> {
        let fault = ChannelFault::OutOfRange(channel.get());
        let channel = self.channels.get_mut(usize::from(channel.get())).ok_or(fault)?;
        for sequence in sequences.iter() {
            let id = channel.on_receipt(sequence).ok_or(fault)?;
            if self.receipts.len() >= MAX_RECEIPTS {
                return Err(ChannelFault::Receipts);
            }
            self.receipts.push_back(id);
        }
        Ok(())
    }

    /// Hands messages over to the connection, as many as it sends at once. `replies` are what the receiver has to send.
    pub fn fill(&mut self, now: Instant, connection: &mut Connection, replies: &mut Replies, allowance: usize) {
        let mut source = Source::default();
        if !(replies.is_empty() && self.is_empty()) {
            source = self.fill_waiting(now, connection, replies, allowance);
        }
        source.is_idle = self.is_idle() && replies.is_empty();
        connection.set_source(source);
    }

    /// [`fill`](Self::fill) while something waits. Returns what is waited for after that.
    fn fill_waiting(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        replies: &mut Replies,
        allowance: usize,
    ) -> Source {
        self.count_direct_droppable();
        if self.waiting & self.expiring != 0 {
            self.expire_waiting(now);
        }
        let is_droppable_limited = self.update_limits(now, connection);
        let mut state = FillState::new(now, connection, self.waiting_droppable(), allowance);
        let mut source = Source::default();
        if replies.is_empty() {
            let is_single = self.has_single_message(connection.max_message());
            self.fill_single(now, connection, &mut state);
            if self.is_empty() {
                self.single_message_polls =
                    if is_single { (self.single_message_polls + 1).min(MAX_SINGLE_MESSAGE_POLLS) } else { 0 };
                return source;
            }
        }
        self.single_message_polls = 0;
        while self.send_payload(now, connection, replies, &mut state, is_droppable_limited, &mut source).is_continue() {
        }
        source
    }

    /// Adapts the limits by delay to the path. Returns whether that of droppable messages applies: reliable messages of this
    /// session yield first.
    fn update_limits(&mut self, now: Instant, connection: &Connection) -> bool {
        let is_droppable_limited = self.waiting & self.reliable == 0;
        if is_droppable_limited {
            self.droppable_limit.update(now, connection, &self.traffic);
        } else {
            self.traffic.update(now);
            self.reliable_limit.update(now, connection, &self.traffic);
        }
        is_droppable_limited
    }

    /// Packs and hands over a payload. Breaks if none may be sent now, with what is waited for in `source`.
    fn send_payload(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        replies: &mut Replies,
        state: &mut FillState,
        is_droppable_limited: bool,
        source: &mut Source,
    ) -> ControlFlow<()> {
        let admission = state.check_reliable(connection, &self.reliable_limit, &self.traffic);
        let is_reliable_admitted = admission == ReliableAdmission::Admitted;
        let droppable_at =
            if is_droppable_limited { self.droppable_limit.ready_at(now, state.in_flight, &self.traffic) } else { now };
        let only_droppable = state.preceding.is_some();
        let kind = match self.next_kind(now, is_reliable_admitted, only_droppable, droppable_at, &mut source.wake_at) {
            Some(kind) => kind,
            None if !replies.is_empty() && state.preceding.is_none() => PayloadKind::Reliable,
            None => {
                source.has_backlog = admission == ReliableAdmission::WindowFull;
                return ControlFlow::Break(());
            }
        };
        if !state.admits(connection) {
            source.has_backlog = true;
            return ControlFlow::Break(());
        }
        let size = connection.max_message();
        self.writer.start(size);
        let contents = self.pack(now, connection, kind, is_reliable_admitted, replies);
        let payload = self.writer.finish();
        if payload.is_empty() {
            return ControlFlow::Break(());
        }
        let sent = payload.len() + MAX_DATAGRAM - size;
        // The session is open and has room: that was just checked.
        let Ok(number) = connection.send_numbered(now, &[], payload, state.allowance) else {
            return ControlFlow::Break(());
        };
        if kind == PayloadKind::Droppable {
            contents.on_sent(number, connection, &mut self.newest);
            self.traffic.on_sent(now, sent);
        }
        state.on_sent(connection, sent);
        ControlFlow::Continue(())
    }

    fn waiting_droppable(&self) -> WaitingDroppable {
        if self.waiting & !self.reliable == 0 {
            WaitingDroppable::None
        } else if self.waiting & self.reliable != 0 && self.droppable_limit.is_thin() {
            WaitingDroppable::FewBesideReliable
        } else {
            WaitingDroppable::Some
        }
    }

    /// Drops messages that wait and are late.
    fn expire_waiting(&mut self, now: Instant) {
        for (position, channel) in self.channels.iter_mut().enumerate() {
            if self.waiting & self.expiring & bit(position) != 0 {
                channel.expire(now);
            }
            if channel.is_empty() {
                self.waiting &= !bit(position);
            }
        }
    }

    /// The kind of the first message, by priority, that may be sent. Otherwise `wake_at` is set if one may be sent later.
    /// `only_droppable`: it precedes messages that have to be resent, as no reliable one does, whatever its priority is.
    fn next_kind(
        &mut self,
        now: Instant,
        is_reliable_admitted: bool,
        only_droppable: bool,
        droppable_at: Instant,
        wake_at: &mut Option<Instant>,
    ) -> Option<PayloadKind> {
        for group in self.order.iter().filter(|group| group.set & self.waiting != 0) {
            for (_, index) in group.turns() {
                let channel = self.channels.get_mut(index);
                let Some(channel) = channel.filter(|channel| channel.front().is_some()) else { continue };
                let kind = PayloadKind::of(channel.mode);
                let is_excluded = only_droppable && kind == PayloadKind::Reliable;
                if is_excluded || (!is_reliable_admitted && self.delay_limited & bit(index) != 0) {
                    continue;
                }
                let ready_at = channel.rate.as_mut().map_or(now, |rate| rate.ready_at(now));
                let ready_at = if kind == PayloadKind::Droppable { ready_at.max(droppable_at) } else { ready_at };
                if ready_at <= now {
                    return Some(kind);
                }
                *wake_at = Some(wake_at.map_or(ready_at, |at| at.min(ready_at)));
            }
        }
        None
    }

    /// Packs messages of one kind into a payload, in the order of their priorities.
    fn pack(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        kind: PayloadKind,
        is_reliable_admitted: bool,
        replies: &mut Replies,
    ) -> DroppableContents {
        let mut contents = DroppableContents::default();
        if kind == PayloadKind::Reliable {
            replies.emit(&mut self.writer);
        }
        let admitted = if is_reliable_admitted { ChannelSet::MAX } else { !self.delay_limited };
        let Self { channels, waiting, order, writer, newest, .. } = self;
        for group in order {
            if group.set & *waiting & admitted == 0 {
                continue;
            }
            let mut served_first = None;
            for (turn, index) in group.turns() {
                let channel = channels.get_mut(index).filter(|_| *waiting & admitted & bit(index) != 0);
                let Some(channel) = channel.filter(|channel| PayloadKind::of(channel.mode) == kind) else { continue };
                let before = writer.len();
                pack_channel(now, channel, writer, |mode, is_start, replaced, expires_at| {
                    if mode == ChannelMode::Sequenced {
                        if let Some(replaced) = replaced {
                            connection.discard_at(replaced, now);
                        }
                        if is_start {
                            newest.supersede(now, bit(index), |number, at| connection.discard_at(number, at));
                        }
                        contents.newest_of |= bit(index);
                    }
                    contents.expires_at = contents.expires_at.max(expires_at);
                });
                if channel.is_empty() {
                    *waiting &= !bit(index);
                }
                let packed = writer.len() - before;
                if packed > 0 {
                    served_first.get_or_insert(turn);
                    if let Some(rate) = &mut channel.rate {
                        rate.on_send(packed);
                    }
                }
            }
            if let Some(turn) = served_first {
                group.on_served(turn);
            }
        }
        contents
    }
}

/// Packs the next messages of a channel, as far as they fit. `on_part` is called for each part, with the mode of the channel,
/// whether it is the first of its message, a payload that is replaced by that, and when it expires.
fn pack_channel(
    now: Instant,
    channel: &mut SendChannel,
    writer: &mut RecordWriter,
    mut on_part: impl FnMut(ChannelMode, bool, Option<MessageNumber>, Option<Instant>),
) {
    let mut is_first = true;
    while let Some(front) = channel.front() {
        let length = front.len();
        let whole = writer.limit() - MESSAGE_HEADER;
        let fragment = writer.limit() - FRAGMENT_HEADER;
        let is_start = front.fragments_sent == 0;
        let is_whole = length <= whole && is_start;
        // The next part, and the room that it takes.
        let offset = usize::from(front.fragments_sent) * fragment;
        let part = if is_whole { length } else { (length - offset).min(fragment) };
        let needed = part + if is_whole { 0 } else { FRAGMENT_HEADER - MESSAGE_HEADER };
        if writer.room().is_none_or(|room| needed > room) {
            return;
        }
        let is_rate_limited = channel.rate.as_mut().is_some_and(|rate| rate.ready_at(now) > now);
        // In a sequenced channel, a second message would replace the first.
        if is_rate_limited || (!is_first && channel.mode == ChannelMode::Sequenced) {
            return;
        }
        is_first = false;
        let channel_index = channel.index;
        let mode = channel.mode;
        let replaced = channel.newest_payload.take();
        let Some(front) = channel.start_front() else { return };
        on_part(mode, is_start, replaced, front.expires_at);
        let bytes = front.bytes;
        let sequence = *front.number as u16;
        if is_whole {
            writer.message(channel_index, sequence, bytes);
            channel.pop();
            continue;
        }
        let count = length.div_ceil(fragment) as u16;
        let index = *front.fragments_sent;
        writer.fragment(channel_index, sequence, index, count, bytes.get(offset..offset + part).unwrap_or_default());
        *front.fragments_sent += 1;
        if index + 1 == count {
            channel.pop();
        }
    }
}

impl DroppableContents {
    /// The payload is handed over, with this number.
    fn on_sent(self, number: MessageNumber, connection: &mut Connection, newest: &mut NewestPayloads) {
        if self.newest_of != 0 {
            newest.push(number, self.newest_of, self.expires_at);
        } else if let Some(expires_at) = self.expires_at {
            connection.discard_at(number, expires_at);
        }
    }
}

impl PayloadKind {
    fn of(mode: ChannelMode) -> Self {
        if mode.is_reliable() { Self::Reliable } else { Self::Droppable }
    }
}

// Sequences of a channel never differ by half of their range: the peer could not tell which one is newer.
const _: () = assert!(CREDIT_WINDOW * 2 <= 1 << 15);
