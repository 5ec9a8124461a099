//! Printing on standard output and standard error.

use crate::{
    error::CommandError,
    output::terminal::{Terminal, stderr_width, wrap_hanging},
};
use std::{
    fmt,
    io::{self, IsTerminal, Write},
};

/// Prints text on standard output.
///
/// # Errors
/// If it cannot be written. A reader that has closed the pipe is no error: it has read enough (`| head`).
pub fn print_stdout(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(CommandError::failed),
    }
}

/// Prints a line on standard output, wrapped between words if that is a terminal. A closed standard output is ignored.
pub fn print_line(line: &str) {
    let width = io::stdout().is_terminal().then(|| Terminal::of_stdout().width).flatten();
    let text = width.map_or_else(|| line.to_owned(), |width| wrap_hanging(line, width));
    let _ = writeln!(io::stdout(), "{text}");
}

/// Prints a line on standard error, wrapped between words if that is a terminal. A closed standard error is ignored: it is no
/// reason to stop.
pub fn print_stderr(line: impl fmt::Display) {
    let text = line.to_string();
    let text = stderr_width().map_or_else(|| text.clone(), |width| wrap_hanging(&text, width));
    let _ = writeln!(io::stderr(), "{text}");
}
