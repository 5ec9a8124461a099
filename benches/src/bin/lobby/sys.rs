//! System calls that the standard library and socket2 do not have.
//!
//! Independent of `rallypoint-udp`, so that the measured code is not measured with itself.
#![allow(unsafe_code)]

use socket2::Socket;
use std::{
    io,
    net::{Ipv4Addr, UdpSocket},
    os::fd::AsRawFd,
    ptr,
};

/// Number of datagrams per system call.
pub const BATCH: usize = 128;

/// Size in bytes of the buffer for each counted datagram.
const BUFFER: usize = 4_096 + 64;

/// Receives and counts datagrams forever, the minimum that a program can do with them. Calls `report` so rarely that it never
/// happens in practice; it keeps the count from being optimized away.
pub fn count_datagrams(socket: &UdpSocket, mut report: impl FnMut(u64)) -> io::Error {
    let mut buffers = vec![[0u8; BUFFER]; BATCH];
    let mut iovecs: Vec<libc::iovec> = buffers
        .iter_mut()
        .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: BUFFER })
        .collect();
    let mut headers: Vec<libc::mmsghdr> = iovecs.iter_mut().map(header).collect();
    let mut count = 0u64;
    let mut reported = 0;
    loop {
        // SAFETY: every header points to one iovec and every iovec to its own buffer of the given size. All of them are in
        // vectors that are neither moved nor dropped until this function returns.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_WAITFORONE,
                ptr::null_mut(),
            )
        };
        match u64::try_from(received) {
            Ok(received) => count += received,
            Err(_) => return io::Error::last_os_error(),
        }
        if count >> 40 > reported {
            reported = count >> 40;
            report(count);
        }
    }
}

/// Sends at most [`BATCH`] datagrams from a connected socket, each from its own source address (any of this machine). Blocks
/// until all are sent.
pub fn send_from(socket: &UdpSocket, datagrams: &[(Ipv4Addr, &[u8])]) -> io::Result<()> {
    let mut controls = [Control::default(); BATCH];
    let mut iovecs = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
    let count = datagrams.len().min(BATCH);
    for ((source, bytes), (control, iovec)) in datagrams.iter().zip(controls.iter_mut().zip(&mut iovecs)) {
        *control = Control::from(*source);
        *iovec = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    }
    let mut headers: [libc::mmsghdr; BATCH] = std::array::from_fn(|n| {
        let mut header = header(&mut iovecs[n]);
        header.msg_hdr.msg_control = ptr::from_mut(&mut controls[n]).cast();
        header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        header
    });
    let mut done = 0;
    while done < count {
        let rest = &mut headers[done..count];
        // SAFETY: every header of `rest` points to one control message and one iovec, and these iovecs to the bytes of a
        // datagram. All of them live until after the call, and the system does not write to what it sends.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as u32, 0) };
        match usize::try_from(sent) {
            Ok(sent) => done += sent,
            Err(_) => return Err(io::Error::last_os_error()),
        }
    }
    Ok(())
}

/// A control message that selects the source address.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control {
    header: libc::cmsghdr,
    info: libc::in_pktinfo,
}

impl Default for Control {
    fn default() -> Self {
        Self::from(Ipv4Addr::UNSPECIFIED)
    }
}

impl From<Ipv4Addr> for Control {
    fn from(source: Ipv4Addr) -> Self {
        let address = |ip: Ipv4Addr| libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
        Self {
            header: libc::cmsghdr {
                cmsg_len: size_of::<libc::cmsghdr>() + size_of::<libc::in_pktinfo>(),
                cmsg_level: libc::IPPROTO_IP,
                cmsg_type: libc::IP_PKTINFO,
            },
            info: libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: address(source),
                ipi_addr: address(Ipv4Addr::UNSPECIFIED),
            },
        }
    }
}

fn header(iovec: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: all zeros are a valid header: one without name, buffers and control data.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_iov = iovec;
    header.msg_hdr.msg_iovlen = 1;
    header
}

/// Sets the size of the receive buffer, beyond the limit of the system if permitted.
pub fn set_receive_buffer(socket: &UdpSocket, size: libc::c_int) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, size))
}

/// Delays the selection of the source port until connect, so that ports are unique per destination only.
pub fn choose_port_late(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Wakes a reader only when this number of bytes has arrived, or at the end of the stream.
pub fn wake_at(socket: &Socket, bytes: usize) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes.try_into().unwrap_or(libc::c_int::MAX))
}

fn set_option(socket: &impl AsRawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let (address, size) = (ptr::from_ref(&value).cast(), size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the options above take an int, and are given the address and size of one.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, address, size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A signal to a process.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    Stop,
    Continue,
    Kill,
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let number = match signal {
        Signal::Stop => libc::SIGSTOP,
        Signal::Continue => libc::SIGCONT,
        Signal::Kill => libc::SIGKILL,
    };
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: kill accesses no memory of this process.
    let result = unsafe { libc::kill(pid, number) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
