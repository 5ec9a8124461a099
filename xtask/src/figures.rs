//! The figures of the comparison in docs/benchmarks.md are those of its other tables and of docs/benchmark-details.md, written alike, so
//! that they do not grow stale.

use crate::Stop;
use std::{collections::HashSet, fs, path::Path};

/// The heading of the comparison.
const HEADING: &str = "| job | Rallypoint | others |";

/// Where the figures of each row come from: its job, and how the rows of the other tables begin.
const SOURCES: &[(&str, &[&str])] = &[
    ("query 10,000 servers", &["rallypoint query --jsonl", "gamedig (crate)", "gamedig (npm)", "quakestat"]),
    ("refreshes at a lobby", &["rallypoint serve", "minimal recvmmsg loop"]),
    ("lists of 1,000 servers", &["rallypoint serve", "nginx"]),
    ("game messages", &["50 ms, 5 %"]),
    ("download of 8 MB", &["50 ms, 5 %"]),
    ("back after 5 s", &["recovery after an outage of 5 s, RTT 50 ms"]),
    ("messages of 400 bytes", &["400 bytes"]),
];

/// Figures of the comparison that were not measured.
pub fn problems(root: &Path) -> Result<Vec<String>, Stop> {
    let read = |file: &str| fs::read_to_string(root.join(file)).map_err(Stop::while_doing("read the documents"));
    let results = read("docs/benchmarks.md")?;
    Ok(stale(&results, &(read("docs/benchmark-details.md")? + &results)))
}

fn stale(comparison: &str, benchmarks: &str) -> Vec<String> {
    let rows = comparison.lines().skip_while(|line| *line != HEADING).skip(2).take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| stale_figures(row, benchmarks)).collect()
}

fn stale_figures(row: &str, benchmarks: &str) -> Vec<String> {
    let (job, figures) = row.trim_matches(['|', ' ']).split_once('|').unwrap_or_default();
    let Some((_, sources)) = SOURCES.iter().find(|(prefix, _)| job.starts_with(prefix)) else {
        return vec![format!(
            "docs/benchmarks.md: the source of the row `{}` is not known: add it to figures.rs",
            job.trim()
        )];
    };
    let is_source = |line: &&str| {
        let line = line.trim_start_matches(['|', ' ']);
        sources.iter().any(|source| line.starts_with(source))
    };
    let known: HashSet<_> = benchmarks.lines().filter(is_source).flat_map(numbers).collect();
    numbers(figures)
        .filter(|number| !known.contains(number))
        .map(|number| format!("docs/benchmarks.md: `{}`: {number} is not a figure of the suites", job.trim()))
        .collect()
}

/// The numbers in a text, as they are written.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.')
        .map(|number| number.trim_matches('.'))
        .filter(|n| !n.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENCHMARKS: &str = "| rallypoint serve | 34.3 k/s |\n| nginx | 35.8 k/s |\n| other | 99 |\n";

    fn problems_of(row: &str) -> Vec<String> {
        stale(&format!("text\n{HEADING}\n|---|---|---|\n{row}\n\n| another | 5 | table |\n"), BENCHMARKS)
    }

    #[test]
    fn figures_that_were_measured_again_are_found() {
        assert!(problems_of("| lists of 1,000 servers | 34.3 k/s | nginx 35.8 k/s |").is_empty());
        let found = problems_of("| lists of 1,000 servers | 34.3 k/s | nginx 99 k/s |");
        assert_eq!(found, ["docs/benchmarks.md: `lists of 1,000 servers`: 99 is not a figure of the suites"]);
        assert_eq!(problems_of("| something else | 34.3 k/s | nginx 35.8 k/s |").len(), 1);
    }
}
