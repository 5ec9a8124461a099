//! Builds the sockets of other platforms on Linux, beside everything that is built already.
//!
//! The flag is given to the crates of the workspace alone: with `RUSTFLAGS`, their dependencies would be compiled again, into a
//! directory of their own. This program is then the wrapper that Cargo runs for each crate of the workspace.

use crate::{Stop, Workspace};
use std::process::{Command, exit};

/// The flag, as `RUSTFLAGS`.
pub const FLAGS: &str = "--cfg rallypoint_portable";

/// Set for this program when Cargo runs it around the compiler.
pub const WRAPPER: &str = "RALLYPOINT_PORTABLE_WRAPPER";

/// Makes a Cargo command build these sockets.
pub fn configure(workspace: &Workspace, command: &mut Command) {
    command.env("RUSTC_WORKSPACE_WRAPPER", &workspace.program).env(WRAPPER, "1");
    // It is compiled for these tests alone, which send little: optimising it takes longer than they do.
    command.args(["--config", "profile.dev.package.rallypoint-session-proto.opt-level=0"]);
}

/// Runs the compiler, the first argument, with the others and the flag.
pub fn run_wrapper(arguments: &[String]) -> Result<(), Stop> {
    let [compiler, arguments @ ..] = arguments else { return Err(Stop::Usage("the compiler is missing".into())) };
    let status = Command::new(compiler).args(arguments).args(FLAGS.split(' ')).status();
    let status = status.map_err(Stop::while_doing("run the compiler"))?;
    if status.success() { Ok(()) } else { exit(status.code().unwrap_or(1)) }
}
