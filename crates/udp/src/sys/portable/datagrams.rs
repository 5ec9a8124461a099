//! Receiving and sending datagrams, one per system call.

use super::{BATCH_SIZE, OutgoingMessage, RecvBuffers};
use crate::MAX_COALESCED;
use socket2::Socket;
use std::{io, mem::MaybeUninit, net::SocketAddr};

/// Bytes after the last buffer. A datagram is received into everything from its buffer on, because not every system reports
/// the length, or the sender, of one that does not fit. The buffers that a long one runs over are filled later.
pub(crate) const RECV_TAIL: usize = MAX_COALESCED;

/// The sender of a datagram.
#[derive(Clone, Copy, Default)]
pub(crate) struct RawAddr(Option<SocketAddr>);

impl RawAddr {
    /// The address, if it is of one of the two families.
    #[inline]
    pub(crate) fn parse(&self) -> Option<SocketAddr> {
        self.0
    }
}

/// Receives what has arrived, without waiting, into at most [`BATCH_SIZE`] buffers. Returns the number of filled buffers.
pub(crate) fn recv(socket: &Socket, buffers: RecvBuffers<'_>) -> io::Result<usize> {
    let RecvBuffers { buffers, stride, names, lengths, infos: _none } = buffers;
    let count = (buffers.len().saturating_sub(RECV_TAIL) / stride.max(1)).min(BATCH_SIZE);
    for n in 0..count {
        let buffer = &mut buffers[n * stride..];
        let room = buffer.len().min(MAX_COALESCED);
        // SAFETY: the bytes are initialised and borrowed mutably, and socket2 promises not to write uninitialised ones.
        let buffer = unsafe { &mut *(&raw mut buffer[..room] as *mut [MaybeUninit<u8>]) };
        match socket.recv_from(buffer) {
            Ok((length, from)) => {
                names[n] = RawAddr(from.as_socket());
                lengths[n] = length as u32;
            }
            // The error is reported by the next call, if it lasts.
            Err(_) if n > 0 => return Ok(n),
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Sends at most [`BATCH_SIZE`] messages, without waiting. Returns the number of messages sent: if it is less than given, the
/// next one could not be sent. The address to send from is the system's choice.
pub(crate) fn send<'a>(socket: &Socket, messages: impl IntoIterator<Item = OutgoingMessage<'a>>) -> io::Result<usize> {
    let mut sent = 0;
    for OutgoingMessage { to, from: _ignored, bytes, segment_size } in messages.into_iter().take(BATCH_SIZE) {
        debug_assert!(segment_size.is_none(), "segmentation is not supported");
        match socket.send_to(bytes, &to.into()) {
            Ok(_) => sent += 1,
            Err(_) if sent > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
