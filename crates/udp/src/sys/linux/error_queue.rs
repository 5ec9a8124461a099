//! The error queue of a socket: what the network reports about datagrams that were not delivered.

use super::{RawAddr, control::control_messages, message_header, options::set_int};
use rallypoint_machine::DeliveryError;
use socket2::Socket;
use std::{io, os::fd::AsRawFd, ptr};

/// Room for the control messages of one error: its header, a `sock_extended_err` and the address of the reporting machine.
#[repr(C, align(8))]
struct ErrorControlBuffer([u8; 128]);

/// Makes the system queue the network's reports about datagrams that were not delivered.
pub(crate) fn enable_error_queue(socket: &Socket, is_v4: bool) -> io::Result<()> {
    let (level, option) =
        if is_v4 { (libc::IPPROTO_IP, libc::IP_RECVERR) } else { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) };
    set_int(socket, level, option, 1)
}

/// Takes the next report from the queue, without waiting. A report without destination or reason counts as none.
pub(crate) fn recv_error(socket: &Socket) -> io::Result<Option<DeliveryError>> {
    let mut name = RawAddr::default();
    let mut control = ErrorControlBuffer([0; _]);
    let mut quoted = vec![0; DeliveryError::MAX_QUOTE];
    let mut iovec = libc::iovec { iov_base: quoted.as_mut_ptr().cast(), iov_len: quoted.len() };
    let mut header = message_header(&mut name, size_of::<RawAddr>(), &mut iovec).msg_hdr;
    header.msg_control = ptr::from_mut(&mut control).cast();
    header.msg_controllen = size_of::<ErrorControlBuffer>() as _;
    // SAFETY: the header points to a name, a buffer for the quote and a control buffer, which live until after the call, and
    // the sizes given are theirs.
    let result = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    let Ok(length) = usize::try_from(result) else {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    };
    let mut reason = None;
    // SAFETY: the system has filled the control buffer of this function up to `msg_controllen`.
    for message in unsafe { control_messages(&header) } {
        if let (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) = message.kind {
            // SAFETY: a structure of integers has no invalid bit patterns.
            let error = unsafe { message.read::<libc::sock_extended_err>() };
            reason = error.map(|error| io::Error::from_raw_os_error(error.ee_errno.cast_signed()));
        }
    }
    quoted.truncate(length);
    Ok(name.parse().zip(reason).map(|(to, error)| DeliveryError { to, error, quoted }))
}
