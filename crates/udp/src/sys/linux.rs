//! Linux: recvmmsg and sendmmsg with GSO, GRO and packet information, the error queue, and ppoll.
//!
//! The calls are made directly because of what the alternatives cost per datagram: quinn-udp parses control messages for
//! each one and has no sendmmsg, and nix borrows its buffers in a way that they have to be listed anew, on the heap, for
//! each call.
#![allow(unsafe_code)]

#[cfg(feature = "async")]
mod async_socket;
mod control;
mod error_queue;
mod options;
mod poller;
mod raw_addr;
mod recv;
mod send;
mod waker;

#[cfg(feature = "async")]
pub use async_socket::{AsyncListener, AsyncSocket};
pub(crate) use error_queue::{enable_error_queue, recv_error};
pub(crate) use options::{
    dropped, enable_gro, enable_local_addr, enable_receive_times, force_recv_buffer_size, prepare_udp, supports_gso,
};
pub use poller::Poller;
pub(crate) use raw_addr::RawAddr;
pub(crate) use recv::{RECV_TAIL, recv};
pub(crate) use send::send;
pub(crate) use waker::Waker;

use super::{BATCH_SIZE, BufferInfo, OutgoingMessage, RecvBuffers};
use std::ptr;

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
