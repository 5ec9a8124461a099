//! Linux: recvmmsg and sendmmsg with GSO, GRO and packet information, the error queue, and ppoll.
//!
//! The calls are made directly because of what the alternatives cost per datagram: quinn-udp parses control messages for
//! each one and has no sendmmsg, and nix borrows its buffers in a way that they have to be listed anew, on the heap, for
//! each call.
#![allow(unsafe_code)]

mod allocator;
mod control;
mod error_queue;
mod options;
mod poll;
mod raw_addr;
#[cfg(feature = "async")]
mod readiness;
mod recv;
mod send;
mod sigpipe;
mod waker;

pub use allocator::bound_free_memory;
pub(crate) use error_queue::{enable_error_queue, recv_error};
pub(crate) use options::{
    dropped, enable_gro, enable_local_addr, enable_receive_times, force_recv_buffer_size, supports_gso,
};
pub use poll::{PollFd, poll};
pub(crate) use raw_addr::RawAddr;
#[cfg(feature = "async")]
pub use readiness::{register_socket, register_udp};
pub(crate) use recv::{BufferInfo, RecvBuffers, recv};
pub(crate) use send::{OutgoingMessage, send};
pub use sigpipe::is_sigpipe_ignored;
pub(crate) use waker::Waker;

use std::ptr;

/// Number of datagrams per system call. With this many, the cost of the call itself no longer matters.
pub const BATCH_SIZE: usize = 128;

/// A message header with one name and one buffer, and without control data.
///
/// The header points to its arguments: a caller that hands it to the system has to keep them borrowed until after the call.
fn message_header(name: &mut RawAddr, name_size: usize, iovec: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: all zeros are a valid header: one without name, buffers and control data.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_name = ptr::from_mut(name).cast();
    header.msg_hdr.msg_namelen = name_size as libc::socklen_t;
    header.msg_hdr.msg_iov = iovec;
    header.msg_hdr.msg_iovlen = 1;
    header
}
