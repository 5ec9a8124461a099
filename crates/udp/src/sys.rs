//! System calls that the standard library and socket2 do not have. All unsafe code of this crate is here.
//!
//! By hand, because of what the alternatives cost per datagram: quinn-udp parses control messages for each one and has no
//! sendmmsg, and nix borrows its buffers in a way that they have to be listed anew, on the heap, for each call.
#![allow(unsafe_code)]

use crate::Undelivered;
use std::{
    io,
    mem::MaybeUninit,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6},
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
    time::Duration,
};
#[cfg(feature = "async")]
use {crate::UdpSocket, socket2::Socket, std::sync::Arc, tokio::io::unix::AsyncFd};

/// How many datagrams go through one system call. With this many, what the call itself costs no longer counts.
pub const BATCH: usize = 128;

/// A socket address as the system writes it, large enough for both families.
#[derive(Clone, Copy, Default)]
#[repr(C, align(4))]
pub(crate) struct RawAddr([u8; 28]);

/// Room for what the system tells of a buffer besides its bytes, and is told: a control message with a number, and one with
/// an address of either family.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Control([u8; 64]);

/// What the system tells of a buffer that it has filled.
#[derive(Clone, Copy, Default)]
pub(crate) struct Note {
    /// How long each datagram in it is, or 0 if there is only one.
    pub segment: u16,
    /// The address of this machine that it was sent to, if that is asked for.
    pub local: Option<IpAddr>,
}

/// Where [`receive`] puts what arrives.
pub(crate) struct Slots<'a> {
    pub buffers: &'a mut [u8],
    pub buffer_size: usize,
    pub names: &'a mut [RawAddr; BATCH],
    /// How long they really were, also if they did not fit.
    pub lengths: &'a mut [u32; BATCH],
    /// What else there is to know about each.
    pub notes: Option<&'a mut [Note; BATCH]>,
}

/// Receives what is there, at most into each of the first [`BATCH`] buffers, without waiting. Says into how many.
pub(crate) fn receive(fd: BorrowedFd<'_>, slots: Slots<'_>) -> io::Result<usize> {
    let Slots { buffers, buffer_size, names, lengths, notes } = slots;
    let count = (buffers.len() / buffer_size.max(1)).min(BATCH);
    let mut buffers = buffers.chunks_exact_mut(buffer_size);
    let mut iovecs: [libc::iovec; BATCH] = std::array::from_fn(|_| {
        // Without a buffer there is no room: what arrives is cut to nothing, which its length tells.
        let buffer = buffers.next().unwrap_or_default();
        libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() }
    });
    let mut headers: [libc::mmsghdr; BATCH] =
        std::array::from_fn(|n| header(&mut names[n], size_of::<RawAddr>(), &mut iovecs[n]));
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; BATCH];
    if notes.is_some() {
        for (header, control) in headers.iter_mut().zip(&mut controls) {
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        }
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: every header points to one name and one iovec, every iovec to a buffer of its own, and a header with a control
    // buffer to one of its own. All of these are borrowed mutably or owned by this function until after the call, and the
    // sizes given are theirs.
    let count = unsafe { libc::recvmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), count as u32, flags, ptr::null_mut()) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    for (length, header) in lengths.iter_mut().zip(&headers[..count]) {
        *length = header.msg_len;
    }
    if let Some(notes) = notes {
        for (note, header) in notes.iter_mut().zip(&headers[..count]) {
            *note = read_note(&header.msg_hdr);
        }
    }
    Ok(count)
}

/// What the system tells of a buffer.
fn read_note(header: &libc::msghdr) -> Note {
    let mut note = Note::default();
    // SAFETY: the system has filled the control buffer with whole messages and says how far in the header, which these
    // functions go by. The messages of these types hold an int, an in_pktinfo and an in6_pktinfo, which are read without
    // assuming an alignment.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = message.as_ref() {
            let data = libc::CMSG_DATA(message);
            match (found.cmsg_level, found.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    note.segment = u16::try_from(data.cast::<libc::c_int>().read_unaligned()).unwrap_or(0);
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    note.local = Some(Ipv4Addr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    note.local = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    note
}

/// A datagram to send, or several for one receiver: then they have this size, but for the last, which may be shorter.
pub(crate) struct Piece<'a> {
    pub to: SocketAddr,
    /// The address of this machine to send from, if it matters.
    pub from: Option<IpAddr>,
    pub bytes: &'a [u8],
    pub segment: Option<u16>,
}

/// Sends datagrams without waiting, at most [`BATCH`] pieces. Says how many were sent: the first of the others could not be.
pub(crate) fn send<'a>(fd: BorrowedFd<'_>, pieces: impl IntoIterator<Item = Piece<'a>>) -> io::Result<usize> {
    let mut names = [RawAddr::default(); BATCH];
    let mut iovecs = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
    let mut name_sizes = [0; BATCH];
    let mut wishes = [(None, None); BATCH];
    let mut count = 0;
    for (n, Piece { to, from, bytes, segment }) in pieces.into_iter().take(BATCH).enumerate() {
        (names[n], name_sizes[n]) = RawAddr::emit(to);
        iovecs[n] = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        wishes[n] = (segment, from);
        count = n + 1;
    }
    let mut headers: [libc::mmsghdr; BATCH] =
        std::array::from_fn(|n| header(&mut names[n], name_sizes[n], &mut iovecs[n]));
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; BATCH];
    for (n, (segment, from)) in wishes.into_iter().enumerate().take(count) {
        if segment.is_some() || from.is_some() {
            write_wishes(&mut headers[n].msg_hdr, controls[n].write(Control([0; _])), segment, from);
        }
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the first `count` headers point to one name and one iovec each, these iovecs to the bytes of a datagram, and
    // those with a control buffer to one that was filled. All of them live until after the call, the sizes are theirs, and
    // the system does not write to what it sends.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), count as u32, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Asks for the bytes to become several datagrams of this size, and to be sent from this address.
fn write_wishes(header: &mut libc::msghdr, control: &mut Control, segment: Option<u16>, from: Option<IpAddr>) {
    header.msg_control = ptr::from_mut(control).cast();
    header.msg_controllen = 0;
    if let Some(size) = segment {
        push_control(header, libc::SOL_UDP, libc::UDP_SEGMENT, size);
    }
    match from {
        Some(IpAddr::V4(ip)) => {
            let none = libc::in_addr { s_addr: 0 };
            let ipi_spec_dst = libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
            let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst, ipi_addr: none };
            push_control(header, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        Some(IpAddr::V6(ip)) => {
            let ipi6_addr = libc::in6_addr { s6_addr: ip.octets() };
            let info = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: 0 };
            push_control(header, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        }
        None => {}
    }
}

/// Appends a control message to those of a header whose control buffer is a [`Control`]; the room is for the two above.
fn push_control<T: Copy>(header: &mut libc::msghdr, level: libc::c_int, kind: libc::c_int, value: T) {
    let (used, size): (usize, _) = (header.msg_controllen as _, size_of::<T>() as u32);
    // SAFETY: a plain calculation.
    let (length, space) = unsafe { (libc::CMSG_LEN(size), libc::CMSG_SPACE(size)) };
    assert!(used + space as usize <= size_of::<Control>());
    // SAFETY: from `used` on there is room for the whole message in the control buffer, which is aligned for a header, and
    // every message takes a space that keeps the next one aligned. The value is written without assuming an alignment.
    unsafe {
        let message = header.msg_control.cast::<u8>().add(used).cast::<libc::cmsghdr>();
        (*message).cmsg_level = level;
        (*message).cmsg_type = kind;
        (*message).cmsg_len = length as _;
        libc::CMSG_DATA(message).cast::<T>().write_unaligned(value);
    }
    header.msg_controllen = (used + space as usize) as _;
}

/// Has the system tell which of its addresses each datagram was sent to.
pub(crate) fn tell_local(fd: BorrowedFd<'_>, is_v4: bool) -> io::Result<()> {
    let (level, option) =
        if is_v4 { (libc::IPPROTO_IP, libc::IP_PKTINFO) } else { (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO) };
    set_int(fd, level, option, 1)
}

/// Has the system put datagrams of one sender that arrive together into one buffer (GRO).
pub(crate) fn coalesce(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_int(fd, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Whether the system can make several datagrams of one buffer (GSO).
pub(crate) fn can_segment(fd: BorrowedFd<'_>) -> bool {
    // Zero is the default: nothing is cut, unless a call asks for it.
    set_int(fd, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
}

fn set_int(fd: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option takes an int, and is given the address and size of one.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, ptr::from_ref(&value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn header(name: &mut RawAddr, name_size: usize, iovec: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: all zeros are a valid header: one without name, buffers and control data.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_name = ptr::from_mut(name).cast();
    header.msg_hdr.msg_namelen = name_size as libc::socklen_t;
    header.msg_hdr.msg_iov = iovec;
    header.msg_hdr.msg_iovlen = 1;
    header
}

impl RawAddr {
    /// The address, if it is of one of the two families.
    #[inline]
    pub(crate) fn parse(&self) -> Option<SocketAddr> {
        let [f, g, p, q, ..] = self.0;
        let port = u16::from_be_bytes([p, q]);
        match i32::from(u16::from_ne_bytes([f, g])) {
            libc::AF_INET => {
                let [_, _, _, _, a, b, c, d, ..] = self.0;
                Some((Ipv4Addr::new(a, b, c, d), port).into())
            }
            libc::AF_INET6 => {
                let (ip, scope) = self.0[8..].split_first_chunk::<16>()?;
                let scope = u32::from_ne_bytes(scope.try_into().ok()?);
                Some(SocketAddrV6::new(Ipv6Addr::from(*ip), port, 0, scope).into())
            }
            _ => None,
        }
    }

    /// The address in the system's form, and how much of it counts.
    fn emit(addr: SocketAddr) -> (Self, usize) {
        let mut raw = Self::default();
        let (family, size) = match addr {
            SocketAddr::V4(v4) => {
                raw.0[4..8].copy_from_slice(&v4.ip().octets());
                (libc::AF_INET, size_of::<libc::sockaddr_in>())
            }
            SocketAddr::V6(v6) => {
                raw.0[8..24].copy_from_slice(&v6.ip().octets());
                raw.0[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                (libc::AF_INET6, size_of::<libc::sockaddr_in6>())
            }
        };
        raw.0[0..2].copy_from_slice(&(family as u16).to_ne_bytes());
        raw.0[2..4].copy_from_slice(&addr.port().to_be_bytes());
        (raw, size)
    }
}

/// Has the system keep what the network says about datagrams that did not arrive.
pub(crate) fn keep_errors(fd: BorrowedFd<'_>, is_v4: bool) -> io::Result<()> {
    let (level, option) =
        if is_v4 { (libc::IPPROTO_IP, libc::IP_RECVERR) } else { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) };
    set_int(fd, level, option, 1)
}

/// The next datagram that did not arrive: where it was sent to, why, and as much of it as there is room for and the network
/// has quoted.
pub(crate) fn next_error(fd: BorrowedFd<'_>) -> io::Result<Option<Undelivered>> {
    /// Room for what the system tells of one error: its header, sock_extended_err and the address of who said it.
    #[repr(C, align(8))]
    struct Control([u8; 128]);

    let (mut name, mut control, mut quoted) = (RawAddr::default(), Control([0; 128]), vec![0; Undelivered::MAX_QUOTE]);
    let mut iovec = libc::iovec { iov_base: quoted.as_mut_ptr().cast(), iov_len: quoted.len() };
    let mut header = header(&mut name, size_of::<RawAddr>(), &mut iovec).msg_hdr;
    header.msg_control = ptr::from_mut(&mut control).cast();
    header.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the header points to a name, a buffer for the quote and a control buffer, which live until after the call, and the
    // sizes given are theirs.
    let result = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    let Ok(length) = usize::try_from(result) else {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    };
    // SAFETY: the system has filled the control buffer with whole messages and says how far in the header, which these
    // functions go by. A message of this type holds a sock_extended_err, which is read without assuming an alignment.
    let error = unsafe {
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        let mut error = None;
        while let Some(found) = message.as_ref() {
            if matches!(
                (found.cmsg_level, found.cmsg_type),
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
            ) {
                let told: libc::sock_extended_err =
                    libc::CMSG_DATA(message).cast::<libc::sock_extended_err>().read_unaligned();
                error = Some(io::Error::from_raw_os_error(told.ee_errno.cast_signed()));
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
        error
    };
    quoted.truncate(length);
    Ok(name.parse().zip(error).map(|(to, error)| Undelivered { to, error, quoted }))
}

/// Something to wait for.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Watch(libc::pollfd);

impl Watch {
    /// Waits until the descriptor can be read. The descriptor has to stay open while this is used (otherwise the wait is
    /// for something else, or for nothing).
    pub fn new(fd: &impl AsRawFd) -> Self {
        Self(libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 })
    }

    /// Waits for nothing.
    pub fn none() -> Self {
        Self(libc::pollfd { fd: -1, events: 0, revents: 0 })
    }

    /// Waits for room to write, too.
    pub fn also_writable(&mut self, also: bool) {
        self.0.events = if also { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
    }

    /// Whether there is something to read, or an error to be told.
    pub fn is_readable(&self) -> bool {
        self.0.revents & !libc::POLLOUT != 0
    }

    /// Whether there is an error to be told.
    pub fn has_error(&self) -> bool {
        self.0.revents & libc::POLLERR != 0
    }
}

/// Waits until one of these has something, or until the time is up. A signal may end it early.
pub fn wait(watches: &mut [Watch], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    watches.iter_mut().for_each(|watch| watch.0.revents = 0);
    // SAFETY: `Watch` is a transparent pollfd, so this is an array of as many as the slice has; the timeout is null or
    // lives until after the call; without a signal mask none is read.
    let result =
        unsafe { libc::ppoll(watches.as_mut_ptr().cast(), watches.len() as libc::nfds_t, timeout, ptr::null()) };
    match result {
        -1 => Err(io::Error::last_os_error()).or_else(|error| match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        }),
        _ => Ok(()),
    }
}

#[cfg(feature = "async")]
/// Lets the current runtime tell when a socket is ready.
pub fn register(socket: Arc<Socket>) -> io::Result<AsyncFd<Arc<Socket>>> {
    // SAFETY: a socket has one descriptor, which stays open and the same as long as the socket is there; and nobody can
    // put another socket into the Arc.
    unsafe { AsyncFd::register(socket) }.map_err(Into::into)
}

#[cfg(feature = "async")]
/// The same for a [`UdpSocket`].
pub fn register_udp(socket: Arc<UdpSocket>) -> io::Result<AsyncFd<Arc<UdpSocket>>> {
    // SAFETY: as above: it has one socket, which nobody can exchange.
    unsafe { AsyncFd::register(socket) }.map_err(Into::into)
}

/// Sets the size of the receive buffer beyond what the system allows everybody; that needs a privilege.
pub(crate) fn force_receive_buffer(fd: BorrowedFd<'_>, size: usize) -> io::Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, libc::c_int::try_from(size).unwrap_or(libc::c_int::MAX))
}

/// How many datagrams the system has dropped at this socket since it was opened, because its buffer was full.
pub(crate) fn dropped(fd: BorrowedFd<'_>) -> Option<u32> {
    /// What the system tells of a socket's memory (SK_MEMINFO_VARS) and where in it the drops are (SK_MEMINFO_DROPS).
    const VARS: usize = 9;
    const DROPS: usize = 8;
    let mut memory = [0u32; VARS];
    let mut size = size_of_val(&memory) as libc::socklen_t;
    // SAFETY: the system writes at most `size` bytes, which is the size of the array it is given.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            ptr::from_mut(&mut memory).cast(),
            &raw mut size,
        )
    };
    (result == 0).then_some(memory[DROPS])
}

/// Whether writing to a connection that its client has closed is an error and no more. Programs in Rust ignore the signal
/// that would end them, unless they were made not to.
pub fn ignores_broken_pipes() -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is set, and the one in force is written to a whole sigaction. All zeros are one, too.
    unsafe {
        libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_went() {
        for text in ["203.0.113.9:29944", "[2001:db8::1]:1", "[fe80::1%7]:65535", "0.0.0.0:0"] {
            let addr = text.parse().unwrap();
            assert_eq!(RawAddr::emit(addr).0.parse(), Some(addr));
        }
        assert_eq!(RawAddr::default().parse(), None);
    }

    #[test]
    fn an_address_is_as_large_as_the_system_says() {
        assert!(size_of::<libc::sockaddr_in6>() == size_of::<RawAddr>());
        assert!(align_of::<libc::sockaddr_in6>() <= align_of::<RawAddr>());
    }
}
