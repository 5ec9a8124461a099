//! Draws what the model knows.

mod details;
mod footer;
mod log;
mod popup;
mod table;
mod words;

pub use words::wrap;

use super::{
    model::{Mode, Model, PlaceState},
    theme::Theme,
};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::{Line, Span},
};
use words::{fit, plain};

/// Beside a table of at least this width there is room for details.
const WIDE: u16 = 100;

/// Below a table in a terminal of at least this height there is room for details.
const HIGH: u16 = 22;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, model: &mut Model, theme: Theme) {
    model.settle();
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
        log::draw(frame, area, log, theme);
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

/// For terminals that have nothing else: they would show several wrong signs for each right one.
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

/// How much of the screen says what has happened. The table gets what it needs, and at least a half.
fn log_height(model: &Model, height: u16) -> u16 {
    if model.log.is_none() || model.mode == Mode::Details || height < 6 {
        return 0;
    }
    let table = u16::try_from(model.shown().len() + 2).unwrap_or(u16::MAX).max(height / 2);
    height.saturating_sub(table).max(height / 4).max(3)
}

/// Where the table is, and where the details are.
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

/// What is looked at, and how much there is.
fn header(model: &Model, theme: Theme, width: u16) -> Line<'static> {
    let servers = model.rows().iter().filter(|row| row.is_listed).count();
    let players: u64 = model.rows().iter().filter_map(|row| row.record().info.players).map(u64::from).sum();
    let many = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let shown = if model.filter.is_on() { format!("{} of ", model.shown().len()) } else { String::new() };
    let mut counts = format!("{shown}{}", many(servers as u64, "server"));
    if width >= 60 {
        counts += &format!(", {}", many(players, "player"));
    }
    let failed = model.places.iter().filter(|place| matches!(place.state, PlaceState::Failed(_))).count();
    let names = match &model.places[..] {
        [one] => plain(&one.name),
        all => many(all.len() as u64, "lobby").replace("lobbys", "lobbies"),
    };
    let (title, busy) = (" Rallypoint  ", if model.is_looking { theme.spinner(model.beat / 2) } else { " " });
    let right = format!(" {counts} {busy} ");
    let trouble = if failed > 0 { "  no list!" } else { "" };
    let used = title.len() + trouble.len() + words::columns(&right);
    let names = fit(&names, usize::from(width).saturating_sub(used), false);
    Line::from(vec![
        Span::styled(title, theme.title()),
        Span::raw(names),
        Span::styled(trouble, theme.bad()),
        Span::raw(right),
    ])
}
