//! Popups: the help, and how to join.

use super::text::{columns, fit, wrap};
use crate::browse::{
    model::{HELP, Model},
    theme::Theme,
};
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::{Block, BorderType, Clear, Paragraph},
};

pub fn help(frame: &mut Frame<'_>, area: Rect, model: &mut Model, theme: Theme) {
    let key_wide = 15;
    let wide = usize::from(area.width).saturating_sub(4).min(70);
    let mut lines = Vec::new();
    for (keys, what) in HELP {
        // In a narrow terminal the keys get fewer columns.
        let key_wide = if wide < 50 { 10 } else { key_wide };
        let keys = if theme.unicode { keys.to_owned() } else { keys.replace('↑', "Up").replace('↓', "Down") };
        for (n, part) in wrap(what, wide.saturating_sub(key_wide)).into_iter().enumerate() {
            let keys = if n == 0 { &*keys } else { "" };
            let keys = fit(keys, key_wide.saturating_sub(1), false) + " ";
            lines.push(Line::from(vec![Span::styled(keys, theme.key()), Span::raw(part)]));
        }
    }
    let most = lines.len().saturating_sub(usize::from(area.height.saturating_sub(2)));
    model.help_scroll = model.help_scroll.min(u16::try_from(most).unwrap_or(u16::MAX));
    let title = if most > 0 { " Keys (down: more) " } else { " Keys " };
    open(frame, area, theme, title, lines.split_off(model.help_scroll.into()), wide);
}

pub fn join(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: Theme) {
    let Some((_, row)) = model.selected() else { return };
    let record = &row.server;
    let wide = usize::from(area.width).saturating_sub(4).min(70);
    let mut lines: Vec<_> =
        wrap(record.name(), wide).into_iter().map(|line| Line::styled(line, theme.title())).collect();
    let Some(address) = model.join_address(record) else {
        lines.push(Line::raw("The address is not known."));
        return open(frame, area, theme, " Join ", lines, wide);
    };
    lines.push(Line::styled(address.to_string(), theme.heading()));
    for other in record.endpoints.iter().filter(|other| **other != address) {
        lines.push(Line::styled(format!("also {other}"), theme.dim()));
    }
    if record.info.password == Some(true) {
        lines.push(Line::styled("A password is required.", theme.fair()));
    }
    lines.push(Line::raw(""));
    match model.join_command(record) {
        Some(command) => {
            lines.extend(wrap(&command.show(address), wide).into_iter().map(Line::raw));
            lines.push(Line::from(vec![
                Span::styled("Enter", theme.key()),
                Span::raw(" runs it   "),
                Span::styled("Esc", theme.key()),
                Span::raw(" back"),
            ]));
        }
        None => {
            let text = "No join command is configured: use --join 'game {host} {port}', or browse.toml (see --help).";
            lines.extend(wrap(text, wide).into_iter().map(|line| Line::styled(line, theme.dim())));
            lines.push(Line::from(vec![Span::styled("Esc", theme.key()), Span::raw(" back")]));
        }
    }
    open(frame, area, theme, " Join ", lines, wide);
}

fn open(frame: &mut Frame<'_>, area: Rect, theme: Theme, title: &'static str, lines: Vec<Line<'static>>, most: usize) {
    let wide = lines.iter().map(|line| columns(&line.to_string())).max().unwrap_or(0).min(most);
    let width = u16::try_from(wide + 4).unwrap_or(u16::MAX).min(area.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let popup = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    if popup.is_empty() {
        return;
    }
    let block = if theme.unicode {
        Block::bordered().border_type(BorderType::Rounded)
    } else {
        Block::bordered().border_set(ratatui::symbols::border::Set {
            top_left: "+",
            top_right: "+",
            bottom_left: "+",
            bottom_right: "+",
            vertical_left: "|",
            vertical_right: "|",
            horizontal_top: "-",
            horizontal_bottom: "-",
        })
    };
    let block = block.title(title).border_style(theme.title()).padding(ratatui::widgets::Padding::horizontal(1));
    // A wide character beside the popup would extend under the border and shift it.
    for y in popup.y..popup.bottom() {
        let beside = popup.x.checked_sub(1).and_then(|x| frame.buffer_mut().cell_mut((x, y)));
        if let Some(cell) = beside.filter(|cell| columns(cell.symbol()) > 1) {
            cell.set_symbol(" ");
        }
    }
    frame.render_widget(Clear, popup);
    frame.render_widget(Paragraph::new(lines).block(block), popup);
}
