//! Draws the model.

mod change_log;
mod details;
mod footer;
mod popup;
mod table;
mod text;

use super::{
    model::{ListState, Mode, Model},
    theme::Theme,
};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::{Line, Span},
};
use text::{fit, plain};

/// Width from which the details are shown beside the table, in columns.
const WIDE: u16 = 100;

/// Height from which the details are shown below the table, in lines.
const HIGH: u16 = 22;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, model: &mut Model, theme: Theme) {
    model.prepare_frame();
    if frame.area().is_empty() {
        return;
    }
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(header(model, theme, top.width), top);
    frame.render_widget(footer::line(model, theme, bottom.width), bottom);
    let (middle, bottom_pane) = match log_height(model, middle.height) {
        0 => (middle, None),
        height => {
            let [rest, log] = Layout::vertical([Constraint::Min(0), Constraint::Length(height)]).areas(middle);
            (rest, Some(log))
        }
    };
    if let (Some(area), Some(log)) = (bottom_pane, &model.log) {
        change_log::draw(frame, area, log, theme);
    }
    let (list, pane) = panes(model, middle);
    if let Some(list) = list {
        table::draw(frame, list, model, theme);
    }
    if let Some(pane) = pane {
        details::draw(frame, pane, model, theme);
    }
    match model.mode {
        Mode::Help => popup::help(frame, middle, model, theme),
        Mode::Join => popup::join(frame, middle, model, theme),
        Mode::Filter => {
            let column = footer::cursor(model, bottom.width);
            frame.set_cursor_position((bottom.x + column, bottom.y));
        }
        Mode::Table | Mode::Details => {}
    }
    if !theme.unicode {
        to_ascii(frame);
    }
}

/// Replaces what terminals without UTF-8 would show as several wrong characters.
fn to_ascii(frame: &mut Frame<'_>) {
    for cell in &mut frame.buffer_mut().content {
        if !cell.symbol().is_ascii() {
            cell.set_symbol(match cell.symbol() {
                "…" => ".",
                "“" | "”" => "\"",
                _ => "?",
            });
        }
    }
}

/// Height of the change log. The table gets what it needs, and at least half of the screen.
fn log_height(model: &Model, height: u16) -> u16 {
    if model.log.is_none() || model.mode == Mode::Details || height < 6 {
        return 0;
    }
    let table = u16::try_from(model.shown().len() + 2).unwrap_or(u16::MAX).max(height / 2);
    height.saturating_sub(table).max(height / 4).max(3)
}

/// The areas of the table and of the details.
fn panes(model: &Model, area: Rect) -> (Option<Rect>, Option<Rect>) {
    if model.mode == Mode::Details {
        return (None, Some(area));
    }
    if !model.show_details {
        return (Some(area), None);
    }
    if area.width >= WIDE {
        let [list, pane] = Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).areas(area);
        return (Some(list), Some(pane));
    }
    if area.height >= HIGH && model.log.is_none() {
        let [list, pane] = Layout::vertical([Constraint::Fill(1), Constraint::Length(area.height * 2 / 5)]).areas(area);
        return (Some(list), Some(pane));
    }
    (Some(area), None)
}

/// The first line: names of the lobbies, number of servers and players.
fn header(model: &Model, theme: Theme, width: u16) -> Line<'static> {
    let servers = model.rows_in_scope().count();
    let players: u64 = model.shown().filter_map(|row| row.server.info.players).map(u64::from).sum();
    let counted = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let shown = if model.filter.is_active() { format!("{} of ", model.shown().len()) } else { String::new() };
    let mut counts = format!("{shown}{}", counted(servers as u64, "server"));
    if width >= 60 {
        counts += &format!(", {}", counted(players, "player"));
    }
    let failed = model.lists.iter().filter(|list| matches!(list.state, ListState::Failed(_))).count();
    let names = plain(&model.scope_name());
    let title = " Rallypoint  ";
    let spinner = if model.is_scanning { theme.spinner(model.frame / 2) } else { " " };
    let right = format!(" {counts} {spinner} ");
    let failure = if failed > 0 { "  no list!" } else { "" };
    let used = title.len() + failure.len() + text::columns(&right);
    let names = fit(&names, usize::from(width).saturating_sub(used), false);
    Line::from(vec![
        Span::styled(title, theme.title()),
        Span::raw(names),
        Span::styled(failure, theme.bad()),
        Span::raw(right),
    ])
}
