//! The last line: the filter being typed, a message, or the keys.

use super::text::{clip_left, columns, fit, plain};
use crate::browse::{
    model::{ListState, Mode, Model},
    theme::Theme,
};
use ratatui::text::{Line, Span};

/// Columns of the key that shows all servers again.
const ESC_ROOM: usize = "Esc show all".len();

pub fn line(model: &Model, theme: Theme, width: u16) -> Line<'static> {
    let wide = usize::from(width);
    if model.mode == Mode::Filter {
        let (label, words) = filter(model, wide);
        let used = columns(&label) + columns(&words);
        let mut spans = vec![Span::styled(label, theme.key()), Span::raw(words)];
        let hints = ["Enter", " keep  ", "Esc", " clear "];
        let room: usize = hints.iter().map(|hint| hint.len()).sum();
        // At least two columns of the typed words stay free.
        if let Some(gap) = wide.checked_sub(used + room + 2) {
            spans.push(Span::raw(" ".repeat(gap + 2)));
            let styled = |(n, hint): (usize, &&'static str)| {
                if n.is_multiple_of(2) { Span::styled(*hint, theme.key()) } else { Span::raw(*hint) }
            };
            spans.extend(hints.iter().enumerate().map(styled));
        }
        return Line::from(spans);
    }
    if let Some(message) = &model.message {
        let style = if message.is_error { theme.bad() } else { theme.good() };
        return Line::styled(fit(&format!(" {}", message.text), wide, false), style);
    }
    let failed = model.lists.iter().find_map(|list| match &list.state {
        ListState::Failed(error) => Some(format!(" {}: {error}", list.name)),
        _ => None,
    });
    if let Some(text) = failed.filter(|_| model.shown().len() > 0) {
        return Line::styled(fit(&text, wide, false), theme.bad());
    }
    let copied = model.lists.iter().find_map(|list| match &list.state {
        ListState::Copied(text) => Some(format!(" {text}")),
        _ => None,
    });
    if let Some(text) = copied {
        return Line::styled(fit(&plain(&text), wide, false), theme.fair());
    }
    if model.filter.is_active() && model.mode != Mode::Details {
        let text = format!(" Filter: {}  ", model.filter.describe());
        let keys = [("Esc", " show all  "), ("/", " change  "), ("Tab", " details  "), ("?", " help")];
        let mut used = columns(&text);
        if used + ESC_ROOM <= wide {
            let mut spans = vec![Span::styled(plain(&text), theme.fair())];
            for (key, what) in keys {
                used += key.len() + what.len();
                if used <= wide {
                    spans.push(Span::styled(key, theme.key()));
                    spans.push(Span::raw(what));
                }
            }
            return Line::from(spans);
        }
    }
    keys(model, theme, wide)
}

/// Column of the cursor while a filter is typed.
pub fn cursor(model: &Model, width: u16) -> u16 {
    let (label, words) = filter(model, width.into());
    u16::try_from(columns(&label) + columns(&words)).unwrap_or(u16::MAX).min(width.saturating_sub(1))
}

fn filter(model: &Model, wide: usize) -> (String, String) {
    let label = " Filter: ".to_owned();
    let words = clip_left(&plain(&model.filter.words), wide.saturating_sub(columns(&label) + 1));
    (label, words)
}

/// As many keys as there is room for, the most important first, and always the one that quits.
fn keys(model: &Model, theme: Theme, wide: usize) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    let mut used = 1;
    let table = [
        ("?", "help"),
        ("/", "filter"),
        ("Enter", "join"),
        ("Tab", "details"),
        ("s", "sort"),
        if model.can_switch() { ("l", "next list") } else { ("o", "order") },
        ("f", "favourite"),
        ("r", "refresh"),
        ("q", "quit"),
    ];
    let details = [("Tab", "back"), ("Enter", "join"), ("J K", "scroll"), ("f", "favourite"), ("q", "quit")];
    let keys = if model.mode == Mode::Details { &details[..] } else { &table[..] };
    let room = |(key, what): &(&str, &str)| key.len() + 1 + what.len() + 2;
    let last = keys.last().map_or(0, room);
    for (n, (key, what)) in keys.iter().enumerate() {
        let room = room(&(key, what));
        let reserved = if n + 1 < keys.len() { last } else { 0 };
        if used + room + reserved > wide + 2 {
            continue;
        }
        used += room;
        spans.push(Span::styled(*key, theme.key()));
        spans.push(Span::raw(format!(" {what}  ")));
    }
    Line::from(spans)
}
