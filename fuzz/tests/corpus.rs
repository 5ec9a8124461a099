//! Replays the stored inputs of every fuzz target, one test per target.

use libtest_mimic::{Arguments, Failed, Trial};
use rallypoint_fuzz::{TARGETS, Target};
use std::{
    fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::ExitCode,
};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = vec![Trial::test("every_target_is_complete", every_target_is_complete)];
    trials.extend(TARGETS.iter().map(|&(name, run)| Trial::test(format!("replay::{name}"), move || replay(name, run))));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn replay(name: &str, run: Target) -> Result<(), Failed> {
    let mut inputs = files_in(&root().join("corpus").join(name));
    if inputs.is_empty() {
        return Err(format!("fuzz/corpus/{name} has no file: keep at least one typical input there").into());
    }
    inputs.extend(files_in(&root().join("regressions").join(name)));
    for input in inputs {
        let bytes = fs::read(&input)?;
        // The panic hook prints the message, but not the name of the file.
        if panic::catch_unwind(AssertUnwindSafe(|| run(&bytes))).is_err() {
            let input = input.strip_prefix(root()).unwrap_or(&input);
            return Err(format!("{name} fails on fuzz/{} ({} bytes)", input.display(), bytes.len()).into());
        }
    }
    Ok(())
}

/// A target is registered in several places: one that is missing would silently exclude it from `cargo xtask fuzz`.
fn every_target_is_complete() -> Result<(), Failed> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    for (name, _) in TARGETS {
        if !manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")) {
            return Err(format!("fuzz/Cargo.toml has no [[bin]] for the target {name}").into());
        }
        let program = fs::read_to_string(root().join(format!("fuzz_targets/{name}.rs")))?;
        if !program.contains(&format!("rallypoint_fuzz::{name}::run(data)")) {
            return Err(format!("fuzz/fuzz_targets/{name}.rs does not run the target {name}").into());
        }
    }
    for program in files_in(&root().join("fuzz_targets")) {
        let name = program.file_stem().unwrap_or_default().to_string_lossy();
        if !TARGETS.iter().any(|(target, _)| *target == name) {
            return Err(format!("fuzz_targets/{name}.rs has no line in TARGETS").into());
        }
    }
    Ok(())
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a directory, sorted so that the same input fails first every time; none if it does not exist.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}
