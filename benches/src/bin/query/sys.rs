//! System calls that the standard library and socket2 do not have.
//!
//! Independent of `rallypoint-udp`, so that the measured code is not measured with itself.
#![allow(unsafe_code)]

use std::{
    io, mem,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::AsRawFd,
    process::Child,
    ptr,
    time::Duration,
};

/// Number of datagrams per system call.
pub const BATCH: usize = 128;

/// Size in bytes of the buffer for each datagram.
const ROOM: usize = 2_048;

/// A datagram from or to a peer, through one of this machine's addresses (0.0.0.0 is any).
#[derive(Clone, Debug)]
pub struct Datagram {
    pub peer: SocketAddrV4,
    pub local: Ipv4Addr,
    pub bytes: Vec<u8>,
}

/// Enables receive timestamps and destination addresses, and a large receive buffer.
pub fn prepare(socket: &UdpSocket, with_address: bool) -> io::Result<()> {
    let size = 32 << 20;
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, size))?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, with_address.into())?;
    set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, with_address.into())
}

fn set_option(socket: &UdpSocket, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let (address, size) = (ptr::from_ref(&value).cast(), size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the options above take an int, and are given the address and size of one.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, address, size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A control message with this machine's address.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control {
    header: libc::cmsghdr,
    info: libc::in_pktinfo,
}

/// The control messages of a received datagram: its timestamp and destination address, in the order of the kernel.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Arrival {
    header: libc::cmsghdr,
    time: libc::timespec,
    address: Control,
}

/// The buffers of one system call for many datagrams. They are not moved during its lifetime.
pub struct Batch {
    buffers: Vec<[u8; ROOM]>,
    names: Vec<libc::sockaddr_in>,
    controls: Vec<Control>,
    arrivals: Vec<Arrival>,
    iovecs: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Batch {
    pub fn new() -> Self {
        // SAFETY: all zeros are valid for these plain structures of the system.
        let (name, control, arrival, header) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        Self {
            buffers: vec![[0; ROOM]; BATCH],
            names: vec![name; BATCH],
            controls: vec![control; BATCH],
            arrivals: vec![arrival; BATCH],
            iovecs: vec![libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH],
            headers: vec![header; BATCH],
        }
    }

    /// `control` is the address and size of the control messages.
    fn point(&mut self, n: usize, length: usize, (control, size): (*mut libc::c_void, usize)) {
        self.iovecs[n] = libc::iovec { iov_base: self.buffers[n].as_mut_ptr().cast(), iov_len: length };
        let header = &mut self.headers[n].msg_hdr;
        header.msg_name = ptr::from_mut(&mut self.names[n]).cast();
        header.msg_namelen = size_of::<libc::sockaddr_in>() as _;
        header.msg_iov = ptr::from_mut(&mut self.iovecs[n]);
        header.msg_iovlen = 1;
        (header.msg_control, header.msg_controllen) = (control, size as _);
    }

    /// Receives the queued datagrams; returns their number.
    pub fn receive(&mut self, socket: &UdpSocket, with_address: bool) -> io::Result<usize> {
        for n in 0..BATCH {
            let control = match with_address {
                true => (ptr::from_mut(&mut self.arrivals[n]).cast(), size_of::<Arrival>()),
                false => (ptr::null_mut(), 0),
            };
            self.point(n, ROOM, control);
        }
        // SAFETY: every header points to a name, to control messages or none, and to an iovec, and every iovec to its own
        // buffer, with the correct sizes; all of them are in vectors that are not changed during the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        match usize::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            },
        }
    }

    /// A received datagram: its source, its destination address, and its bytes.
    pub fn received(&self, n: usize) -> (SocketAddrV4, Ipv4Addr, &[u8]) {
        let name = &self.names[n];
        let ip = |address: libc::in_addr| Ipv4Addr::from(address.s_addr.to_ne_bytes());
        let peer = SocketAddrV4::new(ip(name.sin_addr), u16::from_be(name.sin_port));
        let length = (self.headers[n].msg_len as usize).min(ROOM);
        (peer, ip(self.arrivals[n].address.info.ipi_addr), &self.buffers[n][..length])
    }

    /// The kernel's timestamp of a received datagram, which precedes the system call.
    pub fn arrived(&self, n: usize) -> Duration {
        let time = self.arrivals[n].time;
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    /// Sends at most [`BATCH`] datagrams, and blocks until all are sent.
    pub fn send<'a>(
        &mut self,
        socket: &UdpSocket,
        datagrams: impl Iterator<Item = (SocketAddrV4, Ipv4Addr, &'a [u8])>,
    ) -> io::Result<()> {
        let mut count = 0;
        for (n, (peer, local, bytes)) in datagrams.take(BATCH).enumerate() {
            let length = bytes.len().min(ROOM);
            self.buffers[n][..length].copy_from_slice(&bytes[..length]);
            let address = |ip: Ipv4Addr| libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
            self.names[n].sin_family = libc::AF_INET as _;
            self.names[n].sin_port = peer.port().to_be();
            self.names[n].sin_addr = address(*peer.ip());
            self.controls[n] = Control {
                header: libc::cmsghdr {
                    cmsg_len: size_of::<libc::cmsghdr>() + size_of::<libc::in_pktinfo>(),
                    cmsg_level: libc::IPPROTO_IP,
                    cmsg_type: libc::IP_PKTINFO,
                },
                info: libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address(local), ipi_addr: address(local) },
            };
            let control = match local.is_unspecified() {
                true => (ptr::null_mut(), 0),
                false => (ptr::from_mut(&mut self.controls[n]).cast(), size_of::<Control>()),
            };
            self.point(n, length, control);
            count = n + 1;
        }
        let mut done = 0;
        while done < count {
            let rest = &mut self.headers[done..count];
            // SAFETY: as in `receive`; the kernel only reads.
            let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as u32, 0) };
            match usize::try_from(sent) {
                Ok(sent) => done += sent,
                Err(_) => return Err(io::Error::last_os_error()),
            }
        }
        Ok(())
    }
}

/// Waits until a datagram can be received, or until the timeout.
pub fn wait(socket: &UdpSocket, time: Duration) {
    let mut watch = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let time = libc::timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: both pointers are to values that outlive the call, and the count of descriptors is 1.
    unsafe { libc::ppoll(&raw mut watch, 1, &raw const time, ptr::null()) };
}

/// Waits for the end of a process; returns its CPU time, and its peak memory in bytes.
pub fn end_of(child: &Child) -> io::Result<(Duration, u64)> {
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    // SAFETY: all zeros are a valid rusage.
    let (mut status, mut usage): (libc::c_int, libc::rusage) = (0, unsafe { mem::zeroed() });
    // SAFETY: both pointers are to values that outlive the call. The child is waited for only here.
    if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000);
    Ok((time(usage.ru_utime) + time(usage.ru_stime), usage.ru_maxrss as u64 * 1_024))
}
