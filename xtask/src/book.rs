//! `cargo xtask book`: builds the book. mdBook is a library of a program of its own, so that other tasks need not compile it.

use crate::{Stop, progress, workspace::Workspace};
use std::process::{Command, Stdio};

/// Compiles the program, and builds the book.
pub fn run(workspace: &Workspace) -> Result<(), Stop> {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--package", "rallypoint-book"]);
    build(command)
}

/// Builds the book with the program of a build of the whole workspace. Alone, some of its dependencies have other features, and
/// are compiled again.
pub fn check(workspace: &Workspace) -> Result<(), Stop> {
    let mut command = workspace.cargo();
    command.args(["build", "--quiet", "--workspace", "--bins", "--examples"]).stdin(Stdio::null());
    if !progress::run(command, "book").map_err(Stop::while_doing("run cargo"))?.success() {
        return Err(Stop::Failed("the program that builds the book could not be compiled".into()));
    }
    let program = format!("rallypoint-book{}", std::env::consts::EXE_SUFFIX);
    build(workspace.program(workspace.target.join("debug").join(program)))
}

fn build(mut command: Command) -> Result<(), Stop> {
    command.stdin(Stdio::null());
    let status = progress::run(command, "book").map_err(Stop::while_doing("build the book"))?;
    if status.success() { Ok(()) } else { Err(Stop::Failed("the book could not be built".into())) }
}
