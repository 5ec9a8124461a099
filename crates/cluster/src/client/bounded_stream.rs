//! A bound on what the store can make a node keep: the sizes of replies are checked while they arrive.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum length of a text in a reply. The longest that nodes write are messages, with at most half of it.
const MAX_BULK_STRING: u64 = 1 << 20;

/// Maximum size of a reply in bytes: a thousand of the longest entries.
const MAX_REPLY: usize = 128 << 20;

/// Maximum number of values in a reply. The largest replies are lists of bans.
const MAX_VALUES: u64 = 1 << 17;

/// Maximum length of a line: of a number, a status or an error.
const MAX_LINE: usize = 64 << 10;

/// Maximum depth of lists in lists.
const MAX_DEPTH: usize = 16;

/// Part of every message about a reply that is too large.
pub(super) const TOO_LARGE: &str = "more than a node reads";

/// A connection that fails as soon as a reply is, or announces to be, larger than any that nodes expect. The client would keep all
/// of it in memory.
#[derive(Debug)]
pub(super) struct BoundedStream<S> {
    stream: S,
    reply: ReplySize,
}

impl<S> BoundedStream<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, reply: ReplySize::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Poll::Ready(Ok(())) = read {
            self.reply.handle_bytes(&buffer.filled()[before..])?;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Follows the replies of a store (RESP) closely enough to know their sizes. Whatever is not valid is left to the client, which
/// ends the connection.
#[derive(Debug, Default)]
struct ReplySize {
    /// Bytes and values of the reply so far.
    bytes: usize,
    values: u64,
    /// Number of values that are missing in each list that has begun.
    lists: Vec<u64>,
    /// The line so far, without the rest of a very long one.
    line: Vec<u8>,
    line_length: usize,
    /// Bytes of a text that are to come.
    text: u64,
}

impl ReplySize {
    fn handle_bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(first) = bytes.first() {
            if self.text > 0 {
                let count = usize::try_from(self.text).unwrap_or(usize::MAX).min(bytes.len());
                bytes = &bytes[count..];
                self.text -= count as u64;
                self.count(count)?;
                if self.text == 0 {
                    self.end_value();
                }
                continue;
            }
            if self.line.len() < 32 {
                self.line.push(*first);
            }
            self.line_length += 1;
            self.count(1)?;
            if self.line_length > MAX_LINE {
                return Err(too_large("a line"));
            }
            if *first == b'\n' {
                self.handle_line()?;
            }
            bytes = &bytes[1..];
        }
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> io::Result<()> {
        self.bytes += bytes;
        if self.bytes > MAX_REPLY { Err(too_large("a reply")) } else { Ok(()) }
    }

    fn handle_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.line_length = 0;
        let number = || std::str::from_utf8(line.get(1..)?).ok()?.trim().parse::<u64>().ok();
        let values = match (line.first(), number()) {
            (Some(b'$' | b'=' | b'!'), Some(length)) => {
                if length > MAX_BULK_STRING {
                    return Err(too_large(&format!("a value of {length} bytes")));
                }
                // The text is followed by a line break.
                self.text = length + 2;
                return Ok(());
            }
            (Some(b'*' | b'~' | b'>'), Some(count)) => count,
            (Some(b'%'), Some(count)) => count.saturating_mul(2),
            (Some(b'|'), Some(count)) => count.saturating_mul(2).saturating_add(1),
            _ => 0,
        };
        self.values = self.values.saturating_add(values);
        if self.values > MAX_VALUES || self.lists.len() >= MAX_DEPTH {
            return Err(too_large(&format!("a list of {values} values")));
        }
        if values > 0 {
            self.lists.push(values);
        } else {
            self.end_value();
        }
        Ok(())
    }

    fn end_value(&mut self) {
        while let Some(missing) = self.lists.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return;
            }
            self.lists.pop();
        }
        (self.bytes, self.values) = (0, 0);
    }
}

fn too_large(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is {TOO_LARGE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(replies: &[u8], part: usize) -> Result<ReplySize, String> {
        let mut size = ReplySize::default();
        for bytes in replies.chunks(part) {
            size.handle_bytes(bytes).map_err(|error| error.to_string())?;
        }
        Ok(size)
    }

    #[test]
    fn replies_are_followed_whatever_the_parts_in_which_they_arrive() {
        let replies =
            b"+OK\r\n$-1\r\n*-1\r\n*0\r\n:12\r\n-ERR no\r\n*3\r\n$5\r\n*9\r\n$\r\n*1\r\n$0\r\n\r\n%1\r\n+a\r\n,1.5\r\n\
            =7\r\ntxt:abc\r\n|1\r\n+k\r\n+v\r\n+value\r\n_\r\n";
        for part in 1..=replies.len() {
            let size = result(replies, part).unwrap();
            assert_eq!((size.bytes, size.values, size.text, size.lists.len()), (0, 0, 0, 0), "parts of {part}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_arrives() {
        for start in [
            "$536870912\r\n",
            "*3\r\n+a\r\n$9999999999\r\n",
            "*99999999\r\n",
            "%18446744073709551615\r\n",
            "=2000000\r\n",
        ] {
            assert!(result(start.as_bytes(), 3).unwrap_err().contains(TOO_LARGE), "{start}");
        }
        assert!(result(&[b"+".to_vec(), vec![b'x'; MAX_LINE]].concat(), 1_000).is_err(), "a line without an end");
        assert!(result("*1\r\n".repeat(MAX_DEPTH + 1).as_bytes(), 7).is_err(), "lists in lists");
        assert!(result("*2\r\n+a\r\n".repeat(MAX_DEPTH + 1).as_bytes(), 7).is_err(), "lists in lists");
        let mut size = ReplySize::default();
        size.handle_bytes(b"*1000\r\n").unwrap();
        let value =
            [format!("${MAX_BULK_STRING}\r\n").as_bytes(), &vec![0; MAX_BULK_STRING as usize], b"\r\n"].concat();
        let accepted = (0..1_000).take_while(|_| size.handle_bytes(&value).is_ok()).count();
        assert_eq!(accepted, 127, "the whole reply");
    }
}
