//! `cargo xtask check --target TRIPLE`: type-checks the crates for another platform.

use crate::{Stop, args::Args, progress, workspace::Workspace};
use std::{fs, process::Stdio};

/// Packages that are not checked: development programs and black-box tests, which need Linux.
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
        if target.contains("apple") && !cfg!(target_vendor = "apple") {
            // Only Apple's compilers have the system's C headers. Types of Rust code do not depend on compiled C code.
            let stub = &workspace.program;
            let suffix = target.replace('-', "_");
            command.envs(["CC", "CXX", "AR"].map(|tool| (format!("{tool}_{suffix}"), stub)));
            command.env(STUB_COMPILER, "1");
            println!("C code is not compiled: there is no compiler for this platform");
        }
        let status = progress::run(command, "check").map_err(Stop::while_doing("run cargo"))?;
        if !status.success() {
            return Err(Stop::Failed(format!("the crates do not compile for {target}")));
        }
    }
    Ok(())
}

/// Set for this program when Cargo runs it in place of a C compiler.
pub const STUB_COMPILER: &str = "RALLYPOINT_STUB_COMPILER";

/// Does what build scripts need of a compiler if nothing is linked: creates the output file, empty, and passes for clang.
pub fn run_stub_compiler(arguments: &[String]) -> Result<(), Stop> {
    let output = arguments.iter().position(|argument| argument == "-o").and_then(|at| arguments.get(at + 1));
    if let Some(path) = output {
        fs::write(path, "").map_err(Stop::while_doing("create the output file"))?;
    }
    if arguments.iter().any(|argument| argument == "-E") {
        println!("clang");
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
    fn the_stub_compiler_creates_its_output() {
        let directory = crate::temporary::Temporary::new();
        let output = directory.join("a.o").display().to_string();
        run_stub_compiler(&["-c".into(), "a.c".into(), "-o".into(), output.clone()]).unwrap();
        assert_eq!(fs::read(output).unwrap(), b"");
    }

    #[test]
    fn a_platform_has_to_be_named() {
        let workspace = Workspace::here().unwrap();
        for arguments in [vec![], vec!["x86_64-pc-windows-gnu".to_owned()]] {
            assert!(matches!(run(&workspace, Args::new(arguments)), Err(Stop::Usage(_))));
        }
    }
}
