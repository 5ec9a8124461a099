//! What the receiver of a session reports to the peer: receipts and credits.

use super::{ChannelFault, ChannelIndex};
use rallypoint_wire::session::channels::RecordWriter;
use std::collections::VecDeque;

/// Maximum number of receipts of a channel that wait to be sent. A peer that acknowledges nothing could make them pile up.
const MAX_PENDING_RECEIPTS: usize = 1 << 15;

/// Reports of the receiver to the peer.
#[derive(Debug)]
pub(super) struct Replies {
    receipts: Vec<VecDeque<u16>>,
    credits: VecDeque<(ChannelIndex, u16)>,
    /// Number of receipts and credits.
    count: usize,
}

impl Replies {
    pub fn new(channels: usize) -> Self {
        Self { receipts: vec![VecDeque::new(); channels], credits: VecDeque::new(), count: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.receipts.iter_mut().for_each(VecDeque::clear);
        self.credits.clear();
        self.count = 0;
    }

    /// Bytes of memory that receipts take.
    pub fn memory(&self) -> usize {
        self.count * size_of::<u16>()
    }

    /// Everything before this position of a channel has arrived.
    pub fn push_credit(&mut self, channel: ChannelIndex, sequence: u16) {
        if let Some((_, known)) = self.credits.iter_mut().find(|(other, _)| *other == channel) {
            *known = sequence;
        } else {
            self.credits.push_back((channel, sequence));
            self.count += 1;
        }
    }

    /// A message at this position of a channel is handed to the application.
    pub fn push_receipt(&mut self, channel: ChannelIndex, number: u64) -> Result<(), ChannelFault> {
        let Some(receipts) = self.receipts.get_mut(usize::from(channel.get())) else { return Ok(()) };
        if receipts.len() >= MAX_PENDING_RECEIPTS {
            return Err(ChannelFault::Receipts);
        }
        receipts.push_back(number as u16);
        self.count += 1;
        Ok(())
    }

    /// Adds what fits to a payload.
    pub fn emit(&mut self, writer: &mut RecordWriter) {
        while let Some(&(channel, sequence)) = self.credits.front()
            && writer.credit(channel, sequence)
        {
            self.credits.pop_front();
            self.count -= 1;
        }
        if self.count == 0 {
            return;
        }
        for (position, receipts) in (0..).zip(&mut self.receipts) {
            let Some(channel) = ChannelIndex::new(position).filter(|_| !receipts.is_empty()) else { continue };
            let written = writer.receipt(channel, receipts.iter().copied());
            receipts.drain(..written);
            self.count -= written;
        }
    }
}
