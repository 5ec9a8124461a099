//! Copying files into a package, and running the tools that make one.

use crate::Stop;
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

/// Copies a file, and creates the directories above it.
pub fn copy(from: &Path, to: &Path) -> Result<(), Stop> {
    let content = fs::read(from).map_err(Stop::while_doing(&format!("read {}", from.display())))?;
    write(to, &content)
}

/// Copies a script or a program, which its users may execute.
pub fn copy_executable(from: &Path, to: &Path) -> Result<(), Stop> {
    copy(from, to)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(to, mode).map_err(Stop::while_doing(&format!("make {} executable", to.display())))?;
    }
    Ok(())
}

/// Copies a program without its symbols, which take most of its size. Where there is no `strip`, they stay.
pub fn copy_program(from: &Path, to: &Path) -> Result<(), Stop> {
    copy_executable(from, to)?;
    strip(to, &[])
}

/// Copies a library, with the symbols that programs are linked with and without the others.
pub fn copy_library(from: &Path, to: &Path) -> Result<(), Stop> {
    copy(from, to)?;
    let is_shared = to.extension().is_some_and(|extension| extension == "so");
    strip(to, &[if is_shared { "--strip-unneeded" } else { "--strip-debug" }])
}

fn strip(path: &Path, arguments: &[&str]) -> Result<(), Stop> {
    // Only here are the arguments known to be understood.
    let is_known = cfg!(target_os = "linux");
    if is_known && Command::new("strip").arg("--version").stdout(Stdio::null()).status().is_ok() {
        run(Command::new("strip").args(arguments).arg(path))?;
    }
    Ok(())
}

/// Writes a file, and creates the directories above it.
pub fn write(path: &Path, content: &[u8]) -> Result<(), Stop> {
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory).map_err(Stop::while_doing(&format!("create {}", directory.display())))?;
    fs::write(path, content).map_err(Stop::while_doing(&format!("write {}", path.display())))
}

/// Removes a directory of an earlier run, if there is one.
pub fn remove(directory: &Path) -> Result<(), Stop> {
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(Stop::while_doing(&format!("remove {}", directory.display())))?;
    }
    Ok(())
}

/// Runs a tool, whose output is of interest only if it fails.
pub fn run(command: &mut Command) -> Result<(), Stop> {
    output(command).map(drop)
}

/// The standard output of a program.
pub fn output(command: &mut Command) -> Result<Vec<u8>, Stop> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output().map_err(Stop::while_doing(&format!("run {name}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(Stop::Failed(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim())))
}
