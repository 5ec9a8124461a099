//! Sends many datagrams per system call.

use crate::{
    MAX_COALESCED, UdpSocket,
    sys::{self, OutgoingMessage},
};
use rallypoint_machine::{SocketIndex, Transmit};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    ops::Range,
};

/// Number of bytes after which no more are taken from a machine before they are sent: more would not stay in the cache.
const MAX_BYTES: usize = 256 << 10;

/// Maximum number of datagrams in one buffer that every version of the kernel can segment (GSO).
const MAX_SEGMENTS: usize = 64;

/// Datagrams that are sent together, with few system calls.
///
/// ```
/// use rallypoint_machine::Transmit;
/// use rallypoint_udp::{SendBatch, UdpSocket};
///
/// let receiver = std::net::UdpSocket::bind("127.0.0.1:0")?;
/// let to = receiver.local_addr()?;
/// let socket = UdpSocket::bind("127.0.0.1:0".parse()?, 1 << 20)?;
/// let mut messages = ["one", "two"].into_iter();
/// let mut batch = SendBatch::default();
/// // The closure is usually the `poll_transmit` of a machine.
/// batch.fill(128, |out| {
///     let message = messages.next()?;
///     out.extend_from_slice(message.as_bytes());
///     Some(Transmit::one(to, message.len()))
/// });
/// assert_eq!(batch.flush(&[&socket]), None); // no socket was full
/// let mut buffer = [0; 16];
/// assert_eq!(receiver.recv(&mut buffer)?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct SendBatch {
    bytes: Vec<u8>,
    queue: Vec<Queued>,
    /// Number of entries of the queue that are sent.
    sent: usize,
}

/// One datagram, or several for the same destination.
struct Queued {
    to: SocketAddr,
    /// The socket to send from, if the machine has chosen one.
    socket: Option<SocketIndex>,
    /// Where the unsent bytes are in the batch's buffer.
    bytes: Range<usize>,
    /// Size of each datagram; the last may be shorter.
    size: usize,
}

impl SendBatch {
    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent == self.queue.len()
    }

    /// Takes over what a machine has to send: `poll` is its `poll_transmit`. At most `max` datagrams are taken, and a few
    /// more if one [`Transmit`] holds several.
    pub fn fill(&mut self, max: usize, mut poll: impl FnMut(&mut Vec<u8>) -> Option<Transmit>) {
        if self.is_empty() {
            self.bytes.clear();
            self.queue.clear();
            self.sent = 0;
        }
        let mut count = self.queue[self.sent..].iter().map(Queued::count).sum::<usize>();
        while count < max && self.bytes.len() < MAX_BYTES {
            let start = self.bytes.len();
            let Some(transmit) = poll(&mut self.bytes) else { break };
            let end = (start + transmit.len).min(self.bytes.len());
            let size = transmit.segment.unwrap_or(transmit.len).max(1);
            // Split into parts that the system accepts in one message.
            let part = size * MAX_SEGMENTS.min(MAX_COALESCED / size).max(1);
            for at in (start..end).step_by(part) {
                let queued = Queued { to: transmit.to, socket: transmit.from, bytes: at..end.min(at + part), size };
                count += queued.count();
                self.queue.push(queued);
            }
        }
    }

    /// Sends as much as the system takes now, each datagram from the socket that it names, or else from the first one of its
    /// family. If a socket's buffer is
    /// full, returns which, and keeps the rest for the next call.
    pub fn flush(&mut self, sockets: &[impl AsRef<UdpSocket>]) -> Option<SocketIndex> {
        self.flush_from(sockets, |_| None)
    }

    /// Like [`flush`](Self::flush), and `local` chooses the address of this machine to send from, per destination. `None`
    /// leaves the choice to the system.
    pub fn flush_from(
        &mut self,
        sockets: &[impl AsRef<UdpSocket>],
        local: impl Fn(&SocketAddr) -> Option<IpAddr>,
    ) -> Option<SocketIndex> {
        let mut failed_once = None;
        while let Some(first) = self.queue.get(self.sent) {
            let to = first.to;
            let from = first.socket;
            let is_single = first.count() == 1;
            let is_same_socket = |queued: &&Queued| queued.to.is_ipv4() == to.is_ipv4() && queued.socket == from;
            let unsent = self.queue[self.sent..].iter().take_while(is_same_socket);
            let is_of_family = |socket: &_| AsRef::<UdpSocket>::as_ref(socket).local_addr().is_ipv4() == to.is_ipv4();
            let chosen = from.map(|from| from.0).filter(|index| sockets.get(*index).is_some_and(is_of_family));
            let Some(index) = chosen.or_else(|| sockets.iter().position(is_of_family)) else {
                tracing::debug!(%to, "no socket of this address family to send from");
                self.sent += unsent.count();
                continue;
            };
            let socket = sockets[index].as_ref();
            let gso = socket.is_gso_enabled();
            let bytes = &self.bytes;
            let messages = unsent.flat_map(|queued| {
                let from = local(&queued.to);
                queued.messages(gso).map(move |range| queued.message(bytes, range, from))
            });
            match sys::send(socket.socket(), messages) {
                Ok(count) => self.advance(count, gso),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(SocketIndex(index)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The error may be about an earlier datagram (see `UdpSocket::enable_error_queue`). Such an error is
                // reported only once, so the datagrams are sent once more.
                Err(_) if failed_once != Some(first.bytes.start) => failed_once = Some(first.bytes.start),
                Err(error) if gso && !is_single => {
                    // Some network cards, tunnels and filters cannot segment: the datagrams are then sent one by one.
                    tracing::debug!(%to, %error, "segmentation offload failed; sending datagrams one by one");
                    socket.disable_gso();
                }
                Err(error) => {
                    // No route, a firewall, too long: the next datagram may still be sent.
                    tracing::debug!(%to, %error, "a datagram cannot be sent");
                    self.advance(1, gso);
                }
            }
        }
        None
    }

    /// Marks messages as sent.
    fn advance(&mut self, count: usize, gso: bool) {
        for _ in 0..count {
            let Some(queued) = self.queue.get_mut(self.sent) else { return };
            queued.bytes.start = if gso { queued.bytes.end } else { queued.bytes.start + queued.size };
            if queued.bytes.start >= queued.bytes.end {
                self.sent += 1;
            }
        }
    }
}

impl Queued {
    /// Number of datagrams.
    fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.size)
    }

    /// Splits the bytes into messages for the system: one for all datagrams with segmentation offload, otherwise one each.
    fn messages(&self, gso: bool) -> impl Iterator<Item = Range<usize>> {
        let Range { start, end } = self.bytes.clone();
        let step = if gso { self.bytes.len() } else { self.size };
        (start..end).step_by(step).map(move |at| at..end.min(at + step))
    }

    fn message<'a>(&self, bytes: &'a [u8], range: Range<usize>, from: Option<IpAddr>) -> OutgoingMessage<'a> {
        let segment_size = if range.len() > self.size { u16::try_from(self.size).ok() } else { None };
        OutgoingMessage { to: self.to, from, bytes: &bytes[range], segment_size }
    }
}
