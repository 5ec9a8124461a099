//! The Python package: its wheel is installed in a virtual environment, and its tests run there against a real lobby.

use crate::support::libraries;
use rallypoint_harness::{Lobby, skip, stderr, stdout};
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn package(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python-package")).join(path)
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}{}", stdout(&output), stderr(&output));
    output
}

#[test]
fn the_wheel_is_installed_and_its_tests_pass() {
    let directory = tempfile::tempdir().unwrap();
    let environment = directory.path().join("venv");
    let made = Command::new("python3").args(["-m", "venv"]).arg(&environment).output();
    if !made.is_ok_and(|output| output.status.success()) {
        return skip("python3 with venv is not installed");
    }
    let python = environment.join("bin/python");
    let library = libraries().join("librallypoint.so");
    let output = run(Command::new(&python)
        .arg("-B")
        .arg(package("build_wheel.py"))
        .arg(library)
        .arg("0.1.0")
        .arg(directory.path()));
    let wheel = stdout(&output).trim().to_owned();
    let pip = || {
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        command
    };
    run(pip().arg("--no-index").arg(&wheel));

    let lobby = Lobby::start();
    let mut tests = Command::new(&python);
    // pytest comes from the network; without it, unittest runs the same tests.
    if pip().args(["--timeout=5", "--retries=0", "pytest"]).output().is_ok_and(|output| output.status.success()) {
        tests.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    } else {
        skip("pytest cannot be installed: unittest runs the tests of the Python package");
        tests.arg("-B");
    }
    tests.arg(package("tests/test_rallypoint.py")).env("RALLYPOINT_LOBBY", lobby.v4().to_string());
    let output = run(tests.current_dir(directory.path()).env_remove("RALLYPOINT_LIBRARY"));
    assert!(!stdout(&output).contains("skipped"), "{}", stdout(&output));
}

#[test]
fn the_python_declarations_have_every_function_of_the_header() {
    let header = std::fs::read_to_string(crate::support::here("include/rallypoint.h")).unwrap();
    let python = std::fs::read_to_string(package("src/rallypoint/_library.py")).unwrap();
    let mut count = 0;
    for line in header.lines() {
        let Some(name) = line.split('(').next().and_then(|start| start.split([' ', '*']).next_back()) else { continue };
        let is_function = line.contains('(') && name.starts_with("rp_") && !line.trim_start().starts_with("//");
        if is_function && name != "rp_error_text" {
            assert!(python.contains(name), "{name}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}
