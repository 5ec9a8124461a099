//! The words and styles by which a server is shown in a table: the same in `list`, `browse` and `watch`.

use super::{table::Cell, terminal::Style};
use rallypoint_query::{ProbeError, ScannedServer, proto::ServerInfo};

/// Marks a server that requires a password, after its name.
pub const PASSWORD_MARK: &str = " pw";

/// Stands for a value that is not known.
pub const UNKNOWN: &str = "-";

/// The players: `3+2/24` are three players and two bots at 24 slots.
pub fn players(info: &ServerInfo) -> Cell {
    let bots = info.bots.filter(|bots| *bots > 0).map_or(String::new(), |bots| format!("+{bots}"));
    let text = match (info.players, info.max_players) {
        (Some(players), Some(0) | None) => format!("{players}{bots}"),
        (Some(players), Some(most)) => format!("{players}{bots}/{most}"),
        (None, Some(most)) => format!("?/{most}"),
        (None, None) => String::new(),
    };
    let is_full = info.max_players.is_some_and(|most| most > 0 && info.players >= Some(most));
    let style = match info.players {
        Some(1..) if is_full => Style::Fair,
        Some(1..) => Style::Good,
        _ => Style::Dim,
    };
    Cell { text, style }
}

/// The round-trip time as `format` shows it, or why there is none.
pub fn ping(record: &ScannedServer, format: impl Fn(f64) -> String) -> Cell {
    match (record.ping_ms(), &record.error) {
        (Some(ping), _) => Cell { text: format(ping), style: Style::of_ping(ping) },
        (None, Some(error)) => Cell { text: short_error(error).into(), style: Style::Bad },
        (None, None) => Cell::default(),
    }
}

/// An error in a narrow column.
const fn short_error(error: &ProbeError) -> &'static str {
    match error {
        ProbeError::NotFound | ProbeError::NoAddress(_) => "unknown",
        ProbeError::TimedOut(_) => "silent",
        ProbeError::Refused => "refused",
        ProbeError::Malformed(_) => "invalid",
        _ => "no route",
    }
}
