//! Lines that a person types, or that come through a pipe.

use std::io::BufRead;
use tokio::sync::mpsc::{Receiver, channel};

/// So many lines are read ahead.
const AHEAD: usize = 16;

/// The longest line, in bytes; what is longer is cut into several.
const LONGEST: u64 = 4_096;

/// Lines as they come, for a program that does other things, too.
pub struct Lines(Receiver<String>);

impl Lines {
    /// The lines of standard input. A thread of its own reads them, because a read of a terminal cannot be waited for
    /// together with other things everywhere.
    pub fn of_stdin() -> Self {
        let (sender, receiver) = channel(AHEAD);
        // If there is no thread, there is no input: as if it had ended.
        let _ = std::thread::Builder::new().name("input".into()).spawn(move || {
            let mut input = std::io::stdin().lock();
            loop {
                let mut line = Vec::new();
                match std::io::Read::take(&mut input, LONGEST).read_until(b'\n', &mut line) {
                    Ok(read) if read > 0 => {}
                    _ => return,
                }
                let line = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self(receiver)
    }

    /// The next line; nothing when the input has ended.
    pub async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }
}
