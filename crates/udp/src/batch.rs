//! Many datagrams per system call.

use crate::{
    UdpSocket,
    sys::{self, BATCH, Note, Piece, RawAddr},
};
use rallypoint_machine::Transmit;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    ops::Range,
};

/// The longest that the system makes of datagrams which it hands over in one piece.
const LONGEST_PIECE: usize = 65_535;

/// How many such pieces are taken per system call.
const PIECES: usize = 64;

/// So many bytes are taken from a machine before they are sent: more would not stay in the cache.
const MOST_BYTES: usize = 256 << 10;

/// The most datagrams that the system makes of one buffer, whatever its version.
const MOST_SEGMENTS: usize = 64;

/// Datagrams that arrived together.
pub struct RecvBatch {
    buffers: Vec<u8>,
    max: usize,
    names: Box<[RawAddr; BATCH]>,
    lengths: Box<[u32; BATCH]>,
    /// What the system tells of each buffer, if there is room for it.
    notes: Option<Box<[Note; BATCH]>>,
    /// How many buffers are filled.
    filled: usize,
    /// How many datagrams are in them.
    count: usize,
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// The address of this machine that it was sent to, if that is known: see [`UdpSocket::tell_local`].
    pub local: Option<IpAddr>,
    /// Its bytes: not all of them if it was longer than the batch's datagrams can be.
    pub bytes: &'a [u8],
    /// How long it was.
    pub len: usize,
}

impl RecvBatch {
    /// Room for datagrams of at most `max` bytes. Longer ones are cut, which [`Received::is_cut`] tells.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self::with(max, BATCH, None)
    }

    /// Room for datagrams of any length, also for many in one piece: see [`UdpSocket::coalesce`].
    #[must_use]
    pub fn coalesced() -> Self {
        // Memory that was not written to yet costs nothing.
        Self::with(LONGEST_PIECE, PIECES, Some(Box::new([Note::default(); BATCH])))
    }

    fn with(max: usize, buffers: usize, notes: Option<Box<[Note; BATCH]>>) -> Self {
        Self {
            buffers: vec![0; buffers * stride(max)],
            max,
            names: Box::new([RawAddr::default(); BATCH]),
            lengths: Box::new([0; BATCH]),
            notes,
            filled: 0,
            count: 0,
        }
    }

    /// The longest datagram that is not cut.
    #[must_use]
    pub fn max(&self) -> usize {
        self.max
    }

    /// Takes what has arrived at a socket, without waiting, in place of what was here before. If nothing has arrived,
    /// there is nothing in the batch.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<()> {
        (self.filled, self.count) = (0, 0);
        let slots = sys::Slots {
            buffers: &mut self.buffers,
            buffer_size: stride(self.max),
            names: &mut self.names,
            lengths: &mut self.lengths,
            notes: self.notes.as_deref_mut(),
        };
        match sys::receive(socket.fd(), slots) {
            Ok(filled) => {
                self.filled = filled;
                self.count = match &self.notes {
                    None => filled,
                    Some(_) => (0..filled).map(|slot| self.datagrams_in(slot)).sum(),
                };
                socket.count_received(self.count);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The datagrams, in the order in which they arrived.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Received<'_>> + Clone {
        Iter { batch: self, slot: 0, at: 0, left: self.count }
    }

    /// How many datagrams there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there was room for more, so that nothing waits at the socket.
    #[must_use]
    pub fn had_room(&self) -> bool {
        self.filled < self.buffers.len() / stride(self.max)
    }

    fn datagrams_in(&self, slot: usize) -> usize {
        (self.lengths[slot] as usize).div_ceil(self.size_in(slot)).max(1)
    }

    /// How long the datagrams of a slot are.
    fn size_in(&self, slot: usize) -> usize {
        match self.notes.as_ref().map_or(0, |notes| notes[slot].segment) {
            0 => usize::MAX,
            size => size.into(),
        }
    }
}

#[derive(Clone)]
struct Iter<'a> {
    batch: &'a RecvBatch,
    slot: usize,
    /// Where the next datagram begins in its slot.
    at: usize,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Received<'a>;

    #[inline]
    fn next(&mut self) -> Option<Received<'a>> {
        self.left = self.left.checked_sub(1)?;
        let Self { batch, slot, at, .. } = *self;
        let whole = batch.lengths[slot] as usize;
        let len = batch.size_in(slot).min(whole - at);
        let start = slot * stride(batch.max) + at;
        // A datagram always has a sender of one of the two families. If it had not, nobody would be charged for it.
        let from = batch.names[slot].parse().unwrap_or_else(|| (std::net::Ipv4Addr::UNSPECIFIED, 0).into());
        (self.slot, self.at) = if at + len < whole { (slot, at + len) } else { (slot + 1, 0) };
        let local = batch.notes.as_ref().and_then(|notes| notes[slot].local);
        Some(Received { from, local, bytes: &batch.buffers[start..][..len.min(batch.max.saturating_sub(at))], len })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl Received<'_> {
    /// Whether some of its bytes are missing because it was too long.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.len > self.bytes.len()
    }
}

/// How far apart the buffers are: whole cache lines, and not a multiple of a page, because then all datagrams' first bytes
/// would be in each other's way in the cache.
fn stride(max: usize) -> usize {
    let lines = max.div_ceil(64) + 1;
    64 * (lines | 1)
}

/// Datagrams that go out together.
#[derive(Default)]
pub struct SendBatch {
    bytes: Vec<u8>,
    parts: Vec<Part>,
    /// How many parts are gone.
    done: usize,
}

/// One datagram, or several for the same receiver.
struct Part {
    to: SocketAddr,
    bytes: Range<usize>,
    /// They have this size, but for the last, which may be shorter.
    size: usize,
}

impl SendBatch {
    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.done == self.parts.len()
    }

    /// Takes over what a machine wants to send: `poll` is its `poll_transmit`. At most `max` datagrams, and a few more if
    /// one transmit holds several.
    pub fn fill(&mut self, max: usize, mut poll: impl FnMut(&mut Vec<u8>) -> Option<Transmit>) {
        if self.is_empty() {
            self.bytes.clear();
            self.parts.clear();
            self.done = 0;
        }
        let mut count = self.parts[self.done..].iter().map(Part::count).sum::<usize>();
        while count < max && self.bytes.len() < MOST_BYTES {
            let start = self.bytes.len();
            let Some(transmit) = poll(&mut self.bytes) else { break };
            let end = (start + transmit.len).min(self.bytes.len());
            let size = transmit.segment.unwrap_or(transmit.len).max(1);
            // In pieces that the system takes.
            let piece = size * MOST_SEGMENTS.min(LONGEST_PIECE / size).max(1);
            for at in (start..end).step_by(piece) {
                let part = Part { to: transmit.to, bytes: at..end.min(at + piece), size };
                count += part.count();
                self.parts.push(part);
            }
        }
    }

    /// Sends as much as the system takes now, each datagram from the first socket of its family. What remains is there
    /// for the next call: then a socket had no room, and this says which.
    pub fn flush(&mut self, sockets: &[impl AsRef<UdpSocket>]) -> Option<usize> {
        self.flush_from(sockets, |_| None)
    }

    /// The same, but `local` says from which address of this machine to send to each receiver, if it matters.
    pub fn flush_from(
        &mut self,
        sockets: &[impl AsRef<UdpSocket>],
        local: impl Fn(&SocketAddr) -> Option<IpAddr>,
    ) -> Option<usize> {
        let mut failed = None;
        while let Some(part) = self.parts.get(self.done) {
            let (to, is_one) = (part.to, part.count() == 1);
            let family = |part: &&Part| part.to.is_ipv4() == to.is_ipv4();
            let left = self.parts[self.done..].iter().take_while(family);
            let Some(index) = sockets.iter().position(|socket| socket.as_ref().local_addr().is_ipv4() == to.is_ipv4())
            else {
                tracing::debug!(%to, "there is no socket of this family to send from");
                self.done += left.count();
                continue;
            };
            let socket = sockets[index].as_ref();
            let whole = socket.segments();
            let bytes = &self.bytes;
            let pieces = left.flat_map(|part| {
                let from = local(&part.to);
                part.pieces(whole).map(move |range| part.piece(bytes, range, from))
            });
            match sys::send(socket.fd(), pieces) {
                Ok(count) => self.advance(count, whole),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(index),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It may be about an earlier datagram (see `UdpSocket::keep_errors`); then it is told only once.
                Err(_) if failed != Some(part.bytes.start) => failed = Some(part.bytes.start),
                Err(error) if whole && !is_one => {
                    // Some network cards, tunnels and filters cannot: then one by one.
                    tracing::debug!(%to, %error, "datagrams cannot be sent in one piece");
                    socket.stop_segmenting();
                }
                Err(error) => {
                    // No route, a firewall, too long: the next one may have more luck.
                    tracing::debug!(%to, %error, "a datagram cannot be sent");
                    self.advance(1, whole);
                }
            }
        }
        None
    }

    /// So many pieces are gone.
    fn advance(&mut self, count: usize, whole: bool) {
        for _ in 0..count {
            let Some(part) = self.parts.get_mut(self.done) else { return };
            part.bytes.start = if whole { part.bytes.end } else { part.bytes.start + part.size };
            if part.bytes.start >= part.bytes.end {
                self.done += 1;
            }
        }
    }
}

impl Part {
    /// How many datagrams it is.
    fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.size)
    }

    /// What of it goes out at once: all of it, or each datagram by itself.
    fn pieces(&self, whole: bool) -> impl Iterator<Item = Range<usize>> {
        let (Range { start, end }, step) = (self.bytes.clone(), if whole { self.bytes.len() } else { self.size });
        (start..end).step_by(step).map(move |at| at..end.min(at + step))
    }

    fn piece<'a>(&self, bytes: &'a [u8], range: Range<usize>, from: Option<IpAddr>) -> Piece<'a> {
        let segment = if range.len() > self.size { u16::try_from(self.size).ok() } else { None };
        Piece { to: self.to, from, bytes: &bytes[range], segment }
    }
}
