//! Performance goals, and whether they are met.

use crate::Table;
use std::fmt;

/// The figures of a suite that have a goal, as the table that its section begins with.
#[derive(Clone, Debug)]
pub struct Goals(Table);

impl Goals {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self(Table::new(&["figure", "measured", "goal", ""]))
    }

    /// Adds a figure.
    pub fn add(&mut self, figure: &str, measured: impl Into<String>, goal: impl Into<String>, is_met: bool) {
        let result = if is_met { "met" } else { "**missed**" };
        self.0.row([figure.into(), measured.into(), goal.into(), result.to_owned()]);
    }
}

impl Default for Goals {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Goals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_goal_stands_out() {
        let mut goals = Goals::new();
        goals.add("fast", "9 ms", "at most 10 ms", true);
        goals.add("small", "2 MB", "at most 1 MB", false);
        let text = goals.to_string();
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert!(rows[0].contains("met") && !rows[0].contains("missed"), "{text}");
        assert!(rows[1].contains("**missed**"), "{text}");
    }
}
