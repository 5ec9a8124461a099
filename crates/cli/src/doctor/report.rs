//! The checks of `doctor` and their results.

use crate::{
    error::CommandError,
    output::terminal::{Style, Terminal, wrap},
    stdio::print_stdout,
};
use serde::Serialize;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorStep {
    /// Name of the check: `name`, `tcp`, `query`, `lobby`, `listed`, `outcomes`, `transport`, `test`.
    pub step: &'static str,
    pub result: Severity,
    /// Description in one sentence.
    pub text: String,
}

/// Width of the result and the name of the check before a description, in columns.
const LABELS: usize = 19;

/// Severity of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Ok,
    /// Worth knowing, but not the reason why a server is not listed.
    Note,
    Problem,
}

/// All results so far.
#[derive(Debug)]
pub struct Report {
    checks: Vec<DoctorStep>,
    terminal: Terminal,
    is_quiet: bool,
}

impl Report {
    /// An empty report. With `is_quiet`, results are not printed as they are added.
    pub fn new(is_quiet: bool) -> Self {
        Self { checks: Vec::new(), terminal: Terminal::of_stdout(), is_quiet }
    }

    /// Adds a result and prints it.
    pub fn push(&mut self, step: &'static str, result: Severity, text: impl Into<String>) -> Result<(), CommandError> {
        let step = DoctorStep { step, result, text: text.into() };
        if !self.is_quiet {
            let (word, style) = match step.result {
                Severity::Ok => ("ok", Style::Good),
                Severity::Note => ("note", Style::Fair),
                Severity::Problem => ("problem", Style::Bad),
            };
            let label = self.terminal.paint(style, &format!("{word:<8}"));
            let room = self.terminal.width.map_or(usize::MAX, |width| width.saturating_sub(LABELS)).max(20);
            let text = wrap(&step.text, room).join(&format!("\n{:LABELS$}", ""));
            print_stdout(&format!("{label} {:<9} {text}\n", step.step))?;
        }
        self.checks.push(step);
        Ok(())
    }

    pub fn has_problem(&self) -> bool {
        self.checks.iter().any(|step| step.result == Severity::Problem)
    }

    pub fn checks(&self) -> &[DoctorStep] {
        &self.checks
    }
}
