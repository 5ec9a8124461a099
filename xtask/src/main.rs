//! The project's own tasks: `cargo xtask --help` lists them.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod examples;
mod fuzz;
mod hygiene;
mod requirements;
mod steps;
#[cfg(test)]
mod temporary;
mod workspace;

use crate::{args::Args, workspace::Workspace};
use std::process::ExitCode;

const HELP: &str = "\
The project's own tasks.

cargo xtask test [--list] [--only STEP]...
    Sets up what the tests need (as root on a Debian-like system it installs what is missing, otherwise it names the
    packages and stops), then checks format, lints and documentation and runs all tests. CI runs exactly this.
      cargo xtask test                  everything
      cargo xtask test --list           what the steps are, and the command behind each
      cargo xtask test --only clippy    one step

cargo xtask fuzz [--seconds N] [--jobs N] [--sanitizer NAME] [--minimise] [TARGET]
    Searches for inputs that break a fuzz target: every target or one, for N seconds each (60 unless told). An input
    that is found is named together with the way to keep it as an ordinary test, and the exit code is 1.
      cargo xtask fuzz --seconds 300 --jobs 2     every target for five minutes, two at a time
      cargo xtask fuzz --minimise                 afterwards, keep in fuzz/corpus only the inputs that add something
      cargo xtask fuzz --sanitizer address NAME   slower; finds misuse of memory in dependencies

cargo xtask bench [--print] [SUITE]
    Measures in release mode and writes the suite's section of docs/benchmarks.md: every suite or one.
      cargo xtask bench                 everything
      cargo xtask bench --print wire    one suite, only printed
";

/// Why a task ended early. The text is one sentence for the person at the terminal.
#[derive(Debug)]
pub enum Stop {
    /// The command line was not understood: exit code 2.
    Usage(String),
    /// Something did not work, or a check failed: exit code 1.
    Failed(String),
}

impl Stop {
    /// For `map_err` on operations of the system: what was tried, and why it did not work.
    pub fn while_doing(what: &str) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::Failed(format!("could not {what}: {error}"))
    }
}

fn main() -> ExitCode {
    let (code, message) = match run(std::env::args().skip(1).collect()) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Stop::Usage(message)) => (2, message),
        Err(Stop::Failed(message)) => (1, message),
    };
    eprintln!("cargo xtask: {message}");
    ExitCode::from(code)
}

fn run(mut arguments: Vec<String>) -> Result<(), Stop> {
    if arguments.is_empty() || arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("{HELP}");
        return Ok(());
    }
    let verb = arguments.remove(0);
    let (workspace, args) = (Workspace::here()?, Args::new(arguments));
    match verb.as_str() {
        "test" => steps::run(&workspace, args),
        "fuzz" => fuzz::run(&workspace, args),
        "bench" => bench::run(&workspace, args),
        _ => Err(Stop::Usage(format!("there is no task `{verb}`, only test, fuzz and bench (see cargo xtask --help)"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_task_is_a_usage_error_in_one_sentence() {
        let Err(Stop::Usage(message)) = run(vec!["dance".into()]) else { panic!("it was accepted") };
        assert!(message.contains("`dance`") && message.lines().count() == 1);
    }

    #[test]
    fn the_help_names_every_task_and_option() {
        for word in
            ["test", "--list", "--only", "fuzz", "--seconds", "--jobs", "--sanitizer", "--minimise", "bench", "--print"]
        {
            assert!(HELP.contains(word), "{word}");
        }
    }
}
