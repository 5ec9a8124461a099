//! Systems without memory-backed files: every reply is sent from user memory.

use rallypoint_lobby_proto::ListReply;
use socket2::Socket;
use std::{io, sync::Arc};

/// Maximum number of files.
pub(crate) const MAX_REPLY_FILES: usize = 0;

/// Creates no files.
#[derive(Debug)]
pub(crate) struct ReplyFiles;

/// A reply in a file, of which there are none.
#[derive(Debug)]
pub(crate) enum ReplyFile {}

impl ReplyFiles {
    pub fn new(_max_bytes: usize) -> Self {
        Self
    }

    /// The reply's file: none.
    pub fn request(&self, _reply: &Arc<ListReply>) -> Option<Arc<ReplyFile>> {
        None
    }
}

impl ReplyFile {
    pub fn size(&self) -> usize {
        match *self {}
    }

    pub fn send(&self, _socket: &Socket, _offset: usize) -> io::Result<usize> {
        match *self {}
    }
}
