//! `cargo xtask bench c`: what calls through librallypoint cost, compared with calls of the Rust API.
//!
//! Both programs make the same calls in the same order; instructions are counted, so that other load does not matter.
#![forbid(unsafe_code)]

mod exchange;

use rallypoint_bench::{Table, instructions_of, instructions_per_operation};
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// Number of messages there and back. Twice as many are run as well, and the difference counts.
const ITERATIONS: u64 = 20_000;

/// Maximum extra cost of calls through C, in percent.
const GOAL: f64 = 5.0;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => compare(),
        ["--op", "rust", "--iterations", count] => {
            exchange::run(count.parse().unwrap_or(1)).map_err(|error| error.to_string())
        }
        _ => Err("unknown arguments".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compare() -> Result<(), String> {
    let rust = instructions_per_operation("rust", ITERATIONS).map_err(|error| error.to_string())?;
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = compile(directory.path()).map_err(|error| error.to_string())?;
    let c = instructions_of(&program, ITERATIONS).map_err(|error| error.to_string())?;
    let extra = (c / rust - 1.0) * 100.0;
    println!("## Calls through C\n");
    println!("A message of 64 bytes there and back on loopback, not encrypted: the same calls in each iteration.\n");
    let mut table = Table::new(&["interface", "instructions in user space", "more than Rust"]);
    table.row(["Rust", &format!("{rust:.0}"), ""]);
    table.row(["C", &format!("{c:.0}"), &format!("{extra:.1} % (goal: under {GOAL} %)")]);
    print!("{table}");
    Ok(())
}

/// Compiles the C program and links it with the library of the same profile, which is beside this program.
fn compile(directory: &Path) -> io::Result<PathBuf> {
    let libraries = env::current_exe()?.parent().map(Path::to_path_buf).unwrap_or_default();
    let source = directory.join("exchange.c");
    fs::write(&source, include_str!("exchange.c"))?;
    let program = directory.join("exchange");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-I", concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/ffi/include"), "-o"]);
    compiler.arg(&program).arg(&source).arg("-L").arg(&libraries);
    compiler.arg(format!("-Wl,-rpath,{}", libraries.display())).arg("-lrallypoint");
    if compiler.status()?.success() { Ok(program) } else { Err(io::Error::other("the C program cannot be compiled")) }
}
