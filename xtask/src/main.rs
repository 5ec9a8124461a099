//! Development tasks: `cargo xtask --help` lists them.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod book;
mod chapters;
mod check;
mod deny;
mod examples;
mod figures;
mod fuzz;
mod hygiene;
mod package;
mod portability;
mod portable;
mod progress;
mod promises;
mod readmes;
mod requirements;
mod screenshots;
mod skipped;
mod soak;
mod steps;
#[cfg(test)]
mod temporary;
mod walks;
mod workspace;

use crate::{args::Args, workspace::Workspace};
use std::process::ExitCode;

const HELP: &str = "\
Development tasks.

cargo xtask test [--quick | --full | --portable] [--list] [--only STEP]...
    Sets up what the tests need (as root on a Debian-like system it installs missing packages, otherwise it names them
    and stops), then checks format, lints and documentation and runs the tests. Tests that skip themselves are listed
    and counted at the end. CI runs exactly `cargo xtask test`.
      cargo xtask test                  everything, with a part of the simulated networks
      cargo xtask test --quick          format, lints, unit and protocol tests: two minutes when built
      cargo xtask test --full           everything, with all of them: before a change is finished
      cargo xtask test --portable       the sockets that other platforms use, on Linux: a part of --full
      cargo xtask test --list           the steps, and the command behind each
      cargo xtask test --only clippy    one step

cargo xtask check --target TRIPLE...
    Type-checks the crates for another platform, if its standard library is installed; otherwise it reports that, and
    skips it. Crates with C code need a compiler for that platform, except for macOS, where it is left out.
      cargo xtask check --target x86_64-pc-windows-gnu --target aarch64-apple-darwin

cargo xtask fuzz [--seconds N] [--executions N] [--jobs N] [--sanitizer NAME] [--minimise] [TARGET]
    Fuzzes one target or all of them for N seconds each (default: 60). With --executions, round after round, until all
    targets together have run that many inputs, those of earlier runs included (target/fuzz/executions.txt); fast targets have
    longer, and the table goes into docs/benchmarks.md. A failing input is reported together with the commands that keep it as an
    ordinary test, and the exit code is 1.
      cargo xtask fuzz --seconds 300 --jobs 2     all targets for five minutes each, two at a time
      cargo xtask fuzz --minimise                 afterwards, keep in fuzz/corpus only the inputs that add coverage
      cargo xtask fuzz --sanitizer address NAME   slower; finds memory errors in dependencies

cargo xtask bench [--print] [SUITE]
    Measures one suite or all of them in release builds, and writes their sections of docs/benchmarks.md.
      cargo xtask bench                 all suites
      cargo xtask bench --print wire    one suite, printed only

cargo xtask book
    Builds the book (mdBook) from docs/ into target/book, and checks its links.

cargo xtask package [--profile NAME] [--program FILE] [--output DIR] [--version V] [deb | archive | dev | wheel | crates]
    Builds packages into target/packages. `deb` is the program with service, configuration, manual pages and completions as a
    Debian package, `archive` the same without a service to unpack anywhere (static with the musl target and musl-tools),
    `dev` library, header and pkg-config file (an archive, and a Debian package), `wheel` the Python package. `crates` makes the
    packages of Cargo, and compiles each from what is in it; nothing is published.
      cargo xtask package               all of them but crates
      cargo xtask package wheel         the wheel alone
      cargo xtask package --profile dev all, quickly built and slow
      cargo xtask package --program target/release/rallypoint deb    of a program that is built already

cargo xtask readmes
    Writes the README of each crate from the first page of its documentation. `cargo xtask test` compares them.

cargo xtask screenshots
    Takes the pictures of the README (docs/pictures) from the demo, with chromium and tmux. Some names need a font such as Debian's
    fonts-noto-cjk.

cargo xtask soak [--minutes N] [--print]
    Runs a lobby for N minutes (default: 60) under load, churn, junk, slow clients, reloads and restarts, and watches its
    memory, descriptors and latencies. The table goes into docs/benchmarks.md; if one of them grows, the exit code is 1.
";

/// Why a task ended early: one sentence for the user.
#[derive(Debug)]
pub enum Stop {
    /// Invalid command line: exit code 2.
    Usage(String),
    /// An operation or a check failed: exit code 1.
    Failed(String),
}

impl Stop {
    /// For `map_err` on an I/O operation: adds what was attempted.
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
    if std::env::var_os(check::STUB_COMPILER).is_some() {
        return check::run_stub_compiler(&arguments);
    }
    if std::env::var_os(portable::WRAPPER).is_some() {
        return portable::run_wrapper(&arguments);
    }
    if arguments.is_empty() || arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("{HELP}");
        return Ok(());
    }
    let verb = arguments.remove(0);
    let workspace = Workspace::here()?;
    let args = Args::new(arguments);
    match verb.as_str() {
        "test" => steps::run(&workspace, args),
        "check" => check::run(&workspace, args),
        "fuzz" => fuzz::run(&workspace, args),
        "book" => book::run(&workspace),
        "bench" => bench::run(&workspace, args),
        "package" => package::run(&workspace, args),
        "readmes" => readmes::write(&workspace),
        "screenshots" => screenshots::run(&workspace, args),
        "soak" => soak::run(&workspace, args),
        _ => Err(Stop::Usage(format!(
            "unknown task `{verb}`; the tasks are test, check, fuzz, bench, book, package, readmes, screenshots and soak (see cargo xtask --help)"
        ))),
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
        for word in [
            "test",
            "--quick",
            "--full",
            "--portable",
            "check",
            "--target",
            "--list",
            "--only",
            "fuzz",
            "--seconds",
            "--jobs",
            "--sanitizer",
            "--minimise",
            "bench",
            "--print",
            "soak",
            "--minutes",
            "--executions",
            "package",
            "--profile",
            "readmes",
            "book",
        ] {
            assert!(HELP.contains(word), "{word}");
        }
    }
}
