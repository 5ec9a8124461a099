//! The history as pages show it. Reading it waits for the disk, so pages that have it are rendered on the blocking thread pool.

use super::graph::{Graph, Span};
use crate::{WebSettings, state::AppState};
use rallypoint_history::{
    EventKind, HistoryError, HistoryEvent, HistoryReader, Resolution, Subject, Summary, UnixSeconds, export,
};
use rallypoint_lobby::unix_now;

/// Maximum number of events on a page.
const MAX_EVENTS: usize = 25;

/// The history of a server, of a list, or of all lists.
#[derive(Debug)]
pub(super) struct HistoryView {
    pub is_server: bool,
    pub summary: Option<Summary>,
    pub graph: Graph,
    pub events: Vec<HistoryEvent>,
}

/// The part of a page that shows history.
#[derive(Debug)]
pub(super) enum HistorySection {
    /// The lobby keeps no history.
    Off,
    /// The history cannot be read, for this reason.
    Unavailable(String),
    /// The history could be read.
    Available(Box<HistoryView>),
}

impl HistorySection {
    /// Reads from the disk.
    pub fn read(state: &AppState, subject: Subject, span: Span) -> Self {
        let Some(history) = &state.history else { return Self::Off };
        match HistoryView::read(history, subject, span, unix_now() as UnixSeconds) {
            Ok(history) => Self::Available(Box::new(history)),
            Err(error) => Self::Unavailable(error.to_string()),
        }
    }

    pub fn summary(&self) -> Option<&Summary> {
        match self {
            Self::Available(history) => history.summary.as_ref(),
            Self::Off | Self::Unavailable(_) => None,
        }
    }

    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Off)
    }
}

impl HistoryView {
    /// The fractions of time for which it was listed, with their ranges. A range that is hardly longer than the history would
    /// repeat the one before it.
    pub fn uptime(&self) -> Vec<(&'static str, f64)> {
        let Some(summary) = &self.summary else { return Vec::new() };
        let recorded = unix_now() as UnixSeconds - summary.first;
        let ranges = [("24 hours", 0), ("7 days", 86_400), ("30 days", 7 * 86_400)];
        let known = ranges.iter().zip(summary.uptime).filter(|((_, from), _)| recorded > *from);
        known.filter_map(|((range, _), share)| Some((*range, share?))).collect()
    }

    fn read(history: &HistoryReader, subject: Subject, span: Span, now: UnixSeconds) -> Result<Self, HistoryError> {
        let is_server = matches!(subject, Subject::Server(_));
        let series = history.series(&subject, now - span.seconds()..now, Resolution::Auto)?;
        Ok(Self {
            summary: history.summary(&subject, now)?,
            graph: Graph::new(&series, span, is_server),
            is_server,
            events: if is_server { history.events(&subject, MAX_EVENTS, None)? } else { Vec::new() },
        })
    }
}

/// A time for programs: RFC 3339.
pub(super) fn machine_time(time: &UnixSeconds) -> String {
    export::rfc3339(*time)
}

/// A time for readers, in UTC: "2026-11-16 08:30".
pub(super) fn time(time: &UnixSeconds) -> String {
    let text = export::rfc3339(*time);
    text.get(..16).unwrap_or(&text).replace('T', " ")
}

/// A day for readers, in UTC: "2026-11-16".
pub(super) fn date(time: &UnixSeconds) -> String {
    let text = export::rfc3339(*time);
    text.get(..10).unwrap_or(&text).to_owned()
}

/// An event in words.
pub(super) fn describe(kind: &EventKind, settings: &WebSettings) -> String {
    match kind {
        EventKind::Listed(list) => format!("listed in {}", settings.names.short(list)),
        EventKind::Unlisted(why) => match why.unwrap_or_default() {
            "expired" => "left the list: its registration expired",
            "unregistered" => "left the list: unregistered by its owner",
            "replaced" => "left the list: replaced by another server at its address",
            "moved" => "left the list: moved to another list",
            "unreachable" => "left the list: not reachable",
            "banned" => "left the list: unlisted by the operator",
            "unwatched" => "left the list: no longer watched",
            "evicted" => "left the list: it was full",
            "contested" => "left the list: another server registers at the same address and port",
            _ => "left the list",
        }
        .into(),
        EventKind::Name(name) => format!("renamed to {name}"),
        EventKind::Map(map) => format!("changed the map to {map}"),
    }
}
