//! Many datagrams per system call.

use crate::{
    UdpSocket,
    sys::{self, BATCH, RawAddr},
};
use rallypoint_machine::Transmit;
use std::{io, net::SocketAddr, ops::Range};

/// Datagrams that arrived together.
pub struct RecvBatch {
    buffers: Vec<u8>,
    max: usize,
    names: Box<[RawAddr; BATCH]>,
    lengths: Box<[u32; BATCH]>,
    count: usize,
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// Its bytes: not all of them if it was longer than the batch's datagrams can be.
    pub bytes: &'a [u8],
    /// How long it was.
    pub len: usize,
}

impl RecvBatch {
    /// Room for datagrams of at most `max` bytes. Longer ones are cut, which [`Received::is_cut`] tells.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            buffers: vec![0; BATCH * stride(max)],
            max,
            names: Box::new([RawAddr::default(); BATCH]),
            lengths: Box::new([0; BATCH]),
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
        self.count = 0;
        match sys::receive(socket.fd(), &mut self.buffers, stride(self.max), &mut self.names, &mut self.lengths) {
            Ok(count) => {
                self.count = count;
                socket.count_received(count);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The datagrams, in the order in which they arrived.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Received<'_>> + Clone {
        let buffers = self.buffers.chunks_exact(stride(self.max));
        let each = buffers.zip(&self.names[..self.count]).zip(&self.lengths[..self.count]);
        each.map(|((buffer, name), &len)| {
            let len = len as usize;
            // A datagram always has a sender of one of the two families. If it had not, nobody would be charged for it.
            let from = name.parse().unwrap_or_else(|| (std::net::Ipv4Addr::UNSPECIFIED, 0).into());
            Received { from, bytes: &buffer[..len.min(self.max)], len }
        })
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
}

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

struct Part {
    to: SocketAddr,
    bytes: Range<usize>,
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
        while self.parts.len() - self.done < max {
            let start = self.bytes.len();
            let Some(transmit) = poll(&mut self.bytes) else { break };
            let end = (start + transmit.len).min(self.bytes.len());
            let size = transmit.segment.unwrap_or(transmit.len).max(1);
            let starts = (start..end).step_by(size);
            self.parts.extend(starts.map(|at| Part { to: transmit.to, bytes: at..end.min(at + size) }));
        }
    }

    /// Sends as much as the system takes now, each datagram from the first socket of its family. What remains is there
    /// for the next call: then a socket had no room, and this says which.
    pub fn flush(&mut self, sockets: &[impl AsRef<UdpSocket>]) -> Option<usize> {
        let mut failed = None;
        while let Some(part) = self.parts.get(self.done) {
            let is_v4 = part.to.is_ipv4();
            let left = self.parts[self.done..].iter().take_while(|part| part.to.is_ipv4() == is_v4);
            let Some(socket) = sockets.iter().position(|socket| socket.as_ref().local_addr().is_ipv4() == is_v4) else {
                tracing::debug!(to = %part.to, "there is no socket of this family to send from");
                self.done += left.count();
                continue;
            };
            let datagrams = left.map(|part| (part.to, &self.bytes[part.bytes.clone()]));
            match sys::send(sockets[socket].as_ref().fd(), datagrams) {
                Ok(count) => self.done += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(socket),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It may be about an earlier datagram (see `UdpSocket::keep_errors`); then it is told only once.
                Err(_) if failed != Some(self.done) => failed = Some(self.done),
                Err(error) => {
                    // No route, a firewall, too long: the next one may have more luck.
                    tracing::debug!(to = %part.to, %error, "a datagram cannot be sent");
                    self.done += 1;
                }
            }
        }
        None
    }
}
