//! The change log, latest first.

use super::text::{fit, plain};
use crate::{
    browse::{change_log::ChangeLog, theme::Theme},
    watch::event::Tone,
};
use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

pub fn draw(frame: &mut Frame<'_>, area: Rect, log: &ChangeLog, theme: Theme) {
    let wide = usize::from(area.width);
    let title = fit(&format!("{0}{0} Changes ", theme.line()), wide.min(11), false);
    let line = title.clone() + &theme.line().repeat(wide.saturating_sub(11));
    frame.buffer_mut().set_string(area.x, area.y, line, theme.dim());
    let mut entries = log.entries().peekable();
    let y = area.y + 1;
    if entries.peek().is_none() && area.height > 1 {
        frame.buffer_mut().set_string(area.x, y, fit(" No changes yet.", wide, false), theme.dim());
    }
    for (entry, y) in entries.zip(y..area.bottom()) {
        let style = match entry.tone {
            Tone::Good => theme.good(),
            Tone::Bad => theme.bad(),
            Tone::Neutral => Style::new(),
        };
        let time = format!(" {} ", entry.time);
        let text = fit(&entry.text, wide.saturating_sub(time.len()), false);
        let line = Line::from(vec![Span::styled(plain(&time), theme.dim()), Span::styled(text, style)]);
        frame.buffer_mut().set_line(area.x, y, &line, area.width);
    }
}
