//! What was promised, and whether it is kept.

use crate::Table;
use std::fmt;

/// Every number of a suite that something was promised about, as the table that its section begins with.
#[derive(Clone, Debug)]
pub struct Promises(Table);

impl Promises {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Table::new(&["promise", "measured", "goal", ""]))
    }

    /// Adds one.
    pub fn add(&mut self, promise: &str, measured: impl Into<String>, goal: impl Into<String>, is_kept: bool) {
        let kept = if is_kept { "kept" } else { "**missed**" };
        self.0.row([promise.into(), measured.into(), goal.into(), kept.to_owned()]);
    }
}

impl Default for Promises {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_missed_stands_out() {
        let mut promises = Promises::new();
        promises.add("fast", "9 ms", "at most 10 ms", true);
        promises.add("small", "2 MB", "at most 1 MB", false);
        let text = promises.to_string();
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert!(rows[0].contains("kept") && !rows[0].contains("missed"), "{text}");
        assert!(rows[1].contains("**missed**"), "{text}");
    }
}
