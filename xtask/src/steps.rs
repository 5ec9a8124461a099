//! `cargo xtask test`: runs one step after the other, until one fails.

use crate::{
    Stop, args::Args, book, deny, examples, hygiene, package, portable, progress, requirements, skipped,
    workspace::Workspace,
};
use std::{
    env,
    ffi::OsString,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Arguments that select the packages whose tests run on other platforms than Linux. The others start programs and other
/// services, send signals, or look at files of Linux.
macro_rules! portable_packages {
    () => {
        "--package rallypoint-wire --package rallypoint-limit --package rallypoint-machine --package rallypoint-lobby-proto \
         --package rallypoint-query-proto --package rallypoint-session-proto --package rallypoint-udp \
         --package rallypoint-query --package rallypoint-session"
    };
}

/// Arguments that select all packages but the one that builds the book: a sixth of all libraries are only for that.
macro_rules! all_packages {
    () => {
        "--workspace --exclude rallypoint-book"
    };
}

/// All steps, the quick ones first. They build the same packages with the same features and flags, so that nothing is
/// compiled twice: warnings become errors by arguments, not by `RUSTFLAGS`, and `--examples` makes Cargo enable the
/// features that only tests request.
const STEPS: &[Step] = &[
    Step::internal("hygiene", "no stray paths, big files, dead links, stale walks", hygiene::check),
    Step::internal("deny", "licences, banned crates and sources of libraries: deny.toml", deny::check),
    Step::cargo("fmt", "the code is formatted", &["fmt --all --check"]),
    Step::cargo("clippy", "no warnings", &[concat!("clippy ", all_packages!(), " --all-targets -- -D warnings")])
        .elsewhere(&[
            "clippy --workspace --exclude rallypoint-book --exclude rallypoint-bench --exclude rallypoint-harness --exclude rallypoint-fuzz \
             -- -D warnings",
            concat!("clippy --tests ", portable_packages!(), " -- -D warnings"),
        ])
        .takes(170),
    Step::cargo(
        "features",
        "no warnings without the features that a program can do without",
        &[
            "clippy --package rallypoint-session --package rallypoint-udp --no-default-features -- -D warnings",
            "clippy --package rallypoint-wire --no-default-features -- -D warnings",
        ],
    )
    .takes(20)
    .only_in(&[Extent::Normal, Extent::Full]),
    Step::cargo("doc", "no broken documentation", &["doc --workspace --no-deps --exclude rallypoint-book --lib --bins --examples"])
        .elsewhere(&["doc --workspace --exclude rallypoint-book --exclude rallypoint-bench --no-deps --lib --bins"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .after_clippy()
        .takes(15)
        .only_in(&[Extent::Normal, Extent::Full]),
    Step::cargo("unit", "all unit tests", &[concat!("nextest run ", all_packages!(), " --lib --bins --no-tests=fail")])
        .elsewhere(&[concat!("nextest run --lib --no-tests=fail ", portable_packages!())])
        .takes(60)
        .only_in(&[Extent::Quick]),
    Step::cargo(
        "protocol",
        "tests of the protocol crates, with few seeds, without modules `full`",
        &["nextest run --profile partial --no-tests=fail --tests --package rallypoint-wire --package rallypoint-limit \
           --package rallypoint-lobby-proto --package rallypoint-query-proto --package rallypoint-session-proto"],
    )
    .env(SEEDS, "50")
    .takes(60)
    .only_in(&[Extent::Quick]),
    // The black-box tests start the programs that this builds.
    Step::cargo("build", "all programs and examples", &[concat!("build ", all_packages!(), " --bins --examples")])
        .elsewhere(&["build --package rallypoint --bins"])
        .takes(120)
        .only_in(&[Extent::Normal, Extent::Full]),
    Step::cargo(
        "tests",
        "all tests but the modules `full`, with a part of the seeds",
        &[concat!("nextest run --profile partial ", all_packages!(), " --no-tests=fail")],
    )
    .elsewhere(&[concat!("nextest run --profile partial --no-tests=fail ", portable_packages!())])
        .env(SEEDS, "250")
        .takes(510)
        .only_in(&[Extent::Normal]),
    Step::cargo("all-tests", "all tests, with all seeds", &[concat!("nextest run ", all_packages!(), " --no-tests=fail")])
        .elsewhere(&[concat!("nextest run --no-tests=fail ", portable_packages!())])
        .takes(600)
        .only_in(&[Extent::Full]),
    Step::cargo("doctests", "the examples in the documentation", &[concat!("test ", all_packages!(), " --doc --quiet")])
        .elsewhere(&[concat!("test --doc --quiet ", portable_packages!())])
        .takes(15)
        .only_in(&[Extent::Normal, Extent::Full]),
    Step::internal("examples", "the examples that end by themselves", examples::check)
        .elsewhere(&[])
        .takes(20)
        .only_in(&[Extent::Normal, Extent::Full]),
    Step::cargo(
        "book-tool",
        "the program that builds the book",
        &[
            "clippy --package rallypoint-book --all-targets -- -D warnings",
            "nextest run --package rallypoint-book --no-tests=fail",
        ],
    )
    .elsewhere(&[])
    .takes(60)
    .only_in(&[Extent::Full]),
    Step::internal("book", "the book is built, and its links lead somewhere", book::run)
        .takes(40)
        .only_in(&[Extent::Full]),
    Step::internal("crates", "each crate compiles from its package", package::crates::verify)
        .elsewhere(&[])
        .takes(150)
        .only_in(&[Extent::Full]),
    Step::cargo(
        "portable",
        "event loop, queries and sessions on the sockets of other platforms",
        &["nextest run --no-tests=fail --package rallypoint-udp --package rallypoint-query --package rallypoint-session"],
    )
    .portable()
    .elsewhere(&[])
    .takes(55)
    .only_in(&[Extent::Normal]),
    Step::cargo(
        "portable-all",
        "everything with sockets, on the sockets of other platforms",
        // A directory of its own, because the tests look for the program beside themselves.
        &["nextest run --target-dir target/portable --no-tests=fail --package rallypoint-udp \
           --package rallypoint-query --package rallypoint-session --package rallypoint-announce \
           --package rallypoint-lobby --package rallypoint"],
    )
    .portable()
    .elsewhere(&[])
    .takes(300)
    .only_in(&[Extent::Full, Extent::Portable]),
];

/// Whether everything can be tested here.
const IS_LINUX: bool = cfg!(target_os = "linux");

/// Number of simulated networks per property test of sessions. Without it the tests use the number that `--full` runs.
const SEEDS: &str = "RALLYPOINT_SEEDS";

/// Number of tests that nextest runs at once. One more than the number of cores, because tests with processes wait for
/// each other most of the time.
const TEST_THREADS: &str = "NEXTEST_TEST_THREADS";

/// How much a run checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Format, lints, unit and protocol tests: for the inner loop.
    Quick,
    /// The steps that CI runs.
    Normal,
    /// Everything, with all seeds of the property tests.
    Full,
    /// Only the sockets of other platforms.
    Portable,
}

pub fn run(workspace: &Workspace, mut args: Args) -> Result<(), Stop> {
    let list = args.flag("--list");
    let extent = match ["--quick", "--full", "--portable"].map(|name| args.flag(name)) {
        [true, false, false] => Extent::Quick,
        [false, true, false] => Extent::Full,
        [false, false, true] => Extent::Portable,
        [false, false, false] => Extent::Normal,
        _ => return Err(Stop::Usage("--quick, --full and --portable exclude each other".into())),
    };
    let mut steps = Vec::new();
    while let Some(name) = args.value::<String>("--only")? {
        let step = STEPS.iter().find(|step| step.name == name);
        steps.push(step.ok_or_else(|| Stop::Usage(format!("there is no step `{name}`, only {}", names().join(", "))))?);
    }
    if let Some(name) = args.last_name()? {
        return Err(Stop::Usage(format!("unexpected argument `{name}` (did you mean --only {name}?)")));
    }
    if steps.is_empty() {
        steps.extend(STEPS.iter().filter(|step| step.extents.contains(&extent)));
    }
    if list {
        for step in steps {
            println!("{:10} {:56} {}", step.name, step.summary, step.command());
        }
        return Ok(());
    }
    // The inner loop builds as Cargo does by itself.
    let workspace = &Workspace { is_incremental: extent == Extent::Quick, ..workspace.clone() };
    let jobs: Vec<_> = steps.iter().map(|step| step.name).collect();
    requirements::provide(workspace, &jobs)?;
    workspace.heading(&announcement(&steps));
    run_each(workspace, &steps)
}

pub fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// The number of steps and their expected duration.
fn announcement(steps: &[&Step]) -> String {
    let count = steps.len();
    let noun = if count == 1 { "step" } else { "steps" };
    let seconds: u64 = steps.iter().map(|step| step.cold_seconds).sum();
    let duration = match seconds.div_ceil(60) {
        0 | 1 => "a minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    };
    format!("{count} {noun}, about {duration} on two cores if nothing is built yet")
}

struct Step {
    name: &'static str,
    summary: &'static str,
    work: Work,
    /// The commands on platforms other than Linux, if they differ; none if nothing is done there.
    elsewhere: Option<&'static [&'static str]>,
    /// One environment variable, for Cargo commands.
    env: Option<(&'static str, &'static str)>,
    /// Whether the sockets of other platforms are built.
    is_portable: bool,
    /// Whether the crates as Clippy has checked them are used, instead of checking all again.
    is_after_clippy: bool,
    extents: &'static [Extent],
    /// Expected duration in seconds on two cores, when only the previous steps have built something.
    cold_seconds: u64,
}

#[derive(Clone, Copy)]
enum Work {
    /// Cargo commands: their arguments, separated by blanks.
    Cargo(&'static [&'static str]),
    /// A function of this program.
    Internal(fn(&Workspace) -> Result<(), Stop>),
}

impl Step {
    const fn new(name: &'static str, summary: &'static str, work: Work) -> Self {
        let extents = &[Extent::Quick, Extent::Normal, Extent::Full];
        Self {
            name,
            summary,
            work,
            elsewhere: None,
            env: None,
            is_portable: false,
            is_after_clippy: false,
            extents,
            cold_seconds: 2,
        }
    }

    const fn cargo(name: &'static str, summary: &'static str, commands: &'static [&'static str]) -> Self {
        Self::new(name, summary, Work::Cargo(commands))
    }

    const fn internal(name: &'static str, summary: &'static str, check: fn(&Workspace) -> Result<(), Stop>) -> Self {
        Self::new(name, summary, Work::Internal(check))
    }

    const fn elsewhere(mut self, commands: &'static [&'static str]) -> Self {
        self.elsewhere = Some(commands);
        self
    }

    const fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env = Some((name, value));
        self
    }

    const fn portable(mut self) -> Self {
        self.is_portable = true;
        self
    }

    const fn after_clippy(mut self) -> Self {
        self.is_after_clippy = true;
        self
    }

    const fn takes(mut self, cold_seconds: u64) -> Self {
        self.cold_seconds = cold_seconds;
        self
    }

    const fn only_in(mut self, extents: &'static [Extent]) -> Self {
        self.extents = extents;
        self
    }

    /// The commands of this step on this platform; `None` if there are none.
    fn work(&self, is_linux: bool) -> Option<Work> {
        match self.elsewhere {
            Some([]) if !is_linux => None,
            Some(commands) if !is_linux => Some(Work::Cargo(commands)),
            _ => Some(self.work),
        }
    }

    /// The command that repeats this step alone.
    fn command(&self) -> String {
        let env = self.env.map(|(name, value)| format!("{name}=\"{value}\" ")).unwrap_or_default();
        match self.work(IS_LINUX).unwrap_or(self.work) {
            Work::Cargo([arguments]) if !self.is_portable => format!("{env}cargo {arguments}"),
            Work::Cargo(_) | Work::Internal(_) => format!("cargo xtask test --only {}", self.name),
        }
    }

    fn run(&self, workspace: &Workspace) -> Result<(), Stop> {
        let commands = match self.work(IS_LINUX) {
            None => {
                println!("skipped: this step needs Linux");
                return Ok(());
            }
            Some(Work::Internal(check)) => return check(workspace),
            Some(Work::Cargo(commands)) => commands,
        };
        for arguments in commands {
            if commands.len() > 1 {
                println!("cargo {arguments}");
            }
            let mut command = workspace.cargo();
            command.args(arguments.split_whitespace()).envs(self.env).stdin(Stdio::null());
            if self.is_portable {
                portable::configure(workspace, &mut command);
            }
            if self.is_after_clippy {
                command.envs(clippy_driver(workspace));
            }
            self.run_command(workspace, command, arguments.starts_with("nextest"))?;
        }
        Ok(())
    }

    fn run_command(&self, workspace: &Workspace, mut command: Command, is_nextest: bool) -> Result<(), Stop> {
        command.env(skipped::VARIABLE, skipped::path(workspace));
        if is_nextest && env::var_os(TEST_THREADS).is_none() {
            command.env(TEST_THREADS, (thread::available_parallelism().map_or(1, usize::from) + 1).to_string());
        }
        let status =
            if is_nextest { progress::run_nextest(command, self.name) } else { progress::run(command, self.name) };
        let is_success = status.map_err(Stop::while_doing("run cargo"))?.success();
        if is_success { Ok(()) } else { Err(Stop::Failed(String::new())) }
    }
}

/// The variables by which `cargo clippy -- -D warnings` makes Cargo check with Clippy. With them, Cargo finds the results of that
/// command; without, it would check all crates once more. None if this toolchain has no such program.
fn clippy_driver(workspace: &Workspace) -> Vec<(&'static str, OsString)> {
    let sysroot = workspace.program("rustc").args(["--print", "sysroot"]).output().map(|output| output.stdout);
    let sysroot = String::from_utf8(sysroot.unwrap_or_default()).unwrap_or_default();
    let name = format!("clippy-driver{}", env::consts::EXE_SUFFIX);
    let driver: PathBuf = [sysroot.trim_end(), "bin", &name].iter().collect();
    if !driver.is_file() {
        return Vec::new();
    }
    let arguments = ["-D", "warnings"].map(|argument| format!("{argument}__CLIPPY_HACKERY__")).concat();
    vec![("RUSTC_WORKSPACE_WRAPPER", driver.into()), ("CLIPPY_ARGS", arguments.into())]
}

fn run_each(workspace: &Workspace, steps: &[&Step]) -> Result<(), Stop> {
    skipped::clear(workspace)?;
    let run = Instant::now();
    let mut table = String::new();
    for (done, step) in steps.iter().enumerate() {
        workspace.heading(&format!("{}/{} {}: {}", done + 1, steps.len(), step.name, step.command()));
        let start = Instant::now();
        let result = step.run(workspace);
        let word = match &result {
            Ok(()) if step.work(IS_LINUX).is_none() => "skipped",
            Ok(()) => "passed",
            Err(_) => "FAILED",
        };
        table += &format!("{:10} {word} {:8.1} s\n", step.name, start.elapsed().as_secs_f64());
        if let Err(Stop::Failed(reason) | Stop::Usage(reason)) = result {
            if !reason.is_empty() {
                eprintln!("{reason}");
            }
            print!("\n{table}{}", summary(done, 1, run.elapsed(), &skipped::read(workspace)));
            return Err(Stop::Failed(format!("the step {} failed; to repeat it alone: {}", step.name, step.command())));
        }
    }
    print!("\n{table}{}", summary(steps.len(), 0, run.elapsed(), &skipped::read(workspace)));
    Ok(())
}

/// The last lines of a run: which tests skipped themselves and why, and the counts.
fn summary(passed: usize, failed: usize, elapsed: Duration, skipped: &[String]) -> String {
    let mut text: String = skipped.iter().map(|line| format!("skipped: {line}\n")).collect();
    let minutes = elapsed.as_secs() / 60;
    let seconds = elapsed.as_secs() % 60;
    text += &format!("steps: {passed} passed, {failed} failed, in {minutes} min {seconds} s\n");
    text += &format!("tests that skipped themselves: {}\n", skipped.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Temporary;

    fn step(name: &str) -> &'static Step {
        STEPS.iter().find(|step| step.name == name).expect("a step")
    }

    #[test]
    fn the_command_of_a_step_can_be_typed_as_it_is() {
        assert!(step("doc").command().starts_with("RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --no-deps "));
        assert_eq!(step("hygiene").command(), "cargo xtask test --only hygiene");
        assert_eq!(step("features").command(), "cargo xtask test --only features");
        assert_eq!(step("portable").command(), "cargo xtask test --only portable");
    }

    #[test]
    fn names_are_unique() {
        let mut names = names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }

    #[test]
    fn every_extent_has_format_lints_and_tests() {
        for extent in [Extent::Quick, Extent::Normal, Extent::Full] {
            let steps: Vec<_> = STEPS.iter().filter(|step| step.extents.contains(&extent)).collect();
            for name in ["fmt", "clippy"] {
                assert!(steps.iter().any(|step| step.name == name), "{extent:?}: {name}");
            }
            let runs_tests = |step: &&&Step| matches!(step.work, Work::Cargo([command]) if command.contains("nextest"));
            assert!(steps.iter().any(|step| runs_tests(&step)), "{extent:?}");
        }
    }

    #[test]
    fn what_needs_linux_is_left_out_elsewhere() {
        for step in STEPS {
            let Some(Work::Cargo(commands)) = step.work(false) else { continue };
            for command in commands {
                let leaves_out_benches =
                    !command.contains("--workspace") || command.contains("--exclude rallypoint-bench");
                assert!(leaves_out_benches && !command.contains("--all-targets"), "{}: {command}", step.name);
            }
            assert!(!step.is_portable, "{}: these sockets are the usual ones there", step.name);
        }
        assert!(step("fmt").work(false).is_some() && step("examples").work(false).is_none());
        assert!(matches!(step("tests").work(true), Some(Work::Cargo([all])) if all.contains("--workspace")));
    }

    #[test]
    fn a_run_is_announced_with_steps_and_duration() {
        assert_eq!(
            announcement(&[step("fmt"), step("clippy")]),
            "2 steps, about 3 minutes on two cores if nothing is built yet"
        );
        assert_eq!(announcement(&[step("fmt")]), "1 step, about a minute on two cores if nothing is built yet");
    }

    #[test]
    fn skipped_tests_are_listed_and_counted() {
        let skipped = ["over_ipv6: this machine has no IPv6".to_owned()];
        assert_eq!(
            summary(3, 0, Duration::from_secs(61), &skipped),
            "skipped: over_ipv6: this machine has no IPv6\nsteps: 3 passed, 0 failed, in 1 min 1 s\n\
             tests that skipped themselves: 1\n"
        );
    }

    #[test]
    fn the_first_failing_step_ends_the_run_and_is_named() {
        let directory = Temporary::new();
        // The list of skipped tests of the run that this test is part of stays as it is.
        let workspace = Workspace { target: directory.to_path_buf(), ..Workspace::here().unwrap() };
        let good = Step::internal("good", "", |_| Ok(()));
        let bad = Step::internal("bad", "", |_| Err(Stop::Failed("a reason".into())));
        let never = Step::internal("never", "", |_| panic!("a step after the failed one"));
        let Err(Stop::Failed(message)) = run_each(&workspace, &[&good, &bad, &never]) else { panic!("it passed") };
        assert_eq!(message, "the step bad failed; to repeat it alone: cargo xtask test --only bad");
        assert!(run_each(&workspace, &[&good]).is_ok());
    }
}
