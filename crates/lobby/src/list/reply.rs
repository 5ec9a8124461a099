//! The bytes of a reply, and how many of them are gone.

use super::copies::{Copies, Copy};
use rallypoint_lobby_proto::{ListReply, PublishedLists};
use rallypoint_wire::lobby::{LobbyId, ProtocolId};
use socket2::Socket;
use std::{io, io::IoSlice, sync::Arc};

/// All that there is to reply.
#[derive(Debug)]
pub(super) struct Replies {
    lists: Arc<PublishedLists>,
    copies: Copies,
}

/// How many pieces go into one system call: far more bytes than the system takes at a time.
const PIECES: usize = 64;

/// A reply on its way. It holds on to the published list it was made of, and copies nothing.
#[derive(Debug)]
pub(super) struct Reply {
    bytes: Bytes,
    /// The piece that goes next, and where in it.
    piece: usize,
    offset: usize,
}

#[derive(Debug)]
enum Bytes {
    Modern(Arc<ListReply>),
    Copied(Arc<Copy>),
    Legacy(Arc<[u8]>),
}

impl Replies {
    pub fn new(lists: Arc<PublishedLists>) -> Self {
        Self { lists, copies: Copies::new() }
    }

    /// The list of a lobby as it is now.
    pub fn modern(&self, lobby: &LobbyId) -> Reply {
        let list = self.lists.reply(lobby);
        let copy = self.copies.copy_of(&list).map(Bytes::Copied);
        Reply::new(copy.unwrap_or(Bytes::Modern(list)))
    }

    /// What clients of an old protocol get (L16).
    pub fn legacy(&self, protocol: &ProtocolId) -> Reply {
        Reply::legacy(self.lists.legacy_reply(protocol))
    }
}

impl Reply {
    fn new(bytes: Bytes) -> Self {
        Self { bytes, piece: 0, offset: 0 }
    }

    pub fn legacy(reply: Arc<[u8]>) -> Self {
        Self::new(Bytes::Legacy(reply))
    }

    /// Where its pieces are in memory, and how long they are: what it keeps from being freed.
    pub fn pieces(&self) -> Vec<(usize, usize)> {
        let place = |piece: &[u8]| (piece.as_ptr() as usize, piece.len());
        match &self.bytes {
            // The first is the count, which is nothing to speak of.
            Bytes::Modern(list) => list.pieces().skip(1).map(place).collect(),
            Bytes::Copied(copy) => vec![(Arc::as_ptr(copy) as usize, copy.size())],
            Bytes::Legacy(reply) => vec![place(reply)],
        }
    }

    /// Hands over as much as the system takes now. Says whether that was all, and how many bytes went.
    pub fn write(&mut self, socket: &Socket) -> io::Result<(bool, usize)> {
        let mut total = 0;
        loop {
            let (offered, result) = self.write_once(socket);
            let sent = match result {
                Ok(sent) => sent,
                Err(error) if total > 0 && error.kind() == io::ErrorKind::WouldBlock => return Ok((false, total)),
                Err(error) => return Err(error),
            };
            total += sent;
            self.skip(sent);
            if sent < offered || offered == 0 {
                return Ok((offered == 0, total));
            }
        }
    }

    /// How many bytes there are to hand over at once, and what came of trying to.
    fn write_once(&self, socket: &Socket) -> (usize, io::Result<usize>) {
        if let Bytes::Copied(copy) = &self.bytes {
            let left = copy.size() - self.offset;
            return (left, copy.send(socket, self.offset));
        }
        let mut slices = [IoSlice::new(&[]); PIECES];
        let count = self.slices(&mut slices);
        let offered = slices[..count].iter().map(|slice| slice.len()).sum();
        if offered == 0 {
            return (0, Ok(0));
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        (offered, socket.send_vectored_with_flags(&slices[..count], flags))
    }

    /// Fills in what goes next. Says how many pieces that are.
    fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; PIECES]) -> usize {
        let mut count = 0;
        let mut add = |piece: &'a [u8]| {
            let skip = if count == 0 { self.offset } else { 0 };
            slices[count] = IoSlice::new(piece.get(skip..).unwrap_or_default());
            count += 1;
        };
        match &self.bytes {
            Bytes::Modern(list) => list.pieces().skip(self.piece).take(PIECES).for_each(add),
            Bytes::Legacy(reply) if self.piece == 0 => add(reply),
            Bytes::Legacy(_) | Bytes::Copied(_) => {}
        }
        count
    }

    /// So many bytes are gone.
    fn skip(&mut self, mut bytes: usize) {
        if let Bytes::Copied(_) = self.bytes {
            self.offset += bytes;
            return;
        }
        let mut slices = [IoSlice::new(&[]); PIECES];
        let count = self.slices(&mut slices);
        let lengths = slices.map(|slice| slice.len());
        for length in &lengths[..count] {
            if bytes < *length {
                self.offset += bytes;
                return;
            }
            bytes -= length;
            self.piece += 1;
            self.offset = 0;
        }
    }
}
