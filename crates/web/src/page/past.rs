//! What was, for the pages: read from the history without keeping anybody waiting.

use super::{
    graph::{Graph, Span},
    shown,
};
use crate::{WebSettings, shared::Web};
use rallypoint_history::{Event, Handle, HistoryError, Resolution, Subject, Summary, UnixSeconds, What, export};

/// So many events are shown.
const EVENTS: usize = 25;

/// What was.
#[derive(Debug)]
pub(super) struct Past {
    pub summary: Option<Summary>,
    pub graph: Graph,
    pub events: Vec<Event>,
}

/// What there is to say about the past: nothing if none is kept; why not, if it cannot be read.
pub(super) async fn read(web: &Web, subject: Subject, span: Span) -> Option<Result<Past, String>> {
    let history = web.history.clone()?;
    let now = shown::now() as UnixSeconds;
    let past = tokio::task::spawn_blocking(move || Past::read(&history, subject, span, now)).await;
    Some(match past {
        Ok(Ok(past)) => Ok(past),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it could not be read".into()),
    })
}

impl Past {
    fn read(history: &Handle, subject: Subject, span: Span, now: UnixSeconds) -> Result<Self, HistoryError> {
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
pub(super) fn words(what: &What, settings: &WebSettings) -> String {
    match what {
        What::Listed(lobby) => {
            let lobby = settings.names.name(lobby).map_or_else(|| shown::short(lobby), Into::into);
            format!("came into the list of {lobby}")
        }
        What::Unlisted(why) => match why.unwrap_or_default() {
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
        What::Name(name) => format!("got the name {name}"),
        What::Map(map) => format!("went to the map {map}"),
    }
}
