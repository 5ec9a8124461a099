//! Targets from the command line, from a file, or from standard input.

use crate::error::CommandError;
use rallypoint_query::Target;
use std::{
    fs::File,
    io::{BufRead, BufReader, Read, stdin},
    path::{Path, PathBuf},
};

/// The targets of a scan.
#[derive(clap::Args, Clone, Debug)]
pub struct TargetArgs {
    // Not a doc comment, because of the brackets.
    #[arg(value_name = "TARGET", required_unless_present = "file")]
    #[arg(
        help = "Servers or lists: host, host:port, [v6]:port, bloodmasters://host, session://host, lobby://host, https://host/list; - for standard input"
    )]
    targets: Vec<String>,

    /// Read further targets from a file, one per line; # begins a comment; - is standard input
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Maximum length of a line, in bytes: longer than any target.
const MAX_LINE: u64 = 4_096;

impl TargetArgs {
    /// All targets, in order.
    pub fn targets(&self) -> Result<Vec<Target>, CommandError> {
        let mut targets = Vec::new();
        for text in &self.targets {
            if text == "-" {
                read(stdin(), "standard input", &mut targets)?;
            } else {
                targets.push(
                    text.parse::<Target>()
                        .map_err(|why| CommandError::Usage(format!("{text:?} is not a target: {why}")))?,
                );
            }
        }
        match &self.file {
            Some(file) if file == Path::new("-") => read(stdin(), "standard input", &mut targets)?,
            Some(file) => {
                let name = file.display().to_string();
                let open = File::open(file);
                let open = open.map_err(|error| CommandError::failed(format!("cannot read {name}: {error}")))?;
                read(open, &name, &mut targets)?;
            }
            None => {}
        }
        if targets.is_empty() {
            return Err(CommandError::Usage("there are no targets: no line contains one".into()));
        }
        Ok(targets)
    }
}

fn read(from: impl Read, name: &str, targets: &mut Vec<Target>) -> Result<(), CommandError> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| CommandError::failed(format!("cannot read {name}: {error}")))? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.split('#').next().unwrap_or_default().trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        if !text.is_empty() {
            targets.push(text.parse::<Target>().map_err(|why| {
                let shown: String = text.chars().take(100).collect();
                CommandError::Usage(format!("{name}:{number}: {shown:?} is not a target: {why}"))
            })?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Result<Vec<String>, String> {
        let mut targets = Vec::new();
        match read(text.as_bytes(), "list", &mut targets) {
            Ok(()) => Ok(targets.iter().map(ToString::to_string).collect()),
            Err(failure) => Err(failure.to_string()),
        }
    }

    #[test]
    fn a_file_has_one_target_per_line() {
        let text = "\u{feff}# mine\r\nplay.example.org\r\n\n  192.0.2.1:7 # the old one\nsession://[::1]";
        assert_eq!(lines(text), Ok(vec!["play.example.org".into(), "192.0.2.1:7".into(), "session://[::1]".into()]));
    }

    #[test]
    fn an_invalid_target_is_reported_with_its_line() {
        let error = lines("a\n\nb c\n").unwrap_err();
        assert!(error.contains("list:3: \"b c\" is not a target: expected"), "{error}");
        assert!(lines(&"x".repeat(100_000)).is_err());
    }
}
