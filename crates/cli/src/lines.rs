//! Lines that a person types, or that come through a pipe.

use std::io::{self, BufRead, Read};
use tokio::sync::mpsc::{Receiver, channel};

/// So many lines are read ahead.
const AHEAD: usize = 16;

/// The longest line that can be said, in characters.
pub const LONGEST_LINE: usize = 500;

/// Why a line that is too long was not said.
pub fn too_long(characters: usize) -> String {
    format!("a line of {characters} characters was not said: {LONGEST_LINE} are the most")
}

/// Lines as they come, for a program that does other things, too.
pub struct Lines(Receiver<Line>);

/// A line, or how many characters it has, if they are too many.
pub type Line = Result<String, usize>;

impl Lines {
    /// The lines of standard input. A thread of its own reads them, because a read of a terminal cannot be waited for
    /// together with other things everywhere.
    pub fn of_stdin() -> Self {
        let (sender, receiver) = channel(AHEAD);
        // If there is no thread, there is no input: as if it had ended.
        let _ = std::thread::Builder::new().name("input".into()).spawn(move || {
            let mut input = io::stdin().lock();
            while let Ok(Some(line)) = read_line(&mut input)
                && sender.blocking_send(line).is_ok()
            {}
        });
        Self(receiver)
    }

    /// The next line; nothing when the input has ended.
    pub async fn next(&mut self) -> Option<Line> {
        self.0.recv().await
    }
}

/// Reads to the end of a line, however far that is, and keeps no more of it than can be said.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    // A character has at most four bytes, and a line may end in two more.
    let most = 4 * LONGEST_LINE + 2;
    let (mut line, mut rest) = (Vec::new(), 0);
    if Read::take(&mut *input, most as u64).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() == most && !line.ends_with(b"\n") {
        rest = skip_line(input)?;
    }
    let text = String::from_utf8_lossy(&line);
    let text = text.trim_end_matches(['\r', '\n']);
    let characters = text.chars().count() + rest;
    Ok(Some(if characters <= LONGEST_LINE { Ok(text.to_owned()) } else { Err(characters) }))
}

/// How many characters there are up to the end of the line.
fn skip_line(input: &mut impl BufRead) -> io::Result<usize> {
    let mut characters = 0;
    loop {
        let bytes = input.fill_buf()?;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        // Every character has one byte that is not a continuation.
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
    fn lines_that_are_too_long_are_counted_and_do_not_spoil_the_next() {
        let long = "ä".repeat(65_536);
        let just = "€".repeat(LONGEST_LINE);
        let text = format!("one\r\n{long}\n{just}\n{just}x\nlast");
        let mut input = io::BufReader::with_capacity(1_000, text.as_bytes());
        let mut next = || read_line(&mut input).unwrap();
        assert_eq!(next(), Some(Ok("one".into())));
        assert_eq!(next(), Some(Err(65_536)));
        assert_eq!(next(), Some(Ok(just.clone())));
        assert_eq!(next(), Some(Err(LONGEST_LINE + 1)));
        assert_eq!(next(), Some(Ok("last".into())));
        assert_eq!(next(), None);
    }
}
