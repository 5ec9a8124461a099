//! What was looked at, and what came of it.

use crate::{
    error::CommandError,
    output::terminal::{Style, Terminal},
    stdio::print_stdout,
};
use serde::Serialize;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What was looked at: `name`, `tcp`, `query`, `lobby`, `listed`, `outcomes`, `test`.
    pub step: &'static str,
    pub result: Mark,
    /// In a sentence.
    pub text: String,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    Ok,
    /// Worth knowing, and no reason for a server not to be listed.
    Note,
    Problem,
}

/// Everything that was looked at.
#[derive(Debug)]
pub struct Steps {
    steps: Vec<Step>,
    terminal: Terminal,
    is_quiet: bool,
}

impl Steps {
    /// With `is_quiet` nothing is told before the end.
    pub fn new(is_quiet: bool) -> Self {
        Self { steps: Vec::new(), terminal: Terminal::of_stdout(), is_quiet }
    }

    /// Tells a step, and remembers it.
    pub fn push(&mut self, step: &'static str, result: Mark, text: impl Into<String>) -> Result<(), CommandError> {
        let step = Step { step, result, text: text.into() };
        if !self.is_quiet {
            let (word, style) = match step.result {
                Mark::Ok => ("ok", Style::Good),
                Mark::Note => ("note", Style::Fair),
                Mark::Problem => ("problem", Style::Bad),
            };
            let mark = self.terminal.paint(style, &format!("{word:<8}"));
            print_stdout(&format!("{mark} {:<9} {}\n", step.step, step.text))?;
        }
        self.steps.push(step);
        Ok(())
    }

    pub fn has_problem(&self) -> bool {
        self.steps.iter().any(|step| step.result == Mark::Problem)
    }

    pub fn all(&self) -> &[Step] {
        &self.steps
    }
}
