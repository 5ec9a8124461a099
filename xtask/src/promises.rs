//! The promises of SECURITY.md, each of which names the tests that show it: they exist.

use crate::Stop;
use std::{collections::BTreeSet, fs, io, path::Path};

const DOCUMENT: &str = "SECURITY.md";

/// The first row of the tables that are checked.
const HEADING: &str = "| promise | test |";

/// Promises without a test, and tests that are no more.
pub fn problems(root: &Path) -> Result<Vec<String>, Stop> {
    let Ok(document) = fs::read_to_string(root.join(DOCUMENT)) else { return Ok(Vec::new()) };
    let mut files = BTreeSet::new();
    for directory in ["crates", "tests"] {
        collect(&root.join(directory), &mut files).map_err(Stop::while_doing("read the tests"))?;
    }
    Ok(unproven(&document, &files))
}

/// The names of all files of Rust, without their ending.
fn collect(directory: &Path, files: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    Ok(())
}

fn unproven(document: &str, files: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut is_table = false;
    for (number, line) in document.lines().enumerate() {
        is_table = line == HEADING || (is_table && line.starts_with('|'));
        if !is_table || line == HEADING || line.starts_with("|--") {
            continue;
        }
        let tests = line.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
        let mut problem = |what: String| problems.push(format!("{DOCUMENT}:{}: {what}", number + 1));
        for test in tests.split('`').skip(1).step_by(2).filter(|test| !files.contains(*test)) {
            problem(format!("there is no test `{test}`"));
        }
        if !tests.contains(['`']) && !tests.contains("fuzz") {
            problem("a promise without a test".into());
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_without_tests_are_found() {
        let files = BTreeSet::from(["caps".to_owned(), "bans".to_owned()]);
        let table = "`x`\n| promise | test |\n|---|---|\n| A (`y`) | web `caps`, `bans` |\n";
        assert_eq!(unproven(table, &files), [""; 0]);
        let found = unproven(&format!("{table}| B | lobby `gone` |\n| C | |\n\n| a | `b` |\n"), &files);
        assert_eq!(found, ["SECURITY.md:5: there is no test `gone`", "SECURITY.md:6: a promise without a test"]);
    }
}
