//! `cargo xtask fuzz`: runs libFuzzer on every target, with a stable toolchain.

use crate::{Stop, args::Args, bench, requirements, workspace::Workspace};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Maximum number of corpus inputs kept per target, not counting those with a name given by a person.
const MAX_KEPT: usize = 200;
/// Largest input that is kept, in bytes.
const MAX_KEPT_BYTES: u64 = 4096;
/// Time limit per input in seconds; a slower input is a finding.
const MAX_SECONDS_PER_INPUT: u32 = 10;
/// Maximum length of inputs, in turn: most of what parsers do is found with short ones, which are several times faster.
const MAX_LENGTHS: [u32; 2] = [256, 4096];
/// The fastest target has this many times as long in a round as an average one, the slowest ones the reciprocal.
const MAX_WEIGHT: f64 = 4.0;
/// The executions of earlier runs with `--executions`, which continue where they ended.
const COUNTS: &str = "executions.txt";

/// The instrumentation for libFuzzer: coverage counters, and the operands of comparisons. Everything that is fuzzed is safe Rust, so that
/// sanitizers would find nothing but errors of dependencies.
const INSTRUMENTATION: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Ccodegen-units=1";

pub fn run(workspace: &Workspace, mut args: Args) -> Result<(), Stop> {
    let seconds: u32 = args.value("--seconds")?.unwrap_or(60);
    let executions: Option<u64> = args.value("--executions")?;
    let jobs: usize = args.value("--jobs")?.unwrap_or(1);
    let sanitizer = args.value("--sanitizer")?.unwrap_or("none".into());
    let minimise = args.flag("--minimise");
    let targets = targets(workspace, args.last_name()?)?;
    requirements::provide(workspace, &["fuzz"])?;

    let fuzzer = Fuzzer { workspace, sanitizer, host: host()? };
    workspace.heading("building the fuzz targets");
    fuzzer.build()?;

    let counts = fuzzer.directory().join(COUNTS);
    let earlier = executions.and_then(|_| fs::read_to_string(&counts).ok()).unwrap_or_default();
    let mut totals: Vec<Report> = targets.iter().map(|target| Report::counted(&earlier, target)).collect();
    for round in 0.. {
        workspace.heading(&format!("{} for {seconds} s each", targets.join(", ")));
        let shares = shares(seconds, &totals);
        let max_length = if executions.is_some() { MAX_LENGTHS[round % MAX_LENGTHS.len()] } else { MAX_LENGTHS[1] };
        let reports = fuzzer.fuzz_all(&targets, &Slice { shares, max_length, minimise }, jobs)?;
        totals.iter_mut().zip(reports).for_each(|(total, report)| total.add(report));
        let count = totals.iter().filter(|report| report.finding.is_some()).count();
        if count > 0 {
            return Err(Stop::Failed(format!("{count} of {} targets failed on an input", targets.len())));
        }
        let Some(wanted) = executions else { return Ok(()) };
        let total: u64 = totals.iter().map(|report| report.executions).sum();
        println!("{total} of {wanted} executions");
        // After every round, so that a run that is interrupted has been counted.
        let lines = targets.iter().zip(&totals).map(|(target, total)| total.count_line(target));
        fs::write(&counts, lines.collect::<String>()).map_err(Stop::while_doing("write the counts"))?;
        bench::write_section(workspace, "fuzz", &section(&targets, &totals))?;
        if total >= wanted {
            return Ok(());
        }
    }
    Ok(())
}

/// One round.
struct Slice {
    /// Seconds of each target.
    shares: Vec<u32>,
    max_length: u32,
    minimise: bool,
}

/// The seconds of each target: those that ran more inputs per second in the round before have longer. A sum of executions would
/// otherwise take most of its time for targets that hardly add to it, and the same time for all finds no more in fast ones.
fn shares(seconds: u32, before: &[Report]) -> Vec<u32> {
    let fastest = before.iter().map(|report| report.per_second).max().unwrap_or(0) as f64;
    let weight =
        |report: &Report| (MAX_WEIGHT * report.per_second as f64 / fastest).clamp(1.0 / MAX_WEIGHT, MAX_WEIGHT);
    let share = |report| if fastest > 0.0 { (f64::from(seconds) * weight(report)) as u32 } else { seconds };
    before.iter().map(|report| share(report).max(1)).collect()
}

/// The target triple of this machine: with one given, build scripts and macros are not instrumented.
fn host() -> Result<String, Stop> {
    let output = Command::new("rustc").arg("-vV").output().map_err(Stop::while_doing("run rustc"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Stop::Failed("rustc does not tell for which target it compiles".into()))
}

/// The table of all targets, for the document.
fn section(targets: &[String], reports: &[Report]) -> String {
    let total: u64 = reports.iter().map(|report| report.executions).sum();
    let mut section = format!(
        "{} executions over all targets together, without a finding.\n\n| target | executions | coverage |\n|---|---:|---:|\n",
        thousands(total)
    );
    for (target, report) in targets.iter().zip(reports) {
        section.push_str(&format!(
            "| {target} | {} | {} |\n",
            thousands(report.executions),
            thousands(report.coverage)
        ));
    }
    section
}

/// A number with commas.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// All targets, or the requested one.
fn targets(workspace: &Workspace, wanted: Option<String>) -> Result<Vec<String>, Stop> {
    let all = files_in(&workspace.root.join("fuzz/fuzz_targets"));
    let mut all: Vec<_> = all.iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    all.sort();
    match wanted {
        None => Ok(all),
        Some(name) if all.contains(&name) => Ok(vec![name]),
        Some(name) => Err(Stop::Usage(format!("unknown fuzz target `{name}`; the targets are {}", all.join(", ")))),
    }
}

struct Fuzzer<'a> {
    workspace: &'a Workspace,
    sanitizer: String,
    host: String,
}

impl Fuzzer<'_> {
    fn build(&self) -> Result<(), Stop> {
        let mut command = self.workspace.cargo();
        // Without `cfg(fuzzing)`: the fuzzed code is the code that the ordinary tests replay.
        command.args(["build", "--release", "--package", "rallypoint-fuzz", "--features", "libfuzzer", "--bins"]);
        command.args(["--target", &self.host, "--target-dir"]).arg(self.directory());
        let sanitizer = match self.sanitizer.as_str() {
            "none" => String::new(),
            name => format!(" -Zsanitizer={name}"),
        };
        // The flags for instrumentation are unstable, and a stable toolchain may be the only one installed.
        command.env("RUSTFLAGS", format!("{INSTRUMENTATION}{sanitizer}")).env("RUSTC_BOOTSTRAP", "1");
        let status = command.stdin(Stdio::null()).status().map_err(Stop::while_doing("run cargo"))?;
        if status.success() { Ok(()) } else { Err(Stop::Failed("the fuzz targets do not build".into())) }
    }

    /// The program of a target, which writes inputs that fail into fuzz/artifacts.
    fn command(&self, target: &str) -> Result<Command, Stop> {
        let artifacts = self.workspace.root.join("fuzz/artifacts").join(target);
        fs::create_dir_all(&artifacts).map_err(Stop::while_doing("make a directory for artifacts"))?;
        let mut command = Command::new(self.directory().join(&self.host).join("release").join(target));
        command.arg(format!("-artifact_prefix={}/", artifacts.display())).stdin(Stdio::null());
        Ok(command)
    }

    fn directory(&self) -> PathBuf {
        self.workspace.target.join("fuzz")
    }

    /// Fuzzes each target once, some of them at the same time. The reports are in the order of the targets.
    fn fuzz_all(&self, targets: &[String], slice: &Slice, jobs: usize) -> Result<Vec<Report>, Stop> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..jobs.min(targets.len()).max(1) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(target) = targets.get(at) else { return };
                        let result = self.fuzz(target, slice.shares[at], slice);
                        if let Ok(report) = &result {
                            println!("{}", report.line(target));
                        }
                        results.lock().expect("no thread panics while it holds the lock").push((at, result));
                    }
                });
            }
        });
        let mut results = results.into_inner().expect("all threads have ended");
        results.sort_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }

    fn fuzz(&self, target: &str, seconds: u32, slice: &Slice) -> Result<Report, Stop> {
        let root = self.workspace.root.join("fuzz");
        let kept = root.join("corpus").join(target);
        let regressions = root.join("regressions").join(target);
        // New inputs are written to the first directory, so that a run does not change the project.
        let found = self.directory().join("corpus").join(target);
        fs::create_dir_all(&found).map_err(Stop::while_doing("make a corpus directory"))?;
        let mut command = self.command(target)?;
        command.args([&found, &kept]).args(Some(regressions).filter(|path| path.is_dir()));
        // A backtrace would hide the message; the regression test that a finding becomes prints one.
        command.env("RUST_BACKTRACE", "0");
        command.arg("-print_final_stats=1").arg(format!("-max_total_time={seconds}"));
        command.arg(format!("-timeout={MAX_SECONDS_PER_INPUT}")).arg(format!("-max_len={}", slice.max_length));

        let (success, report) = run_to_end(command)?;
        if report.finding.is_none() && !success {
            return Err(Stop::Failed(format!("the fuzz target {target} did not run:\n{}", report.tail.join("\n"))));
        }
        if let Some(artifact) = &report.finding {
            let artifact = self.workspace.relative(Path::new(artifact));
            let tail = report.tail.join("\n");
            println!(
                "{tail}\n{target} fails on {artifact}\nTo reproduce it as an ordinary test, and to keep it as one:\n  \
                 mkdir -p fuzz/regressions/{target} && cp {artifact} fuzz/regressions/{target}/\n  \
                 cargo nextest run -p rallypoint-fuzz replay::{target}"
            );
        } else if slice.minimise {
            self.minimise(target, &found, &kept)?;
        }
        Ok(report)
    }

    /// Replaces the fuzzer's own files in the kept corpus by a minimal set with the same coverage.
    fn minimise(&self, target: &str, found: &Path, kept: &Path) -> Result<(), Stop> {
        let minimal = self.directory().join("minimal").join(target);
        let _ = fs::remove_dir_all(&minimal);
        let error = || Stop::while_doing("rewrite the corpus");
        fs::create_dir_all(&minimal).map_err(error())?;
        // Inputs named by people come first: of the rest, only those that add coverage are taken.
        for file in files_in(kept).iter().filter(|file| !is_named_by_fuzzer(file)) {
            fs::copy(file, minimal.join(file.file_name().unwrap_or_default())).map_err(error())?;
        }
        let mut command = self.command(target)?;
        command.args([minimal.as_path(), found, kept]).arg("-merge=1");
        let (success, report) = run_to_end(command)?;
        if !success {
            return Err(Stop::Failed(format!("minimising {target} failed:\n{}", report.tail.join("\n"))));
        }
        keep(&minimal, kept).map_err(error())
    }
}

/// Replaces the fuzzer's own files in `kept` by those of `from`, the smallest first, within the limits.
fn keep(from: &Path, kept: &Path) -> std::io::Result<()> {
    for file in files_in(kept).iter().filter(|file| is_named_by_fuzzer(file)) {
        fs::remove_file(file)?;
    }
    let mut sized = Vec::new();
    for file in files_in(from).into_iter().filter(|file| is_named_by_fuzzer(file)) {
        sized.push((fs::metadata(&file)?.len(), file));
    }
    sized.sort();
    for (_, file) in sized.iter().take_while(|(size, _)| *size <= MAX_KEPT_BYTES).take(MAX_KEPT) {
        fs::copy(file, kept.join(file.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

/// Whether the fuzzer named this file, which it does by the SHA-1 of the content.
fn is_named_by_fuzzer(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

/// Statistics and findings, parsed from the output of libFuzzer.
#[derive(Debug, Default)]
struct Report {
    executions: u64,
    per_second: u64,
    /// Number of edges of the control flow that were reached.
    coverage: u64,
    /// Path of the input that failed.
    finding: Option<String>,
    /// The last lines of output before the finding; what follows is about the tools.
    tail: Vec<String>,
}

impl Report {
    /// Maximum number of lines in `tail`.
    const TAIL: usize = 40;

    fn line(&self, target: &str) -> String {
        let Self { executions, per_second, coverage, finding, .. } = self;
        let finding = if finding.is_some() { "1 finding" } else { "no finding" };
        format!("{target:20} {executions:>12} executions {per_second:>9}/s   coverage {coverage:>6}   {finding}")
    }

    /// Adds a later run of the same target. Short inputs reach less.
    fn add(&mut self, later: Self) {
        let coverage = self.coverage.max(later.coverage);
        *self = Self { executions: self.executions + later.executions, coverage, ..later };
    }

    /// The executions of a target in earlier runs, of which there is a line for each target.
    fn counted(lines: &str, target: &str) -> Self {
        let numbers = lines.lines().find_map(|line| line.strip_prefix(target)?.strip_prefix(' '));
        let mut numbers = numbers.unwrap_or_default().split(' ').map(|number| number.parse().unwrap_or(0));
        let [executions, coverage] = [numbers.next(), numbers.next()].map(Option::unwrap_or_default);
        Self { executions, coverage, ..Self::default() }
    }

    fn count_line(&self, target: &str) -> String {
        format!("{target} {} {}\n", self.executions, self.coverage)
    }

    fn read(&mut self, line: String) {
        let is_after_finding = self.finding.is_some();
        if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.executions = count.trim().parse().unwrap_or(0);
        } else if let Some(count) = line.strip_prefix("stat::average_exec_per_sec:") {
            self.per_second = count.trim().parse().unwrap_or(0);
        } else if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.finding = Some(path.trim().to_owned());
        } else if line.starts_with('#')
            && let Some((_, rest)) = line.split_once(" cov: ")
        {
            self.coverage = rest.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(self.coverage);
        }
        if is_after_finding {
            return;
        }
        if self.tail.len() == Self::TAIL {
            self.tail.remove(0);
        }
        self.tail.push(line);
    }
}

/// Runs a command to its end and parses its output; returns whether it succeeded, and the report.
fn run_to_end(mut command: Command) -> Result<(bool, Report), Stop> {
    let process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut process = process.map_err(Stop::while_doing("run a fuzz target"))?;
    let mut report = Report::default();
    if let Some(stderr) = process.stderr.take() {
        // The output of a target need not be UTF-8.
        let lines = BufReader::new(stderr).split(b'\n').map_while(Result::ok);
        lines.for_each(|line| report.read(String::from_utf8_lossy(&line).into_owned()));
    }
    let status = process.wait().map_err(Stop::while_doing("wait for a fuzz target"))?;
    Ok((status.success(), report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Temporary;

    #[test]
    fn statistics_are_parsed_from_the_fuzzers_output() {
        let mut report = Report::default();
        let output = "#18\tINITED cov: 47 ft: 89 corp: 11/221b exec/s: 0 rss: 35Mb\n\
                      #590488\tDONE   cov: 52 ft: 89 corp: 11/221b lim: 4096 exec/s: 98414 rss: 418Mb\n\
                      Done 590488 runs in 6 second(s)\n\
                      stat::number_of_executed_units: 590488\n\
                      stat::average_exec_per_sec:     98414\n";
        output.lines().for_each(|line| report.read(line.into()));
        assert_eq!((report.executions, report.per_second, report.coverage), (590_488, 98_414, 52));
        assert_eq!(report.finding, None);
        assert!(report.line("reader").contains("590488 executions"));
    }

    #[test]
    fn executions_of_all_runs_are_counted() {
        let mut total = Report { executions: 1_000_000, coverage: 50, ..Report::default() };
        total.add(Report { executions: 234_567, coverage: 52, ..Report::default() });
        let section = section(&["reader".into()], &[total]);
        assert!(section.starts_with("1,234,567 executions over all targets"), "{section}");
        assert!(section.contains("| reader | 1,234,567 | 52 |"), "{section}");
    }

    #[test]
    fn a_later_run_continues_with_the_counts() {
        let report = Report { executions: 1_000, coverage: 50, ..Report::default() };
        let lines = report.count_line("session_pair") + &report.count_line("session").replace("1000", "7");
        let counted = |target| {
            let Report { executions, coverage, .. } = Report::counted(&lines, target);
            (executions, coverage)
        };
        assert_eq!((counted("session_pair"), counted("session"), counted("lobby")), ((1_000, 50), (7, 50), (0, 0)));
    }

    #[test]
    fn fast_targets_have_longer() {
        let at = |per_second| Report { per_second, ..Report::default() };
        assert_eq!(shares(60, &[at(0), at(0)]), [60, 60], "in the first round");
        assert_eq!(shares(60, &[at(1_000_000), at(250_000), at(10)]), [240, 60, 15]);
        assert_eq!(shares(1, &[at(1_000_000), at(10)]), [4, 1]);
    }

    #[test]
    fn a_finding_is_reported_with_its_path() {
        let mut report = Report::default();
        report.read(
            "artifact_prefix='fuzz/artifacts/reader/'; Test unit written to fuzz/artifacts/reader/crash-1".into(),
        );
        assert_eq!(report.finding.as_deref(), Some("fuzz/artifacts/reader/crash-1"));
        report.read("Error: Fuzz target exited with exit status: 77".into());
        assert_eq!(report.tail.len(), 1);
    }

    #[test]
    fn only_the_end_of_long_output_is_kept() {
        let mut report = Report::default();
        (0..1000).for_each(|number| report.read(number.to_string()));
        assert_eq!(report.tail.len(), Report::TAIL);
        assert_eq!(report.tail.last().map(String::as_str), Some("999"));
    }

    #[test]
    fn the_kept_corpus_stays_small_and_keeps_inputs_named_by_people() {
        let directory = Temporary::new();
        let from = directory.join("from");
        let kept = directory.join("kept");
        directory.file("kept/registration", "x");
        directory.file(&format!("kept/{:040x}", 0xdead), "from the previous run");
        directory.file("from/registration", "x");
        for number in 1..=300 {
            directory.file(&format!("from/{number:040x}"), vec![0; number * 20]);
        }
        keep(&from, &kept).unwrap();
        let left = files_in(&kept);
        assert_eq!(left.len(), 1 + MAX_KEPT);
        assert!(left.iter().all(|file| fs::metadata(file).unwrap().len() <= MAX_KEPT_BYTES));
        assert!(kept.join("registration").exists());
        assert!(!kept.join(format!("{:040x}", 0xdead)).exists());
    }
}
