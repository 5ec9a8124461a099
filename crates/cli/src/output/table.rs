//! Tables with aligned columns, as wide as the terminal.
//!
//! Our own, because the usual crates (comfy-table, tabled) wrap or truncate cells in a narrow terminal; none of them leaves out
//! the least important columns.

use super::terminal::{Style, Terminal, columns, fit};

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    /// Whether cells are right-aligned, as numbers are.
    pub right: bool,
    /// Minimum width, unless the column is left out.
    pub least: usize,
    /// Minimum width while a column is shown that may be left out for it: see [`MAY_GO`].
    pub preferred: usize,
    /// Order in which columns are left out if there is no room: higher numbers first, 0 never.
    pub drop: u8,
    /// Whether the column is left out if all its cells are the same.
    pub if_different: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    pub style: Style,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// Maximum width of a column where nothing is truncated.
const MOST: usize = 40;

/// Columns with this or a higher [`drop`](Column::drop) are left out before others become narrower than they should be.
const MAY_GO: u8 = 3;

/// Space between two columns.
const GAP: usize = 2;

impl Table {
    pub fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Appends a row, with a cell for each column.
    pub fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines of the table, each terminated. Empty columns are left out.
    pub fn render(&self, terminal: Terminal) -> String {
        let most = if terminal.width.is_none() { MOST } else { usize::MAX };
        let natural: Vec<usize> = (0..self.columns.len()).map(|n| self.natural(n).min(most)).collect();
        let mut shown: Vec<usize> =
            (0..self.columns.len()).filter(|n| natural[*n] > 0 && !self.is_redundant(*n)).collect();
        let widths = loop {
            let wanted: Vec<_> = shown.iter().map(|n| natural[*n].max(columns(self.columns[*n].title))).collect();
            let has_spare = shown.iter().any(|n| self.columns[*n].drop >= MAY_GO);
            let least = |column: &Column| if has_spare { column.preferred } else { column.least };
            let least: Vec<_> =
                shown.iter().zip(&wanted).map(|(n, width)| least(&self.columns[*n]).min(*width)).collect();
            let room = terminal.width.map(|width| width.saturating_sub(GAP * shown.len().saturating_sub(1)));
            if let Some(widths) = squeeze(&wanted, &least, room) {
                break widths;
            }
            let last =
                shown.iter().copied().filter(|n| self.columns[*n].drop > 0).max_by_key(|n| self.columns[*n].drop);
            match last {
                Some(last) => shown.retain(|n| *n != last),
                // No other column can be left out: cells are truncated.
                None => break squeeze(&wanted, &vec![1; least.len()], room).unwrap_or(least),
            }
        };
        let mut text = String::new();
        let title = |n: &usize| Cell { text: self.columns[*n].title.into(), style: Style::Bold };
        self.line(&mut text, terminal, &shown, &widths, &shown.iter().map(title).collect::<Vec<_>>());
        for row in &self.rows {
            let cells: Vec<_> = shown.iter().map(|n| row.get(*n).cloned().unwrap_or_default()).collect();
            self.line(&mut text, terminal, &shown, &widths, &cells);
        }
        text
    }

    /// Whether a column is shown only if its cells differ, and they do not.
    fn is_redundant(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        let first = cells.next();
        self.columns[column].if_different && cells.all(|cell| Some(cell) == first)
    }

    /// Width of the longest cell of a column.
    fn natural(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(&cell.text)).max().unwrap_or(0)
    }

    fn line(&self, text: &mut String, terminal: Terminal, shown: &[usize], widths: &[usize], cells: &[Cell]) {
        let start = text.len();
        for (position, ((n, width), cell)) in shown.iter().zip(widths).zip(cells).enumerate() {
            if position > 0 {
                text.push_str(&" ".repeat(GAP));
            }
            // Without a terminal nothing is truncated: a text that is too long extends beyond its column.
            let width = if terminal.width.is_none() { (*width).max(columns(&cell.text)) } else { *width };
            text.push_str(&terminal.paint(cell.style, &fit(&cell.text, width, self.columns[*n].right)));
        }
        let end = text[start..].trim_end().len();
        text.truncate(start + end);
        text.push('\n');
    }
}

/// Narrows the widest columns until all fit. `None` if they cannot.
fn squeeze(wanted: &[usize], least: &[usize], room: Option<usize>) -> Option<Vec<usize>> {
    let mut widths = wanted.to_vec();
    let Some(room) = room else { return Some(widths) };
    while widths.iter().sum::<usize>() > room {
        let widest = (0..widths.len()).filter(|n| widths[*n] > least[*n]).max_by_key(|n| widths[*n])?;
        widths[widest] -= 1;
    }
    Some(widths)
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self { text: text.into(), style: Style::Plain }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, style: Style::Plain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column { title: "NAME", right: false, least: 8, preferred: 10, drop: 0, if_different: false },
        Column { title: "PING", right: true, least: 4, preferred: 4, drop: 1, if_different: false },
        Column { title: "MAP", right: false, least: 6, preferred: 6, drop: 3, if_different: false },
        Column { title: "NONE", right: false, least: 6, preferred: 6, drop: 2, if_different: false },
    ];

    fn table() -> Table {
        let mut table = Table::new(&COLUMNS);
        for (name, ping, map) in [("Bacon Town 24/7", "7", "ctf_truefort"), ("七人の侍", "123", "dusk")] {
            table.push(vec![name.into(), ping.into(), map.into(), "".into()]);
        }
        table
    }

    fn render(width: Option<usize>) -> String {
        table().render(Terminal { width, colors: false })
    }

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        assert_eq!(
            render(None),
            "NAME             PING  MAP\n\
             Bacon Town 24/7     7  ctf_truefort\n\
             七人の侍          123  dusk\n"
        );
    }

    #[test]
    fn one_long_text_does_not_widen_its_column_for_all() {
        let mut table = table();
        table.push(vec!["x".repeat(99).as_str().into(), "8".into(), "dusk".into()]);
        let text = table.render(Terminal { width: None, colors: false });
        let ends: Vec<_> = text.lines().map(columns).collect();
        assert_eq!(ends, [51, 60, 52, 111], "{text}");
    }

    #[test]
    fn tables_fit_into_any_terminal() {
        assert_eq!(
            render(Some(24)),
            "NAME        PING  MAP\n\
             Bacon Tow…     7  ctf_t…\n\
             七人の侍     123  dusk\n"
        );
        assert_eq!(render(Some(20)), "NAME            PING\nBacon Town 24…     7\n七人の侍         123\n");
        for width in 1..60 {
            let text = render(Some(width));
            assert!(width < 12 || text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
        }
    }

    #[test]
    fn colors_do_not_affect_alignment() {
        let mut table = table();
        table.push(vec![Cell { text: "red".into(), style: Style::Bad }]);
        let text = table.render(Terminal { width: None, colors: true });
        assert!(text.contains("\x1b[31mred            \x1b[0m"), "{text:?}");
    }
}
