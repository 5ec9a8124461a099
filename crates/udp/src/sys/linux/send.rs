//! Sending many datagrams with one system call.

use super::{
    BATCH_SIZE, OutgoingMessage, RawAddr,
    control::{ControlBuffer, push_control},
    message_header,
};
use socket2::Socket;
use std::{io, mem::MaybeUninit, net::IpAddr, os::fd::AsRawFd, ptr};

/// Sends at most [`BATCH_SIZE`] messages, without waiting. Returns the number of messages sent: if it is less than given, the
/// next one could not be sent.
pub(crate) fn send<'a>(socket: &Socket, messages: impl IntoIterator<Item = OutgoingMessage<'a>>) -> io::Result<usize> {
    let mut names = [RawAddr::default(); BATCH_SIZE];
    let mut iovecs = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH_SIZE];
    let mut name_sizes = [0; BATCH_SIZE];
    let mut options = [(None, None); BATCH_SIZE];
    let mut count = 0;
    for (n, message) in messages.into_iter().take(BATCH_SIZE).enumerate() {
        let OutgoingMessage { to, from, bytes, segment_size } = message;
        (names[n], name_sizes[n]) = RawAddr::emit(to);
        iovecs[n] = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        options[n] = (segment_size, from);
        count = n + 1;
    }
    let mut headers: [libc::mmsghdr; BATCH_SIZE] =
        std::array::from_fn(|n| message_header(&mut names[n], name_sizes[n], &mut iovecs[n]));
    let mut controls = [const { MaybeUninit::<ControlBuffer>::uninit() }; BATCH_SIZE];
    for (n, (segment_size, from)) in options.into_iter().enumerate().take(count) {
        if segment_size.is_some() || from.is_some() {
            let control = controls[n].write(ControlBuffer::zeroed());
            write_options(&mut headers[n].msg_hdr, control, segment_size, from);
        }
    }
    // Their type is unsigned in musl.
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _;
    // SAFETY: the first `count` headers point to one name and one iovec each, these iovecs to the bytes of a datagram, and
    // those with a control buffer to one that was filled. All of them live until after the call, the sizes are theirs, and
    // the system does not write to what it sends.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count as u32, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Asks the system to split the bytes into datagrams of this size, and to send them from this address. The header points to
/// the control buffer afterwards.
fn write_options(
    header: &mut libc::msghdr,
    control: &mut ControlBuffer,
    segment_size: Option<u16>,
    from: Option<IpAddr>,
) {
    header.msg_control = ptr::from_mut(control).cast();
    header.msg_controllen = 0;
    if let Some(size) = segment_size {
        // SAFETY: the header points to a control buffer that is borrowed mutably, and that is empty.
        unsafe { push_control(header, libc::SOL_UDP, libc::UDP_SEGMENT, size) };
    }
    match from {
        Some(IpAddr::V4(ip)) => {
            let any = libc::in_addr { s_addr: 0 };
            let ipi_spec_dst = libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
            let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst, ipi_addr: any };
            // SAFETY: as above, with at most the message before.
            unsafe { push_control(header, libc::IPPROTO_IP, libc::IP_PKTINFO, info) };
        }
        Some(IpAddr::V6(ip)) => {
            let ipi6_addr = libc::in6_addr { s6_addr: ip.octets() };
            let info = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 };
            // SAFETY: as above, with at most the message before.
            unsafe { push_control(header, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info) };
        }
        None => {}
    }
}
