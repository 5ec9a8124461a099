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

pub fn run(workspace: &Workspace, mut args: Args) -> Result<(), Stop> {
    let seconds: u32 = args.value("--seconds")?.unwrap_or(60);
    let executions: Option<u64> = args.value("--executions")?;
    let jobs: usize = args.value("--jobs")?.unwrap_or(1);
    let sanitizer = args.value("--sanitizer")?.unwrap_or("none".into());
    let minimise = args.flag("--minimise");
    let targets = targets(workspace, args.last_name()?)?;
    requirements::provide(workspace, &["fuzz"])?;

    let fuzzer = Fuzzer { workspace, sanitizer };
    workspace.heading("building the fuzz targets");
    let status = fuzzer.command("build").status().map_err(Stop::while_doing("run cargo fuzz build"))?;
    if !status.success() {
        return Err(Stop::Failed("the fuzz targets do not build".into()));
    }

    let mut totals: Vec<Report> = targets.iter().map(|_| Report::default()).collect();
    loop {
        workspace.heading(&format!("{} for {seconds} s each", targets.join(", ")));
        let reports = fuzzer.fuzz_all(&targets, seconds, minimise, jobs)?;
        totals.iter_mut().zip(reports).for_each(|(total, report)| total.add(report));
        let count = totals.iter().filter(|report| report.finding.is_some()).count();
        if count > 0 {
            return Err(Stop::Failed(format!("{count} of {} targets failed on an input", targets.len())));
        }
        let Some(wanted) = executions else { return Ok(()) };
        let total: u64 = totals.iter().map(|report| report.executions).sum();
        println!("{total} of {wanted} executions");
        // After every round, so that a run that is interrupted has been counted.
        bench::write_section(workspace, "fuzz", &section(&targets, &totals))?;
        if total >= wanted {
            return Ok(());
        }
    }
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
}

impl Fuzzer<'_> {
    fn command(&self, verb: &str) -> Command {
        let mut command = self.workspace.cargo();
        // Without `cfg(fuzzing)`, the fuzzed code is the code that the ordinary tests replay.
        command.args(["fuzz", verb, "--fuzz-dir", "fuzz", "--features", "libfuzzer", "--no-cfg-fuzzing"]);
        command.arg("--sanitizer").arg(&self.sanitizer).arg("--target-dir").arg(self.directory());
        // The flags for instrumentation are unstable, and a stable toolchain may be the only one installed.
        command.env("RUSTC_BOOTSTRAP", "1").env("CARGO_PROFILE_RELEASE_LTO", "off").stdin(Stdio::null());
        command
    }

    fn directory(&self) -> PathBuf {
        self.workspace.target.join("fuzz")
    }

    /// Fuzzes each target once, some of them at the same time. The reports are in the order of the targets.
    fn fuzz_all(&self, targets: &[String], seconds: u32, minimise: bool, jobs: usize) -> Result<Vec<Report>, Stop> {
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for _ in 0..jobs.min(targets.len()).max(1) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(target) = targets.get(at) else { return };
                        let result = self.fuzz(target, seconds, minimise);
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

    fn fuzz(&self, target: &str, seconds: u32, minimise: bool) -> Result<Report, Stop> {
        let root = self.workspace.root.join("fuzz");
        let (kept, regressions) = (root.join("corpus").join(target), root.join("regressions").join(target));
        // New inputs are written to the first directory, so that a run does not change the project.
        let found = self.directory().join("corpus").join(target);
        fs::create_dir_all(&found).map_err(Stop::while_doing("make a corpus directory"))?;
        let mut command = self.command("run");
        command.arg(target).args([&found, &kept]).args(Some(regressions).filter(|path| path.is_dir()));
        // A backtrace would hide the message; the regression test that a finding becomes prints one.
        command.env("RUST_BACKTRACE", "0");
        command.args(["--", "-print_final_stats=1"]).arg(format!("-max_total_time={seconds}"));
        command.arg(format!("-timeout={MAX_SECONDS_PER_INPUT}"));

        let (success, report) = run_to_end(command)?;
        if report.finding.is_none() && !success {
            return Err(Stop::Failed(format!("the fuzz target {target} did not run:\n{}", report.tail.join("\n"))));
        }
        if let Some(artifact) = &report.finding {
            let (artifact, tail) = (self.workspace.relative(Path::new(artifact)), report.tail.join("\n"));
            println!(
                "{tail}\n{target} fails on {artifact}\nTo reproduce it as an ordinary test, and to keep it as one:\n  \
                 mkdir -p fuzz/regressions/{target} && cp {artifact} fuzz/regressions/{target}/\n  \
                 cargo nextest run -p rallypoint-fuzz replay::{target}"
            );
        } else if minimise {
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
        let mut command = self.command("run");
        command.arg(target).args([minimal.as_path(), found, kept]).args(["--", "-merge=1"]);
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

    /// Adds a later run of the same target.
    fn add(&mut self, later: Self) {
        *self = Self { executions: self.executions + later.executions, ..later };
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
    let mut process = process.map_err(Stop::while_doing("run cargo fuzz"))?;
    let mut report = Report::default();
    if let Some(stderr) = process.stderr.take() {
        // The output of a target need not be UTF-8.
        let lines = BufReader::new(stderr).split(b'\n').map_while(Result::ok);
        lines.for_each(|line| report.read(String::from_utf8_lossy(&line).into_owned()));
    }
    let status = process.wait().map_err(Stop::while_doing("wait for cargo fuzz"))?;
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
        let (from, kept) = (directory.join("from"), directory.join("kept"));
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
