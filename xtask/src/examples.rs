//! Runs every example that ends by itself: a broken example is worse than none.

use crate::{Stop, workspace::Workspace};
use std::{
    fs,
    path::PathBuf,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

/// Marks an example that is built but not run, because it needs arguments or runs until it is stopped.
const NOT_RUN: &str = "// xtask: not run";

/// Time limit of an example, long enough for the slowest machine. One that takes longer probably lacks the comment above.
const TIME_LIMIT: Duration = Duration::from_secs(60);

pub fn check(workspace: &Workspace) -> Result<(), Stop> {
    let build = [
        "build",
        "--workspace",
        "--exclude",
        "rallypoint-book",
        "--examples",
        "--message-format=json-render-diagnostics",
    ];
    let output = workspace.cargo().args(build).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(Stop::while_doing("run cargo build"))?;
    if !output.status.success() {
        return Err(Stop::Failed("the examples do not build".into()));
    }
    for example in String::from_utf8_lossy(&output.stdout).lines().filter_map(Example::from_message) {
        let source = fs::read_to_string(&example.source).map_err(Stop::while_doing("read an example"))?;
        if source.lines().any(|line| line.trim() == NOT_RUN) {
            println!("{}: built only", example.name);
        } else {
            println!("{}: running", example.name);
            example.run(workspace)?;
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Example {
    name: String,
    source: PathBuf,
    program: PathBuf,
    manifest: PathBuf,
}

impl Example {
    /// Parses a line of Cargo's messages; none if it is not about an example. This finds all examples, whatever the layout
    /// of their packages.
    fn from_message(line: &str) -> Option<Self> {
        let field = |name: &str| {
            let (_, rest) = line.split_once(&format!("\"{name}\":\""))?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        if !line.contains("\"kind\":[\"example\"]") {
            return None;
        }
        // An example that is a library has no executable.
        let program = field("executable")?.into();
        // The name of the target follows its kind; other names may come before.
        let (_, target) = line.split_once("\"kind\":[\"example\"]")?;
        let (_, name) = target.split_once("\"name\":\"")?;
        let name = name.split_once('"')?.0.to_owned();
        Some(Self { name, source: field("src_path")?.into(), program, manifest: field("manifest_path")?.into() })
    }

    fn run(&self, workspace: &Workspace) -> Result<(), Stop> {
        let process = workspace.program(&self.program).stdin(Stdio::null()).spawn();
        let mut process = process.map_err(Stop::while_doing("start an example"))?;
        let start = Instant::now();
        let problem = loop {
            match process.try_wait().map_err(Stop::while_doing("wait for an example"))? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => break format!("failed ({status})"),
                None if start.elapsed() > TIME_LIMIT => {
                    let _ = process.kill();
                    let _ = process.wait();
                    let source = workspace.relative(&self.source);
                    break format!(
                        "did not end within {TIME_LIMIT:?} (if that is intended, add `{NOT_RUN}` to {source})"
                    );
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        let name = &self.name;
        let manifest = workspace.relative(&self.manifest);
        Err(Stop::Failed(format!(
            "the example {name} {problem}: cargo run --manifest-path {manifest} --example {name}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_parsed_from_cargos_message() {
        let line = concat!(
            r#"{"reason":"compiler-artifact","package_id":"path+file:///p/wire#0.1.0","manifest_path":"/p/wire/Cargo.toml","#,
            r#""target":{"kind":["example"],"crate_types":["bin"],"name":"hello","src_path":"/p/wire/examples/hello.rs"},"#,
            r#""profile":{},"filenames":["/t/hello"],"executable":"/t/hello","fresh":true}"#
        );
        let expected = Example {
            name: "hello".into(),
            source: "/p/wire/examples/hello.rs".into(),
            program: "/t/hello".into(),
            manifest: "/p/wire/Cargo.toml".into(),
        };
        assert_eq!(Example::from_message(line), Some(expected));
    }

    #[test]
    fn other_messages_are_not_examples() {
        let library = r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"wire"},"executable":null}"#;
        let as_library = r#"{"target":{"kind":["example"],"name":"x","src_path":"/x"},"executable":null}"#;
        for line in ["", library, as_library, r#"{"reason":"build-finished","success":true}"#] {
            assert_eq!(Example::from_message(line), None, "{line}");
        }
    }

    #[test]
    fn an_example_that_fails_names_the_command_to_repeat_it() {
        let workspace = Workspace::here().unwrap();
        let example = |program: &str| Example {
            name: "hello".into(),
            source: "hello.rs".into(),
            program: program.into(),
            manifest: workspace.root.join("crates/wire/Cargo.toml"),
        };
        assert!(example("true").run(&workspace).is_ok());
        let Err(Stop::Failed(message)) = example("false").run(&workspace) else { panic!("it passed") };
        assert!(message.ends_with("cargo run --manifest-path crates/wire/Cargo.toml --example hello"), "{message}");
    }
}
