//! Counts the instructions of one operation, a number that does not depend on other load.

use std::{env, io, path::Path, process::Command};

/// Runs this program twice under callgrind, with `iterations` operations and with twice as many: the difference excludes the
/// startup and the setup of the suite. The program has to support `--op NAME --iterations N`.
///
/// # Errors
///
/// If there is no valgrind, or the program fails.
pub fn per_operation(name: &str, iterations: u64) -> io::Result<f64> {
    difference(name, &[], iterations)
}

/// Instructions per operation within one function of the program, such as `suite::module::Type::function`. The function must not
/// be inlined.
///
/// # Errors
///
/// If there is no valgrind, or the program fails.
pub fn per_operation_within(function: &str, name: &str, iterations: u64) -> io::Result<f64> {
    difference(name, &[&format!("--toggle-collect={function}*")], iterations)
}

/// Instructions per operation of another program, whose only argument is the number of operations.
///
/// # Errors
///
/// If there is no valgrind, or the program fails.
pub fn per_operation_of(program: &Path, iterations: u64) -> io::Result<f64> {
    let count = |iterations: u64| collected(program, &[], &[&iterations.to_string()]);
    Ok(count(2 * iterations)?.saturating_sub(count(iterations)?) as f64 / iterations as f64)
}

fn difference(name: &str, options: &[&str], iterations: u64) -> io::Result<f64> {
    let program = env::current_exe()?;
    let count =
        |iterations: u64| collected(&program, options, &["--op", name, "--iterations", &iterations.to_string()]);
    Ok(count(2 * iterations)?.saturating_sub(count(iterations)?) as f64 / iterations as f64)
}

fn collected(program: &Path, options: &[&str], arguments: &[&str]) -> io::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options)
        .arg(program)
        .args(arguments)
        .output()?;
    let report = String::from_utf8_lossy(&output.stderr);
    parse(&report).filter(|_| output.status.success()).ok_or_else(|| io::Error::other("callgrind counted nothing"))
}

fn parse(report: &str) -> Option<u64> {
    let (_, count) = report.lines().find_map(|line| line.split_once("Collected : "))?;
    count.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_parsed_from_callgrinds_report() {
        let report = "==7== Events    : Ir\n==7== Collected : 122428\n==7== \n==7== I   refs:      122,428\n";
        assert_eq!(parse(report), Some(122_428));
        assert_eq!(parse("valgrind: no such program"), None);
    }
}
