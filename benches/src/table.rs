//! Markdown tables and human-readable numbers.

use std::fmt;

/// A Markdown table. The first column is text and left-aligned, the others are numbers and right-aligned.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    #[must_use]
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(ToString::to_string).collect()] }
    }

    /// Adds a row. Missing cells stay empty, and excess cells are dropped.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) -> &mut Self {
        let columns = self.rows[0].len();
        // A bar would end the cell.
        let mut row: Vec<String> =
            cells.into_iter().take(columns).map(|cell| cell.into().replace('|', "\\|")).collect();
        row.resize(columns, String::new());
        self.rows.push(row);
        self
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    write!(f, "| {cell:<width$} ")?;
                } else {
                    write!(f, "| {cell:>width$} ")?;
                }
            }
            writeln!(f, "|")?;
            if number == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let end = if column == 0 { '-' } else { ':' };
                    write!(f, "|-{}{end}", "-".repeat(*width))?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// The ratio of `ours` to `theirs`: `2.50×`.
#[must_use]
pub fn ratio(ours: f64, theirs: f64) -> String {
    if theirs > 0.0 && ours.is_finite() { format!("{}×", three_digits(ours / theirs)) } else { "n/a".into() }
}

/// A number with three significant digits and an SI prefix: `rate(1.5e9, "B/s")` is `1.50 GB/s`.
#[must_use]
pub fn rate(value: f64, unit: &str) -> String {
    let (divisor, letter) = match value {
        1e9.. => (1e9, "G"),
        1e6.. => (1e6, "M"),
        1e3.. => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{} {letter}{unit}", three_digits(value / divisor)).trim_end().into()
}

/// A time given in nanoseconds, in a suitable unit: `nanoseconds(1500.0)` is `1.50 µs`.
#[must_use]
pub fn nanoseconds(value: f64) -> String {
    let (divisor, unit) = match value {
        1e9.. => (1e9, "s"),
        1e6.. => (1e6, "ms"),
        1e3.. => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    format!("{} {unit}", three_digits(value / divisor))
}

fn three_digits(value: f64) -> String {
    let decimals = match value {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_and_complete() {
        let mut table = Table::new(&["operation", "time", "goal"]);
        table.row(["parse | emit", "5 ns"]).row(["µ", "1000 ns", "met", "excess"]);
        let expected = "\
| operation     |    time | goal |
|---------------|--------:|-----:|
| parse \\| emit |    5 ns |      |
| µ             | 1000 ns |  met |
";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(nanoseconds(0.5), "0.50 ns");
        assert_eq!(nanoseconds(12.34), "12.3 ns");
        assert_eq!(nanoseconds(1234.0), "1.23 µs");
        assert_eq!(nanoseconds(2.5e9), "2.50 s");
        assert_eq!(rate(950.0, "B/s"), "950 B/s");
        assert_eq!(rate(1.5e9, "B/s"), "1.50 GB/s");
        assert_eq!(rate(1.5e6, ""), "1.50 M");
        assert_eq!(rate(20.0, ""), "20.0");
    }

    #[test]
    fn a_ratio_to_nothing_is_not_a_number() {
        assert_eq!(ratio(5.0, 2.0), "2.50×");
        assert_eq!(ratio(5.0, 0.0), "n/a");
        assert_eq!(ratio(f64::NAN, 1.0), "n/a");
    }
}
