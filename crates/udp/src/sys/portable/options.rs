//! Socket options: what only some systems have is refused.

use rallypoint_machine::DeliveryError;
use socket2::Socket;
use std::io;

/// Prepares a new UDP socket.
pub(crate) fn prepare_udp(socket: &Socket) -> io::Result<()> {
    #[cfg(windows)]
    {
        crate::sys::ignore_refusals(socket)?;
        crate::sys::forbid_sharing(socket)?;
    }
    #[cfg(not(windows))]
    let _ = socket;
    Ok(())
}

pub(crate) fn enable_error_queue(_socket: &Socket, _is_v4: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn recv_error(_socket: &Socket) -> io::Result<Option<DeliveryError>> {
    Ok(None)
}

pub(crate) fn enable_local_addr(_socket: &Socket, _is_v4: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn enable_receive_times(_socket: &Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn enable_gro(_socket: &Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn supports_gso(_socket: &Socket) -> bool {
    false
}

pub(crate) fn force_recv_buffer_size(_socket: &Socket, _size: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn dropped(_socket: &Socket) -> Option<u32> {
    None
}
