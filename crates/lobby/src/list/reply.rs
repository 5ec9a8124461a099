//! The bytes of a reply, and how many of them have been sent.

use super::reply_files::{ReplyFile, ReplyFiles};
use rallypoint_lobby_proto::{ListReply, PublishedLists, doors::DoorReply};
use rallypoint_udp::SEND_FLAGS;
use socket2::Socket;
use std::{io, io::IoSlice, sync::Arc};

/// The replies to all requests, as of now.
#[derive(Debug)]
pub(super) struct ReplySource {
    lists: Arc<PublishedLists>,
    files: ReplyFiles,
}

/// Maximum number of pieces per system call: far more bytes than the system accepts at once.
const PIECES: usize = 64;

/// A reply that is being sent. It refers to the published list and copies nothing.
#[derive(Debug)]
pub(super) struct Reply {
    bytes: Bytes,
    /// Index of the next piece to send.
    piece: usize,
    /// Number of bytes of that piece that were sent.
    offset: usize,
    /// Number of bytes of all pieces that are not yet sent.
    left: usize,
}

#[derive(Debug)]
enum Bytes {
    List(Arc<ListReply>),
    /// A list that is popular.
    File(Arc<ReplyFile>),
    Rendered(Arc<[u8]>),
}

impl ReplySource {
    /// Popular replies are kept in files of at most `file_bytes` together.
    pub fn new(lists: Arc<PublishedLists>, file_bytes: usize) -> Self {
        Self { lists, files: ReplyFiles::new(file_bytes) }
    }

    /// The current lists.
    pub fn lists(&self) -> &PublishedLists {
        &self.lists
    }

    /// A reply of a door, ready to be sent.
    pub fn reply(&self, reply: DoorReply) -> Reply {
        match reply {
            DoorReply::List(list) => {
                let file = self.files.request(&list).map(Bytes::File);
                Reply::new(file.unwrap_or(Bytes::List(list)))
            }
            DoorReply::Bytes(bytes) => Reply::bytes(bytes),
        }
    }
}

impl Reply {
    fn new(bytes: Bytes) -> Self {
        let left = match &bytes {
            Bytes::List(list) => list.size(),
            Bytes::File(file) => file.size(),
            Bytes::Rendered(reply) => reply.len(),
        };
        Self { bytes, piece: 0, offset: 0, left }
    }

    pub fn bytes(reply: Arc<[u8]>) -> Self {
        Self::new(Bytes::Rendered(reply))
    }

    /// Address and length of each piece of memory that this reply keeps from being freed.
    pub fn pieces(&self) -> Vec<(usize, usize)> {
        let location = |piece: &[u8]| (piece.as_ptr() as usize, piece.len());
        match &self.bytes {
            // The first piece is the number of servers, which is negligible.
            Bytes::List(list) => list.pieces().skip(1).map(location).collect(),
            Bytes::File(file) => vec![(Arc::as_ptr(file) as usize, file.size())],
            Bytes::Rendered(reply) => vec![location(reply)],
        }
    }

    /// Sends as much as the system accepts now. Returns whether the reply is complete, and the number of bytes sent.
    pub fn write(&mut self, socket: &Socket) -> io::Result<(bool, usize)> {
        let mut total = 0;
        while self.left > 0 {
            let (offered, result) = self.write_once(socket);
            let sent = match result {
                Ok(sent) => sent,
                Err(error) if total > 0 && error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            total += sent;
            self.skip(sent);
            if sent < offered {
                break;
            }
        }
        Ok((self.left == 0, total))
    }

    /// Makes one system call. Returns the number of bytes offered, and the call's result.
    fn write_once(&self, socket: &Socket) -> (usize, io::Result<usize>) {
        if let Bytes::File(file) = &self.bytes {
            return (self.left, file.send(socket, self.offset));
        }
        let mut slices = [IoSlice::new(&[]); PIECES];
        let count = self.slices(&mut slices);
        let offered = slices[..count].iter().map(|slice| slice.len()).sum();
        (offered, socket.send_vectored_with_flags(&slices[..count], SEND_FLAGS))
    }

    /// Fills in the next pieces to send. Returns their number.
    fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; PIECES]) -> usize {
        let mut count = 0;
        let mut add = |piece: &'a [u8]| {
            let skip = if count == 0 { self.offset } else { 0 };
            slices[count] = IoSlice::new(piece.get(skip..).unwrap_or_default());
            count += 1;
        };
        match &self.bytes {
            Bytes::List(list) => list.pieces().skip(self.piece).take(PIECES).for_each(add),
            Bytes::Rendered(reply) => add(reply),
            Bytes::File(_) => {}
        }
        count
    }

    /// Advances by a number of bytes that were sent.
    fn skip(&mut self, mut bytes: usize) {
        self.left -= bytes;
        if self.left == 0 {
            return;
        }
        bytes += self.offset;
        if let Bytes::List(list) = &self.bytes {
            for piece in list.pieces().skip(self.piece) {
                let Some(beyond) = bytes.checked_sub(piece.len()) else { break };
                bytes = beyond;
                self.piece += 1;
            }
        }
        self.offset = bytes;
    }
}
