//! Socket options.

use socket2::Socket;
use std::{io, os::fd::AsRawFd, ptr};

/// Prepares a new UDP socket. Linux needs nothing: an unconnected socket reports no errors of others.
pub(crate) fn prepare_udp(_socket: &Socket) -> io::Result<()> {
    Ok(())
}

/// Makes the system report the address of this machine that each datagram was sent to.
pub(crate) fn enable_local_addr(socket: &Socket, is_v4: bool) -> io::Result<()> {
    let (level, option) =
        if is_v4 { (libc::IPPROTO_IP, libc::IP_PKTINFO) } else { (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO) };
    set_int(socket, level, option, 1)
}

/// Makes the system report when it received each datagram.
pub(crate) fn enable_receive_times(socket: &Socket) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Makes the system put datagrams of one sender that arrive together into one buffer (GRO).
pub(crate) fn enable_gro(socket: &Socket) -> io::Result<()> {
    set_int(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Whether the system can make several datagrams of one buffer (GSO).
pub(crate) fn supports_gso(socket: &Socket) -> bool {
    // Zero is the default: nothing is segmented unless a message asks for it.
    set_int(socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
}

/// Sets the size of the receive buffer beyond the system's limit for ordinary users, which needs a privilege.
pub(crate) fn force_recv_buffer_size(socket: &Socket, size: usize) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, libc::c_int::try_from(size).unwrap_or(libc::c_int::MAX))
}

/// Number of datagrams that the system has dropped at this socket since it was opened, because its buffer was full.
pub(crate) fn dropped(socket: &Socket) -> Option<u32> {
    /// Number of values in the answer (SK_MEMINFO_VARS).
    const VARS: usize = 9;
    /// Index of the drops among them (SK_MEMINFO_DROPS).
    const DROPS: usize = 8;
    let mut memory = [0u32; VARS];
    let mut size = size_of_val(&memory) as libc::socklen_t;
    // SAFETY: the system writes at most `size` bytes, which is the size of the array it is given.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            ptr::from_mut(&mut memory).cast(),
            &raw mut size,
        )
    };
    (result == 0).then_some(memory[DROPS])
}

/// Sets an option whose value is an int.
pub(super) fn set_int(socket: &Socket, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option takes an int, and is given the address and size of one.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, ptr::from_ref(&value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
