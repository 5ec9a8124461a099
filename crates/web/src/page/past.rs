//! What was, for the pages: read from the history without keeping anybody waiting.

use super::graph::{Graph, Span};
use crate::{WebSettings, calendar, shared::Web};
use rallypoint_history::{
    EventKind, HistoryError, HistoryEvent, HistoryReader, Resolution, Subject, Summary, UnixSeconds, export,
};

/// So many events are shown.
const EVENTS: usize = 25;

/// What was.
#[derive(Debug)]
pub(super) struct Past {
    pub summary: Option<Summary>,
    pub graph: Graph,
    pub events: Vec<HistoryEvent>,
}

/// What a page knows of the past.
#[derive(Debug)]
pub(super) enum Known {
    /// No history is kept.
    Off,
    /// It is, but it cannot be read: why not.
    Trouble(String),
    Past(Box<Past>),
}

impl Known {
    pub async fn read(web: &Web, subject: Subject, span: Span) -> Self {
        let Some(history) = web.history.clone() else { return Self::Off };
        let now = calendar::now() as UnixSeconds;
        match tokio::task::spawn_blocking(move || Past::read(&history, subject, span, now)).await {
            Ok(Ok(past)) => Self::Past(Box::new(past)),
            Ok(Err(error)) => Self::Trouble(error.to_string()),
            Err(_) => Self::Trouble("it could not be read".into()),
        }
    }

    pub fn summary(&self) -> Option<&Summary> {
        match self {
            Self::Past(past) => past.summary.as_ref(),
            Self::Off | Self::Trouble(_) => None,
        }
    }

    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Off)
    }
}

impl Past {
    fn read(history: &HistoryReader, subject: Subject, span: Span, now: UnixSeconds) -> Result<Self, HistoryError> {
        let is_server = matches!(subject, Subject::Server(_));
        let series = history.series(&subject, now - span.seconds()..now, Resolution::Auto)?;
        Ok(Self {
            summary: history.summary(&subject, now)?,
            graph: Graph::new(&series, span, !is_server),
            events: if is_server { history.events(&subject, EVENTS, None)? } else { Vec::new() },
        })
    }
}

/// A moment, for programs.
pub(super) fn machine_time(time: &UnixSeconds) -> String {
    export::rfc3339(*time)
}

/// A moment, for people: "2026-11-16 08:30".
pub(super) fn time(time: &UnixSeconds) -> String {
    let text = export::rfc3339(*time);
    text.get(..16).unwrap_or(&text).replace('T', " ")
}

/// What happened, in words.
pub(super) fn words(kind: &EventKind, settings: &WebSettings) -> String {
    match kind {
        EventKind::Listed(lobby) => format!("came into the list of {}", settings.names.short(lobby)),
        EventKind::Unlisted(why) => match why.unwrap_or_default() {
            "expired" => "left the list: no sign of life any more",
            "unregistered" => "left the list: taken off by its owner",
            "replaced" => "left the list: another server took its address",
            "moved" => "left the list: moved to another lobby",
            "unreachable" => "left the list: it could not be reached",
            "banned" => "left the list: unlisted by the operator",
            "unwatched" => "left the list: no longer watched",
            _ => "left the list",
        }
        .into(),
        EventKind::Name(name) => format!("got the name {name}"),
        EventKind::Map(map) => format!("went to the map {map}"),
    }
}
