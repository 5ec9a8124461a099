//! Receiving many datagrams with one system call.

use super::{
    BATCH_SIZE, BufferInfo, RawAddr, RecvBuffers,
    control::{ControlBuffer, control_messages},
    message_header,
};
use socket2::Socket;
use std::{
    io,
    mem::MaybeUninit,
    net::{Ipv4Addr, Ipv6Addr},
    os::fd::AsRawFd,
    ptr,
    time::Duration,
};

/// Bytes after the last buffer: none, because the system reports the length of a datagram that does not fit.
pub(crate) const RECV_TAIL: usize = 0;

/// Receives what has arrived, without waiting, into at most [`BATCH_SIZE`] buffers. Returns the number of filled buffers.
pub(crate) fn recv(socket: &Socket, buffers: RecvBuffers<'_>) -> io::Result<usize> {
    let RecvBuffers { buffers, stride, names, lengths, infos } = buffers;
    let count = (buffers.len() / stride.max(1)).min(BATCH_SIZE);
    let mut buffers = buffers.chunks_exact_mut(stride);
    let mut iovecs: [libc::iovec; BATCH_SIZE] = std::array::from_fn(|_| {
        // Headers from `count` on have an empty buffer, and are not handed to the system.
        let buffer = buffers.next().unwrap_or_default();
        libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() }
    });
    let mut headers: [libc::mmsghdr; BATCH_SIZE] =
        std::array::from_fn(|n| message_header(&mut names[n], size_of::<RawAddr>(), &mut iovecs[n]));
    let mut controls = [const { MaybeUninit::<ControlBuffer>::uninit() }; BATCH_SIZE];
    if infos.is_some() {
        for (header, control) in headers.iter_mut().zip(&mut controls) {
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = size_of::<ControlBuffer>() as _;
        }
    }
    // Their type is unsigned in musl.
    let flags = (libc::MSG_DONTWAIT | libc::MSG_TRUNC) as _;
    // SAFETY: every header points to one name and one iovec, every iovec to a buffer of its own, and a header with a control
    // buffer to one of its own. All of these are borrowed mutably or owned by this function until after the call, and the
    // sizes given are theirs.
    let count =
        unsafe { libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count as u32, flags, ptr::null_mut()) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    for (length, header) in lengths.iter_mut().zip(&headers[..count]) {
        *length = header.msg_len;
    }
    if let Some(infos) = infos {
        for (info, header) in infos.iter_mut().zip(&headers[..count]) {
            // SAFETY: these headers point to control buffers of this function, which the system has filled as far as their
            // `msg_controllen` now says.
            *info = unsafe { read_info(&header.msg_hdr) };
        }
    }
    Ok(count)
}

/// Reads the control messages of a buffer. If they were truncated, the buffer counts as one datagram with an unknown local
/// address: should it be several, it is longer than the protocol's datagrams and rejected as malformed.
///
/// # Safety
/// As for [`control_messages`].
unsafe fn read_info(header: &libc::msghdr) -> BufferInfo {
    let mut info = BufferInfo::default();
    // SAFETY: the caller vouches for the control buffer.
    for message in unsafe { control_messages(header) } {
        match message.kind {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                // SAFETY: an integer has no invalid bit patterns.
                let size = unsafe { message.read::<libc::c_int>() };
                info.segment_size = size.and_then(|size| u16::try_from(size).ok()).unwrap_or(0);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: a structure of integers has no invalid bit patterns.
                let time = unsafe { message.read::<libc::timespec>() };
                info.received = time
                    .and_then(|time| Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?)));
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // SAFETY: a structure of integers has no invalid bit patterns.
                let pktinfo = unsafe { message.read::<libc::in_pktinfo>() };
                info.local = pktinfo.map(|info| Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // SAFETY: a structure of integers has no invalid bit patterns.
                let pktinfo = unsafe { message.read::<libc::in6_pktinfo>() };
                info.local = pktinfo.map(|info| Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            _ => {}
        }
    }
    info
}
