//! Lines of standard input, typed or piped.

use rallypoint_room::{Line, MAX_LINE};
use std::io::{self, BufRead, Read};
use tokio::sync::mpsc::{Receiver, channel};

/// Number of lines read ahead.
const READ_AHEAD: usize = 16;

/// An asynchronous reader of lines.
pub struct InputLines(Receiver<Line>);

impl InputLines {
    /// Reads standard input in a thread of its own: not every system can poll a terminal.
    pub fn from_stdin() -> Self {
        let (sender, receiver) = channel(READ_AHEAD);
        // Without a thread the input counts as ended.
        let _ = std::thread::Builder::new().name("input".into()).spawn(move || {
            let mut input = io::stdin().lock();
            while let Ok(Some(line)) = read_line(&mut input)
                && sender.blocking_send(line).is_ok()
            {}
        });
        Self(receiver)
    }

    /// The next line; `None` at the end of the input.
    pub async fn next(&mut self) -> Option<Line> {
        self.0.recv().await
    }
}

/// Reads up to the end of a line of any length, but keeps no more than the maximum.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    // A character has at most four bytes, and a line ending two.
    let max_bytes = 4 * MAX_LINE + 2;
    let mut line = Vec::new();
    let mut rest = 0;
    if Read::take(&mut *input, max_bytes as u64).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() == max_bytes && !line.ends_with(b"\n") {
        rest = skip_line(input)?;
    }
    let text = String::from_utf8_lossy(&line);
    let text = text.trim_end_matches(['\r', '\n']);
    let characters = text.chars().count() + rest;
    Ok(Some(if characters <= MAX_LINE { Ok(text.to_owned()) } else { Err(characters) }))
}

/// Skips the rest of a line and returns the number of its characters.
fn skip_line(input: &mut impl BufRead) -> io::Result<usize> {
    let mut characters = 0;
    loop {
        let bytes = input.fill_buf()?;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        // Every character has one byte that is not a continuation byte.
        characters += part.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        let read = end.map_or(bytes.len(), |end| end + 1);
        input.consume(read);
        if end.is_some() || read == 0 {
            return Ok(characters);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_over_the_maximum_are_counted_and_the_next_one_is_read_normally() {
        let long = "ä".repeat(65_536);
        let just = "€".repeat(MAX_LINE);
        let text = format!("one\r\n{long}\n{just}\n{just}x\nlast");
        let mut input = io::BufReader::with_capacity(1_000, text.as_bytes());
        let mut next = || read_line(&mut input).unwrap();
        assert_eq!(next(), Some(Ok("one".into())));
        assert_eq!(next(), Some(Err(65_536)));
        assert_eq!(next(), Some(Ok(just.clone())));
        assert_eq!(next(), Some(Err(MAX_LINE + 1)));
        assert_eq!(next(), Some(Ok("last".into())));
        assert_eq!(next(), None);
    }
}
