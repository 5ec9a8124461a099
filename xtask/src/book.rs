//! `cargo xtask book`: builds the book. mdBook is a library of a program of its own, so that other tasks need not compile it.

use crate::{Stop, progress, workspace::Workspace};
use std::process::Stdio;

/// Compiles the program, and builds the book.
pub fn run(workspace: &Workspace) -> Result<(), Stop> {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--package", "rallypoint-book"]).stdin(Stdio::null());
    let status = progress::run(command, "book").map_err(Stop::while_doing("build the book"))?;
    if status.success() { Ok(()) } else { Err(Stop::Failed("the book could not be built".into())) }
}
