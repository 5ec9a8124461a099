//! The platform layer: system calls that the standard library and socket2 do not have. All unsafe code of the workspace is
//! below this module.
//!
//! The rest of the crate uses only the names exported here. There are two implementations: `linux` moves many datagrams per
//! system call, and `portable` needs only what every platform has. `--cfg rallypoint_portable` selects the portable one on
//! Linux, too, where the tests run it.
//!
//! | | linux | portable |
//! |---|---|---|
//! | datagrams | recvmmsg, sendmmsg, GSO, GRO | one per call |
//! | local addresses, receive times, delivery errors, drops | reported | unknown (a refusal: to connected sockets) |
//! | waiting | ppoll, a socket pair | polling: epoll, kqueue, IOCP |
//! | async | `AsyncFd` | `try_io` of tokio's sockets |

#[cfg(all(target_os = "linux", not(rallypoint_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(rallypoint_portable))))]
mod portable;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(all(target_os = "linux", not(rallypoint_portable)))]
pub use linux::*;
#[cfg(not(all(target_os = "linux", not(rallypoint_portable))))]
pub use portable::*;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// Number of datagrams that are received or sent together. On Linux it is their number per system call: with this many, the
/// cost of the call itself no longer matters.
pub const BATCH_SIZE: usize = 128;

/// Control information about a buffer that the system has filled.
#[derive(Clone, Copy, Default)]
pub(crate) struct BufferInfo {
    /// Size of each datagram in the buffer (the last may be shorter), or 0 if there is only one.
    pub segment_size: u16,
    /// Address of this machine that the datagrams were sent to, if the socket reports it.
    pub local: Option<IpAddr>,
    /// When the system received the buffer, as time since the Unix epoch, if the socket reports it.
    pub received: Option<Duration>,
}

/// The memory that [`recv`] fills.
pub(crate) struct RecvBuffers<'a> {
    /// All buffers, one after another, and [`RECV_TAIL`] more bytes.
    pub buffers: &'a mut [u8],
    /// Size of each buffer, in bytes.
    pub stride: usize,
    /// Senders.
    pub names: &'a mut [RawAddr; BATCH_SIZE],
    /// Real lengths, also of datagrams that did not fit.
    pub lengths: &'a mut [u32; BATCH_SIZE],
    /// Control information, if it is wanted.
    pub infos: Option<&'a mut [BufferInfo; BATCH_SIZE]>,
}

/// A datagram to send, or several for one destination.
pub(crate) struct OutgoingMessage<'a> {
    pub to: SocketAddr,
    /// Address of this machine to send from; `None` leaves the choice to the system.
    pub from: Option<IpAddr>,
    pub bytes: &'a [u8],
    /// If set, the bytes are several datagrams of this size; the last may be shorter.
    pub segment_size: Option<u16>,
}
