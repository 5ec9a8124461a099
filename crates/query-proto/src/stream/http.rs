//! As much of HTTP/1.1 as it takes to read small documents of a game server (RFC 9112): a request without a body, and a response
//! whose length is known, chunked, or ended by the connection.
//!
//! It is written by hand because it runs without a socket, under the same limits and the same fuzz target as every protocol.

use super::error;
use rallypoint_wire::{DecodeError, DecodeErrorKind};
use std::{io::Write, net::SocketAddr};

/// Maximum length of a line of the header, in bytes.
const MAX_LINE: usize = 8 << 10;

/// Maximum number of lines of a header, and of those behind the last chunk.
const MAX_LINES: u8 = 100;

/// Appends a request for a document.
pub(super) fn emit_request(path: &[u8], server: SocketAddr, out: &mut Vec<u8>) {
    out.extend_from_slice(b"GET ");
    out.extend_from_slice(path);
    // Writing to a vector cannot fail.
    let _ = write!(
        out,
        " HTTP/1.1\r\nHost: {server}\r\nUser-Agent: rallypoint/{}\r\nAccept: application/json\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
}

/// A response that is being received.
#[derive(Debug)]
pub(super) struct Response {
    max_body: usize,
    part: Part,
    /// The line that is being received.
    line: Vec<u8>,
    lines: u8,
    status: u16,
    body: Vec<u8>,
    length: Option<usize>,
    is_chunked: bool,
    closes_connection: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    StatusLine,
    Header,
    /// The body, or a chunk of it, of which this number of bytes is left.
    Body(usize),
    /// The body, up to the end of the connection.
    BodyUntilClosed,
    ChunkSize,
    /// The end of the line behind a chunk.
    ChunkEnd,
    Trailer,
    Complete,
}

impl Response {
    /// A response whose body has at most this number of bytes.
    pub fn new(max_body: usize) -> Self {
        Self {
            max_body,
            part: Part::StatusLine,
            line: Vec::new(),
            lines: 0,
            status: 0,
            body: Vec::new(),
            length: None,
            is_chunked: false,
            closes_connection: false,
        }
    }

    /// Prepares for the next response.
    pub fn reset(&mut self) {
        *self = Self::new(self.max_body);
    }

    pub fn status(&self) -> u16 {
        self.status
    }

    pub fn take_body(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.body)
    }

    pub fn is_complete(&self) -> bool {
        self.part == Part::Complete
    }

    /// Whether anything has been received.
    pub fn has_begun(&self) -> bool {
        self.part != Part::StatusLine || !self.line.is_empty()
    }

    /// Whether the server closes the connection after this response.
    pub fn closes_connection(&self) -> bool {
        self.closes_connection
    }

    /// Takes in received bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), DecodeError> {
        while let Some((&byte, rest)) = bytes.split_first() {
            bytes = match self.part {
                Part::Body(left) => {
                    let (taken, rest) = bytes.split_at(left.min(bytes.len()));
                    self.push_body(taken)?;
                    self.part = match left - taken.len() {
                        0 if self.is_chunked => Part::ChunkEnd,
                        0 => Part::Complete,
                        left => Part::Body(left),
                    };
                    rest
                }
                Part::BodyUntilClosed => {
                    self.push_body(bytes)?;
                    &[]
                }
                Part::Complete => return Err(error("response", DecodeErrorKind::TrailingBytes)),
                _ => {
                    if byte == b'\n' {
                        let line = std::mem::take(&mut self.line);
                        self.part = self.handle_line(line.strip_suffix(b"\r").unwrap_or(&line))?;
                    } else if self.line.len() >= MAX_LINE {
                        return Err(error("header", DecodeErrorKind::TooLong));
                    } else {
                        self.line.push(byte);
                    }
                    rest
                }
            };
        }
        Ok(())
    }

    /// The connection has ended.
    pub fn handle_closed(&mut self) -> Result<(), DecodeError> {
        self.closes_connection = true;
        match self.part {
            Part::BodyUntilClosed => self.part = Part::Complete,
            Part::Complete => {}
            Part::StatusLine if self.line.is_empty() => {
                return Err(error("response before the connection was closed", DecodeErrorKind::Missing));
            }
            _ => return Err(error("response", DecodeErrorKind::Truncated)),
        }
        Ok(())
    }

    fn push_body(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        if self.body.len() + bytes.len() > self.max_body {
            return Err(error("body", DecodeErrorKind::TooLong));
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }

    /// Handles a line without its end. Returns what follows.
    fn handle_line(&mut self, line: &[u8]) -> Result<Part, DecodeError> {
        match self.part {
            Part::StatusLine => {
                let invalid = error("status line", DecodeErrorKind::Invalid);
                let version = line.strip_prefix(b"HTTP/1.").ok_or(invalid)?;
                let mut words = version.split(|byte| *byte == b' ');
                self.closes_connection = words.next() == Some(b"0");
                let status =
                    words.next().and_then(|word| number(word, 10)).filter(|status| (100..600).contains(status));
                self.status = status.ok_or(invalid)? as u16;
                Ok(Part::Header)
            }
            Part::Header if line.is_empty() => self.begin_body(),
            Part::Header => {
                self.count_line()?;
                self.handle_field(line)?;
                Ok(Part::Header)
            }
            Part::ChunkSize => {
                let size = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                match number(size, 16) {
                    Some(0) => Ok(Part::Trailer),
                    Some(size) if size <= self.max_body => Ok(Part::Body(size)),
                    Some(_) => Err(error("body", DecodeErrorKind::TooLong)),
                    None => Err(error("size of a chunk", DecodeErrorKind::Invalid)),
                }
            }
            Part::ChunkEnd if line.is_empty() => Ok(Part::ChunkSize),
            Part::Trailer if line.is_empty() => Ok(Part::Complete),
            Part::Trailer => self.count_line().map(|()| Part::Trailer),
            _ => Err(error("chunk", DecodeErrorKind::Invalid)),
        }
    }

    fn count_line(&mut self) -> Result<(), DecodeError> {
        self.lines += 1;
        if self.lines > MAX_LINES { Err(error("header", DecodeErrorKind::TooLong)) } else { Ok(()) }
    }

    fn handle_field(&mut self, line: &[u8]) -> Result<(), DecodeError> {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(error("header", DecodeErrorKind::Invalid))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let has =
            |word: &[u8]| value.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(word));
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number(value, 10).ok_or(error("length of the body", DecodeErrorKind::Invalid))?;
            if self.length.is_some_and(|other| other != length) {
                return Err(error("length of the body", DecodeErrorKind::Mismatch));
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.is_chunked = has(b"chunked");
            if !value.eq_ignore_ascii_case(b"chunked") {
                return Err(error("transfer encoding", DecodeErrorKind::Unknown));
            }
        } else if name.eq_ignore_ascii_case(b"content-encoding") && !value.eq_ignore_ascii_case(b"identity") {
            return Err(error("content encoding", DecodeErrorKind::Unknown));
        } else if name.eq_ignore_ascii_case(b"connection") {
            self.closes_connection = has(b"close") || (self.closes_connection && !has(b"keep-alive"));
        }
        Ok(())
    }

    /// What follows a header.
    fn begin_body(&mut self) -> Result<Part, DecodeError> {
        match (self.status, self.length) {
            // An interim response: the actual one follows.
            (100..200, _) => {
                let lines = self.lines;
                self.reset();
                // A server could send them without end.
                self.lines = lines.saturating_add(1);
                if self.lines > MAX_LINES {
                    Err(error("header", DecodeErrorKind::TooLong))
                } else {
                    Ok(Part::StatusLine)
                }
            }
            (204 | 304, _) => Ok(Part::Complete),
            _ if self.is_chunked => Ok(Part::ChunkSize),
            (_, Some(length)) if length > self.max_body => Err(error("body", DecodeErrorKind::TooLong)),
            (_, Some(0)) => Ok(Part::Complete),
            (_, Some(length)) => Ok(Part::Body(length)),
            (_, None) => {
                self.closes_connection = true;
                Ok(Part::BodyUntilClosed)
            }
        }
    }
}

/// A number that consists of digits only.
fn number(text: &[u8], radix: u32) -> Option<usize> {
    let digits = str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    usize::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status and body of a response that arrives in parts of this size, and then the connection ends.
    fn receive(bytes: &[u8], size: usize) -> Result<(u16, Vec<u8>), &'static str> {
        let mut response = Response::new(64);
        for part in bytes.chunks(size) {
            response.push(part).map_err(|error| error.field)?;
        }
        response.handle_closed().map_err(|error| error.field)?;
        Ok((response.status(), response.take_body()))
    }

    #[test]
    fn a_body_has_a_length_or_chunks_or_ends_with_the_connection() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200\ncontent-length:5\n\nhello",
            "HTTP/1.0 200 OK\r\nServer: x\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\nExpires: x\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        ] {
            for size in [1, 2, 7, 1_000] {
                assert_eq!(receive(text.as_bytes(), size), Ok((200, b"hello".to_vec())), "{text}");
            }
        }
        assert_eq!(receive(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 9), Ok((404, Vec::new())));
        assert_eq!(receive(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", 9), Ok((304, Vec::new())));
    }

    #[test]
    fn hostile_responses_are_errors() {
        let long_line = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(MAX_LINE));
        let many_lines = format!("HTTP/1.1 200 OK\r\n{}", "a:b\r\n".repeat(101));
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(101);
        for (text, field) in [
            ("", "response before the connection was closed"),
            ("HTTP/1.1 200", "response"),
            ("HTTP/2 200 OK\r\n\r\n", "status line"),
            ("HTTP/1.1 99 X\r\n\r\n", "status line"),
            ("HTTP/1.1 +200 X\r\n\r\n", "status line"),
            ("SSH-2.0-x\r\n", "status line"),
            ("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "header"),
            (&long_line, "header"),
            (&many_lines, "header"),
            (&interim, "header"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n", "body"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "length of the body"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "length of the body"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "response"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nhell", "response"),
            ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", "content encoding"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "transfer encoding"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "size of a chunk"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", "size of a chunk"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", "body"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n", "chunk"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", "response"),
        ] {
            for size in [1, 1_000_000] {
                assert_eq!(receive(text.as_bytes(), size), Err(field), "{text:.80}");
            }
        }
        let endless = [b"HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 65][..]].concat();
        assert_eq!(receive(&endless, 10), Err("body"));
    }

    #[test]
    fn a_connection_is_kept_unless_the_server_says_otherwise() {
        let closes = |head: &str| {
            let mut response = Response::new(64);
            response.push(head.as_bytes()).unwrap();
            response.closes_connection()
        };
        assert!(!closes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(closes("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n"));
        assert!(closes("HTTP/1.1 200 OK\r\n\r\n"));
        assert!(closes("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(!closes("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"));
    }

    #[test]
    fn a_request_names_the_server() {
        let mut out = Vec::new();
        emit_request(b"/info.json", ([192, 0, 2, 1], 30_120).into(), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("GET /info.json HTTP/1.1\r\nHost: 192.0.2.1:30120\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\n"));
    }
}
