//! `cargo xtask check --target TRIPLE`: type-checks the crates for another platform.

use crate::{Stop, args::Args, progress, workspace::Workspace};
use std::process::Stdio;

/// What is not checked: development programs and black-box tests, which need Linux.
const EXCLUDED: &[&str] = &["xtask", "rallypoint-bench", "rallypoint-harness", "rallypoint-fuzz"];

pub fn run(workspace: &Workspace, mut args: Args) -> Result<(), Stop> {
    let mut targets = Vec::new();
    while let Some(target) = args.value::<String>("--target")? {
        targets.push(target);
    }
    if let Some(name) = args.last_name()? {
        return Err(Stop::Usage(format!("unexpected argument `{name}` (did you mean --target {name}?)")));
    }
    if targets.is_empty() {
        return Err(Stop::Usage("name a platform, such as --target x86_64-pc-windows-gnu".into()));
    }
    for target in &targets {
        if !is_installed(workspace, target) {
            println!("skipped: the target {target} is not installed; to install it: rustup target add {target}");
            continue;
        }
        workspace.heading(&format!("cargo check --workspace --target {target}"));
        let mut command = workspace.cargo();
        command.args(["check", "--workspace", "--target", target]).stdin(Stdio::null());
        command.args(EXCLUDED.iter().flat_map(|package| ["--exclude", package]));
        let status = progress::run(command, "check").map_err(Stop::while_doing("run cargo"))?;
        if !status.success() {
            return Err(Stop::Failed(format!("the crates do not compile for {target}")));
        }
    }
    Ok(())
}

/// Whether the toolchain has the standard library of a target.
fn is_installed(workspace: &Workspace, target: &str) -> bool {
    let mut command = workspace.program("rustc");
    command.args(["--print", "target-libdir", "--target", target]).stderr(Stdio::null());
    let directory = command.output().ok().filter(|output| output.status.success());
    let directory = directory.and_then(|output| String::from_utf8(output.stdout).ok());
    directory.is_some_and(|path| std::path::Path::new(path.trim()).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_not_installed_is_skipped() {
        let workspace = Workspace::here().unwrap();
        assert!(!is_installed(&workspace, "no-such-platform"));
        assert!(run(&workspace, Args::new(vec!["--target".into(), "no-such-platform".into()])).is_ok());
    }

    #[test]
    fn a_platform_has_to_be_named() {
        let workspace = Workspace::here().unwrap();
        for arguments in [vec![], vec!["x86_64-pc-windows-gnu".to_owned()]] {
            assert!(matches!(run(&workspace, Args::new(arguments)), Err(Stop::Usage(_))));
        }
    }
}
