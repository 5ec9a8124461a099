//! Receives many datagrams per system call.

use crate::{
    MAX_COALESCED, UdpSocket, clock,
    sys::{self, BATCH_SIZE, BufferInfo, RawAddr},
};
use rallypoint_machine::ReceivedDatagram;
use std::{
    io,
    net::Ipv4Addr,
    time::{Duration, Instant, SystemTime},
};

/// Maximum age of a received datagram whose timestamp is trusted.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Number of buffers of a batch that accepts coalesced datagrams.
const COALESCED_BUFFERS: usize = 64;

/// Buffers for datagrams that are received together, with one system call.
///
/// ```
/// use rallypoint_udp::{RecvBatch, UdpSocket};
///
/// let socket = UdpSocket::bind("127.0.0.1:0".parse()?, 1 << 20)?;
/// std::net::UdpSocket::bind("127.0.0.1:0")?.send_to(b"hello", socket.local_addr())?;
/// let mut batch = RecvBatch::new(1_500);
/// while batch.is_empty() {
///     batch.recv(&socket)?; // never waits
/// }
/// for datagram in batch.iter().filter(|datagram| !datagram.is_truncated()) {
///     assert_eq!(datagram.bytes, b"hello");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RecvBatch {
    buffers: Vec<u8>,
    max_datagram: usize,
    names: Box<[RawAddr; BATCH_SIZE]>,
    lengths: Box<[u32; BATCH_SIZE]>,
    /// Control information of each buffer, if this batch has room for it.
    infos: Option<Box<[BufferInfo; BATCH_SIZE]>>,
    /// Number of buffers that are filled.
    filled: usize,
    /// Number of datagrams in them.
    count: usize,
    /// The times of both clocks at which the batch was received, if its datagrams have times.
    clocks: Option<(Instant, Duration)>,
}

impl RecvBatch {
    /// Makes room for datagrams of at most `max_datagram` bytes. Longer ones are truncated, which
    /// [`ReceivedDatagram::is_truncated`] reports.
    #[must_use]
    pub fn new(max_datagram: usize) -> Self {
        Self::with(max_datagram, BATCH_SIZE, None)
    }

    /// Makes room for datagrams of any length, for several per buffer (see [`UdpSocket::enable_gro`]) and for their local
    /// addresses (see [`UdpSocket::enable_local_addr`]).
    #[must_use]
    pub fn with_gro() -> Self {
        // Pages that were never written to take no memory.
        Self::with(MAX_COALESCED, COALESCED_BUFFERS, Some(Box::new([BufferInfo::default(); BATCH_SIZE])))
    }

    /// Makes room for datagrams of at most `max_datagram` bytes and for the times at which they arrived (see
    /// [`UdpSocket::enable_receive_times`]).
    #[must_use]
    pub fn with_receive_times(max_datagram: usize) -> Self {
        Self::with(max_datagram, BATCH_SIZE, Some(Box::new([BufferInfo::default(); BATCH_SIZE])))
    }

    fn with(max_datagram: usize, buffers: usize, infos: Option<Box<[BufferInfo; BATCH_SIZE]>>) -> Self {
        Self {
            buffers: vec![0; buffers * stride(max_datagram) + sys::RECV_TAIL],
            max_datagram,
            names: Box::new([RawAddr::default(); BATCH_SIZE]),
            lengths: Box::new([0; BATCH_SIZE]),
            infos,
            filled: 0,
            count: 0,
            clocks: None,
        }
    }

    /// Maximum size of a datagram that is not truncated, in bytes.
    #[must_use]
    pub fn max_datagram(&self) -> usize {
        self.max_datagram
    }

    /// Receives what has arrived at a socket, without waiting, and replaces the batch's contents with it. If nothing has
    /// arrived, the batch is empty afterwards.
    ///
    /// # Errors
    /// An error of the socket. It may be about a datagram sent earlier, so the next call may succeed.
    pub fn recv(&mut self, socket: &UdpSocket) -> io::Result<()> {
        self.filled = 0;
        self.count = 0;
        let buffers = sys::RecvBuffers {
            buffers: &mut self.buffers,
            stride: stride(self.max_datagram),
            names: &mut self.names,
            lengths: &mut self.lengths,
            infos: self.infos.as_deref_mut(),
        };
        match sys::recv(socket.socket(), buffers) {
            Ok(filled) => {
                self.filled = filled;
                let has_times = self.infos.as_ref().is_some_and(|infos| filled > 0 && infos[0].received.is_some());
                self.clocks = has_times.then(clocks).flatten();
                self.count = match &self.infos {
                    None => filled,
                    Some(_) => (0..filled).map(|buffer| self.datagrams_in(buffer)).sum(),
                };
                socket.count_received(self.count);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The datagrams, in the order of their arrival.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ReceivedDatagram<'_>> + Clone {
        Iter { batch: self, buffer: 0, offset: 0, remaining: self.count }
    }

    /// Number of datagrams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no datagrams.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether all buffers were filled, so that more datagrams may wait at the socket.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.filled == (self.buffers.len() - sys::RECV_TAIL) / stride(self.max_datagram)
    }

    /// The time at which the system received a datagram, on the clock of [`Instant`]. `None` if its own clock was set meanwhile, so
    /// that the time is in the future or long ago.
    fn instant(&self, received: Duration) -> Option<Instant> {
        let (now, since_epoch) = self.clocks?;
        let age = since_epoch.checked_sub(received).filter(|age| *age < MAX_AGE)?;
        now.checked_sub(age)
    }

    fn datagrams_in(&self, buffer: usize) -> usize {
        (self.lengths[buffer] as usize).div_ceil(self.datagram_size(buffer)).max(1)
    }

    /// Size of the datagrams in a buffer; the last may be shorter.
    fn datagram_size(&self, buffer: usize) -> usize {
        match self.infos.as_ref().map_or(0, |infos| infos[buffer].segment_size) {
            0 => usize::MAX,
            size => size.into(),
        }
    }
}

#[derive(Clone)]
struct Iter<'a> {
    batch: &'a RecvBatch,
    buffer: usize,
    /// Start of the next datagram in its buffer.
    offset: usize,
    remaining: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = ReceivedDatagram<'a>;

    #[inline]
    fn next(&mut self) -> Option<ReceivedDatagram<'a>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let Self { batch, buffer, offset, .. } = *self;
        let total = batch.lengths[buffer] as usize;
        let len = batch.datagram_size(buffer).min(total - offset);
        let start = buffer * stride(batch.max_datagram) + offset;
        // Every datagram has a sender of one of the two families. If one had none, no address would be charged for it.
        let from = batch.names[buffer].parse().unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into());
        (self.buffer, self.offset) = if offset + len < total { (buffer, offset + len) } else { (buffer + 1, 0) };
        let info = batch.infos.as_ref().map(|infos| infos[buffer]).unwrap_or_default();
        let received_at = info.received.and_then(|at| batch.instant(at));
        // In range: a buffer is longer than `max_datagram`, and no more than that is taken from its start.
        let bytes = &batch.buffers[start..][..len.min(batch.max_datagram.saturating_sub(offset))];
        Some(ReceivedDatagram { from, local: info.local, received_at, bytes, len })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Iter<'_> {}

/// The current time of both clocks: the monotonic one, and that by which the system records the times of datagrams.
fn clocks() -> Option<(Instant, Duration)> {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some((clock::now(), since_epoch))
}

/// Distance between the starts of two buffers: whole cache lines, and not a multiple of a page, because then the first bytes
/// of all datagrams would compete for the same cache sets.
fn stride(max_datagram: usize) -> usize {
    let lines = max_datagram.div_ceil(64) + 1;
    64 * (lines | 1)
}
