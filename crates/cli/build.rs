//! Records the commit and the target of the program, which `rallypoint --version` prints.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-env-changed=RALLYPOINT_COMMIT");
    // Only where the program is built to be used: otherwise each commit would compile it again in the inner loop.
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let named = env::var("RALLYPOINT_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(|| is_release.then(git_commit).flatten()).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=RALLYPOINT_COMMIT_SHOWN={commit}");
    println!("cargo::rustc-env=RALLYPOINT_TARGET={}", env::var("TARGET").unwrap_or_default());
}

/// The commit of the checkout, if this is one. Packages name theirs in `RALLYPOINT_COMMIT`.
fn git_commit() -> Option<String> {
    println!("cargo::rerun-if-changed={}", git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if is_changed { format!("{commit}, changed") } else { commit })
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
