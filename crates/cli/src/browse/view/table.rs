//! The table of servers.

use super::text::{columns, fit};
use crate::{
    browse::{
        filter::Column,
        model::{ListState, Model, Row},
        theme::Theme,
    },
    output::{
        server_cells::{self, PASSWORD_MARK, UNKNOWN},
        table::Cell,
    },
};
use rallypoint_query::ScannedServer;
use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

pub fn draw(frame: &mut Frame<'_>, area: Rect, model: &mut Model, theme: Theme) {
    if area.height == 0 {
        return;
    }
    let widths = widths(area.width.into());
    let buffer = frame.buffer_mut();
    buffer.set_line(area.x, area.y, &titles(model, theme, &widths), area.width);
    let page = usize::from(area.height - 1);
    let offset = model.scroll_to_selection(page);
    let selected = model.selected().map(|(at, _)| at);
    for (at, row) in model.shown().enumerate().skip(offset).take(page) {
        let mut line = line(model, row, theme, &widths);
        if Some(at) == selected {
            // The selection bar has no other colours.
            for span in &mut line.spans {
                span.style.fg = None;
                span.style.bg = None;
            }
            line = line.style(theme.selected());
        } else if !row.is_listed {
            line = line.style(theme.dim());
        }
        let y = area.y + 1 + (at - offset) as u16;
        buffer.set_line(area.x, y, &line, area.width);
        if Some(at) == selected {
            buffer.set_style(Rect { y, height: 1, ..area }, theme.selected());
        }
    }
    if model.shown().len() == 0 && page > 0 {
        for (n, text) in empty_table(model, area.width.into()).iter().enumerate().take(page.saturating_sub(1)) {
            buffer.set_string(area.x, area.y + 2 + n as u16, text, theme.dim());
        }
    }
}

/// The columns that there is room for, and how wide each is.
fn widths(all: usize) -> Vec<(Column, usize)> {
    let mut fixed = vec![(Column::Favourite, 2), (Column::Players, 8), (Column::Ping, 8)];
    if all >= 52 {
        fixed.push((Column::Map, if all >= 90 { 20 } else { 14 }));
    }
    if all >= 72 {
        fixed.push((Column::Game, if all >= 90 { 16 } else { 12 }));
    }
    if all >= 110 {
        fixed.push((Column::Address, 22));
    }
    // One column of space between each two, and one at the end.
    let rest = all.saturating_sub(fixed.iter().map(|(_, wide)| wide + 1).sum::<usize>() + 1);
    fixed.push((Column::Name, rest));
    fixed.sort_by_key(|(column, _)| Column::ALL.iter().position(|other| other == column));
    fixed
}

fn is_number(column: Column) -> bool {
    matches!(column, Column::Players | Column::Ping)
}

fn titles(model: &Model, theme: Theme, widths: &[(Column, usize)]) -> Line<'static> {
    let mut spans = Vec::new();
    for &(column, wide) in widths {
        let is_sorted = column == model.column;
        let arrow = if is_sorted { theme.arrow(model.most_first) } else { "" };
        // The arrow is placed where it does not shorten the title.
        let title = match column {
            Column::Favourite if is_sorted => arrow.to_owned(),
            Column::Favourite => theme.star().to_owned(),
            Column::Players => format!("{arrow}{}", if wide > 7 { "Players" } else { "Plrs" }),
            Column::Ping => format!("{arrow}{}", column.title()),
            _ => format!("{}{arrow}", column.title()),
        };
        let style = if is_sorted { theme.title() } else { theme.heading() };
        spans.push(Span::styled(fit(&title, wide, is_number(column)), style));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

fn line(model: &Model, row: &Row, theme: Theme, widths: &[(Column, usize)]) -> Line<'static> {
    let record = &row.server;
    let mut spans = Vec::new();
    for &(column, wide) in widths {
        let (text, mut style) = cell(model, row, record, theme, column);
        if model.log.as_ref().is_some_and(|log| log.is_changed(&row.server.id, column)) {
            style = theme.changed();
        }
        let mut text = fit(&text, wide, is_number(column));
        if column == Column::Name && record.info.password == Some(true) && wide > 12 {
            text = fit(record.name(), wide - PASSWORD_MARK.len(), false) + PASSWORD_MARK;
        }
        spans.push(Span::styled(text, style));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

fn cell(model: &Model, row: &Row, record: &ScannedServer, theme: Theme, column: Column) -> (String, Style) {
    let info = &record.info;
    let shown = |cell: Cell| match cell.text.is_empty() {
        true => (UNKNOWN.to_owned(), theme.dim()),
        false => (cell.text, theme.style(cell.style)),
    };
    match column {
        Column::Favourite if model.favourites.contains(&row.server.id) => (theme.star().into(), theme.fair()),
        Column::Favourite => (String::new(), Style::new()),
        Column::Name => (record.name().to_owned(), Style::new()),
        Column::Map => shown(info.map.as_deref().unwrap_or_default().trim().into()),
        Column::Game => shown(record.game().unwrap_or_default().into()),
        Column::Address => (address(model, record), theme.dim()),
        Column::Players => shown(server_cells::players(info)),
        Column::Ping => shown(server_cells::ping(record, ping)),
    }
}

pub fn address(model: &Model, record: &ScannedServer) -> String {
    model.join_address(record).map_or_else(|| record.target.clone(), |address| address.to_string())
}

/// A round-trip time in milliseconds, without a unit.
fn ping(milliseconds: f64) -> String {
    if milliseconds < 1.0 { "<1".into() } else { format!("{milliseconds:.0}") }
}

/// Why the table is empty.
fn empty_table(model: &Model, wide: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for list in &model.lists {
        if let ListState::Failed(error) = &list.state {
            texts.push(format!("{}: {error}", list.name));
            // The last line of the screen has room for a part of these.
            texts.extend(list.refused_copies.iter().cloned());
        }
    }
    if texts.is_empty() {
        texts.push(if model.filter.is_active() && !model.rows().is_empty() {
            format!("No server matches the filter: {}. Esc shows all.", model.filter.describe())
        } else if model.is_scanning {
            "Scanning...".into()
        } else {
            "The list is empty. Press r to refresh.".into()
        });
    }
    let lines = texts.iter().flat_map(|text| super::text::wrap(text, wide.saturating_sub(3)));
    lines.map(|line| format!("  {line}")).filter(|line| columns(line) <= wide).collect()
}
