//! Control messages: what a program and the system tell each other about a buffer besides its bytes.

use std::ptr;

/// Room for the control messages of one buffer: one with a number, one with an address of either family, and one with a time.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct ControlBuffer([u8; 96]);

impl ControlBuffer {
    pub fn zeroed() -> Self {
        Self([0; _])
    }
}

/// A control message that the system has written.
pub(super) struct ControlMessage<'a> {
    header: &'a libc::cmsghdr,
    /// Level and type, as in `(libc::SOL_UDP, libc::UDP_GRO)`.
    pub kind: (libc::c_int, libc::c_int),
}

impl ControlMessage<'_> {
    /// The value, or `None` if the message is too short to hold one.
    ///
    /// # Safety
    /// Every bit pattern must be a valid `T`, as it is for the integers and structures of the system.
    pub unsafe fn read<T: Copy>(&self) -> Option<T> {
        // SAFETY: a plain calculation.
        let needed = unsafe { libc::CMSG_LEN(size_of::<T>() as u32) };
        if self.header.cmsg_len < needed as _ {
            return None;
        }
        // SAFETY: the message is at least as long as its header and a `T`, and lies within the control buffer (see
        // `control_messages`). The value is read without assuming an alignment; the caller vouches for the bit pattern.
        Some(unsafe { libc::CMSG_DATA(self.header).cast::<T>().read_unaligned() })
    }
}

/// The control messages of a header that the system has filled in; none if it ran out of room for them (`MSG_CTRUNC`), in
/// which case the last message may be incomplete and others are missing.
///
/// # Safety
/// `msg_control` must be null or point to a buffer that is valid for reads of `msg_controllen` bytes, aligned for a
/// `cmsghdr`, and filled so far by a system call; the buffer must stay unchanged while the iterator and its messages live.
pub(super) unsafe fn control_messages(header: &libc::msghdr) -> impl Iterator<Item = ControlMessage<'_>> {
    let mut next = if header.msg_flags & libc::MSG_CTRUNC != 0 {
        // The buffers have room for everything that is asked for, so this points to an option that is set elsewhere.
        tracing::debug!("the system's control messages do not fit; ignoring them");
        ptr::null_mut()
    } else {
        // SAFETY: the caller vouches for the buffer and its length.
        unsafe { libc::CMSG_FIRSTHDR(header) }
    };
    std::iter::from_fn(move || {
        // SAFETY: the pointer is null, or to a message header within the buffer that the caller vouches for.
        let found = unsafe { next.as_ref() }?;
        // SAFETY: `found` is a message of this header's buffer, which the system has filled with whole messages.
        next = unsafe { libc::CMSG_NXTHDR(header, found) };
        Some(ControlMessage { header: found, kind: (found.cmsg_level, found.cmsg_type) })
    })
}

/// Appends a control message to a header.
///
/// # Safety
/// `msg_control` must point to a [`ControlBuffer`] that is valid for writes, whose first `msg_controllen` bytes are whole
/// control messages written by this function.
///
/// # Panics
/// If the message does not fit into the buffer: its size is for the two messages that are sent.
pub(super) unsafe fn push_control<T: Copy>(header: &mut libc::msghdr, level: libc::c_int, kind: libc::c_int, value: T) {
    let used: usize = header.msg_controllen as _;
    let size = size_of::<T>() as u32;
    // SAFETY: a plain calculation.
    let length = unsafe { libc::CMSG_LEN(size) };
    // SAFETY: a plain calculation.
    let space = unsafe { libc::CMSG_SPACE(size) } as usize;
    assert!(used + space <= size_of::<ControlBuffer>());
    // SAFETY: from `used` on there is room for the whole message in the control buffer, which is aligned for a header, and
    // every message takes a space that keeps the next one aligned. The value is written without assuming an alignment.
    unsafe {
        let message = header.msg_control.cast::<u8>().add(used).cast::<libc::cmsghdr>();
        (*message).cmsg_level = level;
        (*message).cmsg_type = kind;
        (*message).cmsg_len = length as _;
        libc::CMSG_DATA(message).cast::<T>().write_unaligned(value);
    }
    header.msg_controllen = (used + space) as _;
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: (libc::c_int, libc::c_int) = (libc::SOL_UDP, libc::UDP_GRO);

    /// A header with a number as its only control message.
    fn with_number(buffer: &mut ControlBuffer) -> libc::msghdr {
        // SAFETY: all zeros are a valid header.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = ptr::from_mut(buffer).cast();
        // SAFETY: the header points to an empty control buffer that the caller owns.
        unsafe { push_control(&mut header, NUMBER.0, NUMBER.1, 1_200 as libc::c_int) };
        header
    }

    fn number(header: &libc::msghdr) -> Option<libc::c_int> {
        // SAFETY: the buffer was filled by `with_number`, and an integer has no invalid bit patterns.
        unsafe { control_messages(header).find(|message| message.kind == NUMBER)?.read() }
    }

    #[test]
    fn a_value_comes_back_as_it_was_written() {
        assert_eq!(number(&with_number(&mut ControlBuffer::zeroed())), Some(1_200));
    }

    #[test]
    fn truncated_control_data_is_ignored() {
        let mut buffer = ControlBuffer::zeroed();
        let mut header = with_number(&mut buffer);
        header.msg_flags = libc::MSG_CTRUNC;
        assert_eq!(number(&header), None);
    }

    #[test]
    fn a_message_that_is_too_short_has_no_value() {
        let mut buffer = ControlBuffer::zeroed();
        let header = with_number(&mut buffer);
        // SAFETY: there is one whole message at the start of the buffer.
        unsafe { (*header.msg_control.cast::<libc::cmsghdr>()).cmsg_len -= 1 };
        assert_eq!(number(&header), None);
    }
}
