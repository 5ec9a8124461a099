//! Targets from the command line, from a file, or from standard input.

use crate::error::{CommandError, describe_io};
use rallypoint_query::Target;
use std::{
    fmt,
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
        help = "Servers or lists: host, host:port, [v6]:port, PROTOCOL://host, such as session://host, lobby://host, https://host/list; - for standard input"
    )]
    targets: Vec<String>,

    /// Read further targets from a file, one per line; # begins a comment; - is standard input
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,
}

/// The targets of a scan, as they were read.
#[derive(Debug, Default)]
pub struct ReadTargets {
    /// All valid targets, in order.
    pub targets: Vec<Target>,
    /// Lines of files that are not targets. They do not stop a scan of the others.
    pub invalid: Vec<InvalidLine>,
}

/// A line that is not a target.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidLine {
    /// File and line: `servers.txt:3`.
    pub place: String,
    /// The beginning of the line, and what was expected.
    pub message: String,
}

impl fmt::Display for InvalidLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Maximum length of a line, in bytes: longer than any target.
const MAX_LINE: u64 = 4_096;

impl TargetArgs {
    /// Reads all targets. An invalid argument is an error, and so are files without a target.
    pub fn read(&self) -> Result<ReadTargets, CommandError> {
        let mut read_targets = ReadTargets::default();
        for text in &self.targets {
            if text == "-" {
                read(stdin(), "standard input", &mut read_targets)?;
            } else {
                read_targets.targets.push(
                    text.parse::<Target>()
                        .map_err(|why| CommandError::Usage(format!("{text:?} is not a target: {why}")))?,
                );
            }
        }
        match &self.file {
            Some(file) if file == Path::new("-") => read(stdin(), "standard input", &mut read_targets)?,
            Some(file) => {
                let name = file.display().to_string();
                let open = File::open(file);
                let open =
                    open.map_err(|error| CommandError::Usage(format!("cannot read {name}: {}", describe_io(&error))))?;
                read(open, &name, &mut read_targets)?;
            }
            None => {}
        }
        match (&read_targets.targets[..], &read_targets.invalid[..]) {
            ([], []) => Err(CommandError::Usage("there are no targets: no line contains one".into())),
            ([], [invalid, ..]) => Err(CommandError::Usage(invalid.to_string())),
            _ => Ok(read_targets),
        }
    }
}

fn read(from: impl Read, name: &str, read_targets: &mut ReadTargets) -> Result<(), CommandError> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| CommandError::Usage(format!("cannot read {name}: {}", describe_io(&error))))? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.split('#').next().unwrap_or_default().trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        if text.is_empty() {
            continue;
        }
        match text.parse::<Target>() {
            Ok(target) => read_targets.targets.push(target),
            Err(why) => {
                let text: String = text.chars().take(100).collect();
                let message = format!("{text:?} is not a target: {why}");
                read_targets.invalid.push(InvalidLine { place: format!("{name}:{number}"), message });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (Vec<String>, Vec<String>) {
        let mut read_targets = ReadTargets::default();
        read(text.as_bytes(), "list", &mut read_targets).unwrap();
        let targets = read_targets.targets.iter().map(ToString::to_string).collect();
        (targets, read_targets.invalid.into_iter().map(|line| line.to_string()).collect())
    }

    #[test]
    fn a_file_has_one_target_per_line() {
        let text = "\u{feff}# mine\r\nplay.example.org\r\n\n  192.0.2.1:7 # the old one\nsession://[::1]";
        let (targets, invalid) = read_text(text);
        assert_eq!(
            (&targets[..], invalid.len()),
            (&["play.example.org", "192.0.2.1:7", "session://[::1]"].map(str::to_owned)[..], 0)
        );
    }

    #[test]
    fn an_invalid_target_is_reported_with_its_line_and_the_others_are_kept() {
        let (targets, invalid) = read_text("a\n\nb c\nd\n");
        assert_eq!(targets, ["a", "d"]);
        assert_eq!(invalid.len(), 1);
        assert!(invalid[0].contains("list:3: \"b c\" is not a target: expected"), "{}", invalid[0]);
        let (targets, invalid) = read_text(&"x".repeat(10_000));
        assert!(targets.is_empty() && !invalid.is_empty());
    }
}
