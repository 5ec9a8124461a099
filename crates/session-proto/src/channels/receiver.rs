//! Reads payloads: messages for the application, and what the peer's receiver reports.

use super::{
    ChannelFault, ChannelIndex, ChannelTable,
    payload_source::PayloadSource,
    reassembly::ENTRY,
    receive_channel::{Delivery, Fragment, Output, ReceiveChannel, memory_of},
    replies::Replies,
    send_channel::CREDIT_WINDOW,
    sender::Sender,
};
use crate::connection::Side;
use rallypoint_wire::session::{
    MAX_DATAGRAM, MAX_ENCRYPTED_TO_CLIENT, MAX_ENCRYPTED_TO_SERVER, MAX_TO_CLIENT, MAX_TO_SERVER,
    channels::{ControlRecord, FRAGMENT_HEADER, MESSAGE_HEADER, Record, records, whole_message},
};
use std::collections::VecDeque;

/// Maximum number of records in a payload: a message without bytes takes five.
const MAX_RECORDS: usize = MAX_DATAGRAM / 5;

/// The receiving half of a session.
#[derive(Debug)]
pub(super) struct Receiver {
    channels: Vec<ReceiveChannel>,
    /// A payload of which records are left, and the offset of the next one.
    payload: Vec<u8>,
    offset: usize,
    /// Complete messages that are in no payload.
    ready: VecDeque<(ChannelIndex, u64, Vec<u8>)>,
    /// Whether the next message is in the next payload of the source: the session is open, and nothing is left of earlier ones.
    is_direct: bool,
    /// The message that the application is reading, and its bytes if they are in no payload.
    current: Current,
    stored: Vec<u8>,
    /// Bytes of messages that are kept, and the maximum for a correct peer.
    memory: usize,
    max_memory: usize,
    /// Length of the body of every fragment but the last.
    fragment: usize,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// A message of this channel: the payload that the source returned last, without its header.
    Message(ChannelIndex),
    /// The payload that the source returned last, which is not handled yet.
    Payload,
    /// Something that was received earlier.
    Kept,
    Nothing,
}

impl Next {
    /// The channel of the message, if that is the next payload.
    pub fn message(self) -> Option<ChannelIndex> {
        if let Self::Message(channel) = self { Some(channel) } else { None }
    }
}

/// Where the message is that the application is reading.
#[derive(Clone, Copy, Debug)]
enum Current {
    /// In the payload that the source returned last: everything after the header.
    EndOfSource,
    /// In the payload that the source returned last.
    Source { from: usize, to: usize },
    /// In the payload of which records are left.
    Payload { from: usize, to: usize },
    /// In a buffer of its own.
    Stored,
}

impl Receiver {
    /// `side`: the side of this receiver. `window`: maximum number of unacknowledged messages of the peer.
    pub fn new(table: &ChannelTable, side: Side, is_encrypted: bool, window: usize) -> Self {
        let channels: Vec<ReceiveChannel> = table
            .iter()
            .map(|(index, channel)| {
                let max = if side == Side::Server { channel.max_to_server } else { channel.max_to_client };
                ReceiveChannel::new(index, channel, max)
            })
            .collect();
        let payload = match (side, is_encrypted) {
            (Side::Server, false) => MAX_TO_SERVER,
            (Side::Client, false) => MAX_TO_CLIENT,
            (Side::Server, true) => MAX_ENCRYPTED_TO_SERVER,
            (Side::Client, true) => MAX_ENCRYPTED_TO_CLIENT,
        };
        // One unfinished message of each channel, and everything that can be under way: payloads full of fragments, or of
        // messages without bytes.
        let unfinished: usize = channels.iter().map(|channel| channel.max_size() * 9 / 8 + 8 * MAX_DATAGRAM).sum();
        let messages = (window * MAX_RECORDS).min(channels.len() * CREDIT_WINDOW as usize);
        let under_way = window * (MAX_DATAGRAM + ENTRY) + messages * ENTRY;
        Self {
            channels,
            payload: Vec::new(),
            offset: 0,
            ready: VecDeque::new(),
            is_direct: false,
            current: Current::Stored,
            stored: Vec::new(),
            memory: 0,
            max_memory: unfinished + under_way,
            fragment: payload - FRAGMENT_HEADER,
        }
    }

    /// Drops everything that was received.
    pub fn clear(&mut self) {
        self.channels.clear();
        self.ready.clear();
        self.payload.clear();
        self.offset = 0;
        self.memory = 0;
        self.is_direct = false;
    }

    /// The session is open: payloads are messages from now on.
    pub fn open(&mut self) {
        self.is_direct = true;
    }

    /// Whether [`next`](Self::next) may be called.
    #[inline]
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Bytes of memory that unfinished and waiting messages take.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Whether a message or a record is left that was received already.
    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty() || self.offset < self.payload.len()
    }

    /// Looks for the next message, if it is in the next payload. The common case is complete with that, without the detour of a
    /// record; [`finish_next`](Self::finish_next) has to follow in all others.
    #[inline(always)]
    pub fn next(&mut self, source: &mut impl PayloadSource) -> Next {
        let Some(payload) = source.next_payload() else { return Next::Nothing };
        if let Some((channel, sequence, body)) = whole_message(payload)
            && let Some(known) = self.channels.get_mut(usize::from(channel.get()))
            && known.accept_next(sequence, body.len())
        {
            Next::Message(channel)
        } else {
            Next::Payload
        }
    }

    /// Moves to the message that [`next`](Self::next) has looked for, and returns its channel.
    pub fn finish_next(
        &mut self,
        next: Next,
        sender: &mut Sender,
        replies: &mut Replies,
        source: &mut impl PayloadSource,
    ) -> Result<Option<ChannelIndex>, ChannelFault> {
        let received = match next {
            Next::Message(channel) => {
                self.current = Current::EndOfSource;
                return Ok(Some(channel));
            }
            Next::Nothing => return Ok(None),
            Next::Payload => match self.handle_payload(source.last_payload_from(0), sender, replies) {
                Ok(None) => self.next_kept(sender, replies, source),
                received => received,
            },
            Next::Kept => self.next_kept(sender, replies, source),
        };
        self.is_direct = !self.is_readable();
        received
    }

    /// Moves to the next message, in the general case.
    fn next_kept(
        &mut self,
        sender: &mut Sender,
        replies: &mut Replies,
        source: &mut impl PayloadSource,
    ) -> Result<Option<ChannelIndex>, ChannelFault> {
        loop {
            if let Some((channel, number, bytes)) = self.ready.pop_front() {
                self.memory -= memory_of(&bytes);
                self.current = Current::Stored;
                self.stored = bytes;
                let position = usize::from(channel.get());
                if self.channels.get(position).is_some_and(|channel| channel.has_receipts) {
                    replies.push_receipt(channel, number)?;
                }
                return Ok(Some(channel));
            }
            let delivered = if self.offset < self.payload.len() {
                let payload = std::mem::take(&mut self.payload);
                let handled = self.handle_record(payload.get(self.offset..).unwrap_or_default(), sender, replies);
                self.payload = payload;
                let (end, delivered) = handled?;
                self.offset += end;
                if let Some((_, length)) = delivered {
                    self.current = Current::Payload { from: self.offset - length, to: self.offset };
                }
                delivered.map(|(channel, _)| channel)
            } else {
                let Some(payload) = source.next_payload() else { return Ok(None) };
                self.handle_payload(payload, sender, replies)?
            };
            if let Some(channel) = delivered {
                return Ok(Some(channel));
            }
        }
    }

    /// Handles the first record of a payload of the source, and keeps the others. Returns the channel of a message that is
    /// delivered at once.
    fn handle_payload(
        &mut self,
        payload: &[u8],
        sender: &mut Sender,
        replies: &mut Replies,
    ) -> Result<Option<ChannelIndex>, ChannelFault> {
        let (end, delivered) = self.handle_record(payload, sender, replies)?;
        if let Some((_, length)) = delivered {
            self.current = Current::Source { from: end - length, to: end };
        }
        // The rest of the payload is read later, when the source may have no copy of it any more.
        if end < payload.len() {
            self.payload.clear();
            self.payload.extend_from_slice(payload);
            self.offset = end;
        }
        Ok(delivered.map(|(channel, _)| channel))
    }

    /// The bytes of the message that [`finish_next`](Self::finish_next) moved to. `last`: the payload that the source returned
    /// last.
    pub fn message<'a>(&'a self, last: &'a [u8]) -> &'a [u8] {
        match self.current {
            Current::EndOfSource => last.get(MESSAGE_HEADER..).unwrap_or_default(),
            Current::Source { from, to } => last.get(from..to).unwrap_or_default(),
            Current::Payload { from, to } => self.payload.get(from..to).unwrap_or_default(),
            Current::Stored => &self.stored,
        }
    }

    /// Handles the first record of `bytes`. Returns its end; and its channel and the length of its body, if it is a message that
    /// is delivered at once. The body is the end of the record.
    fn handle_record(
        &mut self,
        bytes: &[u8],
        sender: &mut Sender,
        replies: &mut Replies,
    ) -> Result<(usize, Option<(ChannelIndex, usize)>), ChannelFault> {
        let mut rest = records(bytes);
        let Some(record) = rest.next() else { return Ok((bytes.len(), None)) };
        let record = record.map_err(|error| ChannelFault::Malformed(error.field))?;
        let end = bytes.len() - rest.remaining();
        match record {
            Record::Message { channel, sequence, body } => {
                let is_delivered = self.handle_message(channel, sequence, body, replies)?;
                Ok((end, is_delivered.then_some((channel, body.len()))))
            }
            Record::Fragment { channel, sequence, index, count, body } => {
                let Self { channels, ready, memory, fragment, .. } = self;
                let known = find(channels, channel)?;
                let fragment = Fragment { sequence, index, count, body, size: *fragment };
                known.handle_fragment(fragment, &mut Output { channel, ready, memory })?;
                if let Some(sequence) = known.take_credit() {
                    replies.push_credit(channel, sequence);
                }
                self.check_memory()?;
                Ok((end, None))
            }
            Record::Control(ControlRecord::Hello(_)) => Err(ChannelFault::Malformed("second hello")),
            Record::Control(ControlRecord::Receipt { channel, sequences }) => {
                sender.handle_receipt(channel, sequences).map(|()| (end, None))
            }
            Record::Control(ControlRecord::Credit { channel, sequence }) => {
                sender.handle_credit(channel, sequence).map(|()| (end, None))
            }
        }
    }

    /// Handles a whole message. Returns whether it is delivered at once.
    fn handle_message(
        &mut self,
        channel: ChannelIndex,
        sequence: u16,
        body: &[u8],
        replies: &mut Replies,
    ) -> Result<bool, ChannelFault> {
        let Self { channels, ready, memory, .. } = self;
        let known = find(channels, channel)?;
        let delivery = known.handle_message(sequence, body, &mut Output { channel, ready, memory })?;
        if let Some(sequence) = known.take_credit() {
            replies.push_credit(channel, sequence);
        }
        let Delivery::Now { number } = delivery else {
            self.check_memory()?;
            return Ok(false);
        };
        if known.has_receipts {
            replies.push_receipt(channel, number)?;
        }
        Ok(true)
    }

    fn check_memory(&self) -> Result<(), ChannelFault> {
        if self.memory > self.max_memory { Err(ChannelFault::Unfinished) } else { Ok(()) }
    }
}

fn find(channels: &mut [ReceiveChannel], index: ChannelIndex) -> Result<&mut ReceiveChannel, ChannelFault> {
    channels.get_mut(usize::from(index.get())).ok_or(ChannelFault::Channel(index.get()))
}
