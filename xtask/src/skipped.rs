//! Tests that skip themselves: each appends a line to a file, which the summary of a run lists.

use crate::{Stop, workspace::Workspace};
use std::{fs, io::ErrorKind, path::PathBuf};

/// The environment variable that names the file. A line is `TEST: REASON`.
pub const VARIABLE: &str = "RALLYPOINT_SKIPPED";

pub fn path(workspace: &Workspace) -> PathBuf {
    workspace.target.join("skipped-tests.txt")
}

/// Removes the file of the previous run.
pub fn clear(workspace: &Workspace) -> Result<(), Stop> {
    match fs::remove_file(path(workspace)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Stop::while_doing("remove the list of skipped tests")(error))
        }
        _ => Ok(()),
    }
}

/// The lines of this run, sorted, each once.
pub fn read(workspace: &Workspace) -> Vec<String> {
    let text = fs::read_to_string(path(workspace)).unwrap_or_default();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}
