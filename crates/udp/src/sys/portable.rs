//! Every platform: standard non-blocking sockets, one datagram per system call.
#![allow(unsafe_code)]

#[cfg(feature = "async")]
mod async_socket;
mod datagrams;
mod options;
mod poller;

#[cfg(feature = "async")]
pub use async_socket::{AsyncListener, AsyncSocket};
pub(crate) use datagrams::{RECV_TAIL, RawAddr, recv, send};
pub(crate) use options::{
    dropped, enable_error_queue, enable_gro, enable_local_addr, enable_receive_times, force_recv_buffer_size,
    prepare_udp, recv_error, supports_gso,
};
pub use poller::Poller;
pub(crate) use poller::Waker;

use super::{BATCH_SIZE, OutgoingMessage, RecvBuffers};
