//! `cargo xtask bench`: runs the benchmark suites and writes their results into docs/benchmarks.md, and into docs/benchmark-details.md the
//! tables behind them with their method.

use crate::{Stop, args::Args, portable, requirements, workspace::Workspace};
use std::{fs, path::PathBuf, process::Stdio};

/// A benchmark suite: a program of the package `rallypoint-bench` that prints its section of the document as Markdown.
pub struct Suite {
    pub name: &'static str,
    /// Cargo features that it needs, for comparison libraries that nothing else compiles.
    features: &'static str,
    /// Another package whose programs it starts. They are built into the same directory as the suite.
    starts: Option<&'static str>,
    /// A package and a program of it that the suite starts in a build with the sockets of other platforms.
    portable: Option<(&'static str, &'static str)>,
}

/// Names the directory of the programs with the sockets of other platforms, for a suite.
const PORTABLE_DIRECTORY: &str = "RALLYPOINT_BENCH_PORTABLE";

/// All suites.
pub const SUITES: &[Suite] = &[
    Suite { name: "wire", features: "", starts: None, portable: None },
    Suite { name: "registry", features: "", starts: None, portable: None },
    Suite { name: "lobby", features: "", starts: Some("rallypoint"), portable: None },
    Suite { name: "cluster", features: "", starts: Some("rallypoint"), portable: None },
    Suite { name: "session", features: "peers", starts: None, portable: Some(("rallypoint-bench", "portable")) },
    Suite { name: "c", features: "", starts: Some("rallypoint-ffi"), portable: None },
    Suite { name: "web", features: "", starts: Some("rallypoint"), portable: None },
    Suite { name: "history", features: "", starts: None, portable: None },
    Suite {
        name: "query",
        features: "query-peers",
        starts: Some("rallypoint"),
        portable: Some(("rallypoint", "rallypoint")),
    },
];

/// The results: the first table of each suite, with the sentences about it.
const RESULTS: &str = "docs/benchmarks.md";

/// Everything else that a suite prints.
const DETAILS: &str = "docs/benchmark-details.md";

const FIRST_LINES: &str =
    "# Benchmarks\n\nWritten by `cargo xtask bench`: measure on your own machine before comparing.\n";

pub fn run(workspace: &Workspace, mut args: Args) -> Result<(), Stop> {
    let only_print = args.flag("--print");
    let suites: Vec<&Suite> =
        match args.last_name()? {
            None => SUITES.iter().collect(),
            Some(name) => {
                let suite = SUITES.iter().find(|suite| suite.name == name);
                let names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
                vec![suite.ok_or_else(|| {
                    Stop::Usage(format!("unknown suite `{name}`; the suites are {}", names.join(", ")))
                })?]
            }
        };
    for suite in suites {
        requirements::provide(workspace, &["bench", &format!("bench {}", suite.name)])?;
        let section = measure(workspace, suite)?;
        println!("{section}");
        if !only_print {
            write_section(workspace, suite.name, &section)?;
        }
    }
    Ok(())
}

/// Writes a section into the documents, in place of the one of the same name.
pub fn write_section(workspace: &Workspace, name: &str, section: &str) -> Result<(), Stop> {
    let (result, details) = split(section);
    let headed = format!("## {name}\n\n{details}");
    let documents = [(RESULTS, result), (DETAILS, &*headed)];
    for (document, text) in documents.into_iter().take(if details.is_empty() { 1 } else { 2 }) {
        let path = workspace.root.join(document);
        // The first suite creates the document.
        let old = fs::read_to_string(&path).unwrap_or(FIRST_LINES.into());
        let new = with_section(&old, name, text).map_err(|problem| Stop::Failed(format!("{document} {problem}")))?;
        fs::write(&path, new).map_err(Stop::while_doing(&format!("write {document}")))?;
    }
    Ok(())
}

/// A section up to the end of its first paragraph, and what follows.
fn split(section: &str) -> (&str, &str) {
    let mut end = 0;
    for line in section.trim().split_inclusive('\n') {
        end += line.len();
        if !line.trim().is_empty() && !line.starts_with(['|', '#']) {
            break;
        }
    }
    let (result, details) = section.trim().split_at(end);
    (result.trim(), details.trim())
}

/// Builds a package as it is shipped.
pub fn build(workspace: &Workspace, package: &str) -> Result<(), Stop> {
    let status = workspace.cargo().args(["build", "--release", "--package", package]).status();
    match status.map_err(Stop::while_doing("run cargo"))?.success() {
        true => Ok(()),
        false => Err(Stop::Failed(format!("{package} could not be built"))),
    }
}

/// Builds a program with the sockets of other platforms, in the directory of the tests with these sockets. Returns where it is.
fn build_portable(workspace: &Workspace, package: &str, program: &str) -> Result<PathBuf, Stop> {
    let directory = workspace.target.join("portable");
    let mut command = workspace.cargo();
    command.args(["build", "--release", "--package", package, "--bin", program]);
    command.arg("--target-dir").arg(&directory).env("RUSTFLAGS", portable::FLAGS);
    match command.status().map_err(Stop::while_doing("run cargo"))?.success() {
        true => Ok(directory.join("release")),
        false => Err(Stop::Failed(format!("{program} could not be built with portable sockets"))),
    }
}

fn measure(workspace: &Workspace, suite: &Suite) -> Result<String, Stop> {
    let Suite { name, features, starts, portable } = suite;
    workspace.heading(&format!("bench {name}"));
    if let Some(package) = starts {
        build(workspace, package)?;
    }
    let mut command = workspace.cargo();
    if let Some((package, program)) = portable {
        command.env(PORTABLE_DIRECTORY, build_portable(workspace, package, program)?);
    }
    command.args(["run", "--release", "--package", "rallypoint-bench", "--bin", name, "--features", features]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(Stop::while_doing("run cargo"))?;
    match String::from_utf8(output.stdout) {
        Ok(section) if output.status.success() && !section.trim().is_empty() => Ok(section),
        _ => Err(Stop::Failed(format!("the suite {name} failed"))),
    }
}

/// Replaces the section of a suite in the document, or appends it.
fn with_section(document: &str, name: &str, section: &str) -> Result<String, String> {
    let open = format!("<!-- bench:{name} -->");
    let close = format!("<!-- /bench:{name} -->");
    let section = format!("{open}\n{}\n{close}", section.trim());
    match (document.find(&open), document.find(&close)) {
        (Some(start), Some(end)) if start < end => {
            Ok(format!("{}{section}{}", &document[..start], &document[end + close.len()..]))
        }
        (None, None) => Ok(format!("{}\n\n{section}\n", document.trim_end())),
        _ => Err(format!("must contain {open} followed by {close}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_added_and_then_replaced() {
        let first = with_section(FIRST_LINES, "wire", "one\n").unwrap();
        assert_eq!(first, format!("{FIRST_LINES}\n<!-- bench:wire -->\none\n<!-- /bench:wire -->\n"));
        let both = with_section(&first, "lobby", "two").unwrap();
        let replaced = with_section(&both, "wire", "three").unwrap();
        assert_eq!(replaced, both.replace("one", "three"));
        assert_eq!(with_section(&replaced, "wire", "three").unwrap(), replaced);
    }

    #[test]
    fn the_first_paragraph_ends_the_result() {
        let section = "\n| a |\n|---|\n| 1 |\n\nOn 2 cores.\n\n### More\n\n| b |\n\nHow.\n";
        assert_eq!(split(section), ("| a |\n|---|\n| 1 |\n\nOn 2 cores.", "### More\n\n| b |\n\nHow."));
        assert_eq!(split("| a |\n"), ("| a |", ""));
    }

    #[test]
    fn text_around_a_section_is_kept() {
        let document = "# B\n\nbefore\n<!-- bench:wire -->\nold\n<!-- /bench:wire -->\nafter\n";
        assert_eq!(with_section(document, "wire", "new").unwrap(), document.replace("old", "new"));
    }

    #[test]
    fn a_marker_without_its_counterpart_is_an_error() {
        for document in ["<!-- bench:wire -->", "<!-- /bench:wire -->", "<!-- /bench:wire --><!-- bench:wire -->"] {
            assert!(with_section(document, "wire", "new").is_err(), "{document}");
        }
    }
}
