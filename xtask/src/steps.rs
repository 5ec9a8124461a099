//! `cargo xtask test`: one step after the other, until one fails.

use crate::{Stop, args::Args, examples, hygiene, requirements, workspace::Workspace};
use std::{process::Stdio, time::Instant};

/// The order is the quick ones first. All of them build the same packages with the same features and flags, so that
/// nothing is compiled twice: warnings become errors by arguments, not by `RUSTFLAGS`, and `--examples` makes Cargo switch
/// on the features that only tests ask for.
const STEPS: &[Step] = &[
    Step::inside("hygiene", "no stray paths, big files, ignored tests, dead links", hygiene::check),
    Step::cargo("fmt", "the code is formatted", "fmt --all --check"),
    Step::cargo("clippy", "no warnings", "clippy --workspace --all-targets -- -D warnings"),
    Step::cargo("doc", "no broken documentation", "doc --workspace --no-deps --lib --bins --examples")
        .env("RUSTDOCFLAGS", "-D warnings"),
    // Also gives the end-to-end tests the programs that they start.
    Step::cargo("build", "all programs and examples", "build --workspace --bins --examples"),
    Step::cargo("tests", "all tests, fuzz corpora and end to end too", "nextest run --workspace --no-tests=fail"),
    Step::cargo("doctests", "the examples in the documentation", "test --workspace --doc --quiet"),
    Step::inside("examples", "those that end by themselves are run", examples::check),
];

pub fn run(workspace: &Workspace, mut args: Args) -> Result<(), Stop> {
    let list = args.flag("--list");
    let mut steps = Vec::new();
    while let Some(name) = args.value::<String>("--only")? {
        let step = STEPS.iter().find(|step| step.name == name);
        steps.push(step.ok_or_else(|| Stop::Usage(format!("there is no step `{name}`, only {}", names().join(", "))))?);
    }
    if let Some(name) = args.last_name()? {
        return Err(Stop::Usage(format!("`{name}` means nothing here (did you mean --only {name}?)")));
    }
    if steps.is_empty() {
        steps.extend(STEPS);
    }
    if list {
        for step in steps {
            println!("{:10} {:52} {}", step.name, step.about, step.command());
        }
        return Ok(());
    }
    let jobs: Vec<_> = steps.iter().map(|step| step.name).collect();
    requirements::provide(workspace, &jobs)?;
    run_each(workspace, &steps)
}

pub fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

struct Step {
    name: &'static str,
    about: &'static str,
    work: Work,
    /// One variable of the environment, for a command.
    env: Option<(&'static str, &'static str)>,
}

enum Work {
    /// The arguments of Cargo, separated by blanks.
    Cargo(&'static str),
    /// A function of this program. Its error is printed as it is.
    Inside(fn(&Workspace) -> Result<(), Stop>),
}

impl Step {
    const fn cargo(name: &'static str, about: &'static str, arguments: &'static str) -> Self {
        Self { name, about, work: Work::Cargo(arguments), env: None }
    }

    const fn inside(name: &'static str, about: &'static str, check: fn(&Workspace) -> Result<(), Stop>) -> Self {
        Self { name, about, work: Work::Inside(check), env: None }
    }

    const fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env = Some((name, value));
        self
    }

    /// What a person types to repeat this step alone.
    fn command(&self) -> String {
        let env = self.env.map(|(name, value)| format!("{name}=\"{value}\" ")).unwrap_or_default();
        match self.work {
            Work::Cargo(arguments) => format!("{env}cargo {arguments}"),
            Work::Inside(_) => format!("cargo xtask test --only {}", self.name),
        }
    }

    fn run(&self, workspace: &Workspace) -> Result<(), Stop> {
        match self.work {
            Work::Inside(check) => check(workspace),
            Work::Cargo(arguments) => {
                let status = workspace.cargo().args(arguments.split(' ')).envs(self.env).stdin(Stdio::null()).status();
                let status = status.map_err(Stop::while_doing("run cargo"))?;
                if status.success() { Ok(()) } else { Err(Stop::Failed(String::new())) }
            }
        }
    }
}

fn run_each(workspace: &Workspace, steps: &[&Step]) -> Result<(), Stop> {
    let mut table = String::new();
    for (done, step) in steps.iter().enumerate() {
        workspace.heading(&format!("{}: {}", step.name, step.command()));
        let start = Instant::now();
        let outcome = step.run(workspace);
        let word = if outcome.is_ok() { "passed" } else { "FAILED" };
        table += &format!("{:10} {word} {:8.1} s\n", step.name, start.elapsed().as_secs_f64());
        if let Err(Stop::Failed(reason) | Stop::Usage(reason)) = outcome {
            if !reason.is_empty() {
                eprintln!("{reason}");
            }
            print!("\n{table}steps: {done} passed, 1 failed\n");
            return Err(Stop::Failed(format!("the step {} failed; to repeat it alone: {}", step.name, step.command())));
        }
    }
    print!("\n{table}steps: {} passed, 0 failed\n", steps.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str) -> &'static Step {
        STEPS.iter().find(|step| step.name == name).expect("a step")
    }

    #[test]
    fn the_command_of_a_step_can_be_typed_as_it_is() {
        assert!(step("doc").command().starts_with("RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --no-deps "));
        assert_eq!(step("hygiene").command(), "cargo xtask test --only hygiene");
    }

    #[test]
    fn names_are_unique() {
        let mut names = names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }

    #[test]
    fn the_first_failing_step_ends_the_run_and_is_named() {
        let workspace = Workspace::here().unwrap();
        let good = Step::inside("good", "", |_| Ok(()));
        let bad = Step::inside("bad", "", |_| Err(Stop::Failed("it is so".into())));
        let never = Step::inside("never", "", |_| panic!("a step after the failed one"));
        let Err(Stop::Failed(message)) = run_each(&workspace, &[&good, &bad, &never]) else { panic!("it passed") };
        assert_eq!(message, "the step bad failed; to repeat it alone: cargo xtask test --only bad");
        assert!(run_each(&workspace, &[&good]).is_ok());
    }
}
