//! Running the program to completion.

use crate::binary::program;
use std::{
    ffi::OsStr,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

/// A command that runs the program in `home`, with an empty environment and nothing on standard input.
#[must_use]
pub fn rallypoint(home: &Path) -> Command {
    let mut command = Command::new(program());
    command.env_clear().env("HOME", home).current_dir(home).stdin(Stdio::null());
    command
}

/// Runs the program with these arguments to completion.
///
/// # Panics
/// If it cannot be started.
pub fn run<A: AsRef<OsStr>>(home: &Path, args: impl IntoIterator<Item = A>) -> Output {
    rallypoint(home).args(args).output().expect("the program starts")
}

/// Runs the program to completion with this text on its standard input.
///
/// # Panics
/// If it cannot be started, or does not read its input.
#[must_use]
pub fn run_with_input(home: &Path, args: &[&str], input: &str) -> Output {
    let mut command = rallypoint(home);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    stdin.write_all(input.as_bytes()).expect("the program reads its input");
    drop(stdin);
    child.wait_with_output().expect("the program's output")
}

/// Runs `rallypoint ARGUMENTS` through a shell in a terminal of 24 rows, and returns what the terminal received, without
/// carriage returns.
///
/// # Panics
/// If `script` of util-linux is not installed.
#[must_use]
pub fn run_in_terminal(home: &Path, columns: u16, arguments: &str, env: &[(&str, &str)]) -> String {
    let command = format!("stty cols {columns} rows 24; {} {arguments}", program().display());
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env_clear()
        .env("HOME", home)
        .envs([("PATH", "/usr/bin:/bin"), ("TERM", "xterm")])
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("script (util-linux) is installed");
    stdout(&output).replace('\r', "")
}

/// Standard output as text.
///
/// # Panics
/// If it is not UTF-8.
#[must_use]
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("standard output is UTF-8")
}

/// Standard error as text.
///
/// # Panics
/// If it is not UTF-8.
#[must_use]
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("standard error is UTF-8")
}
