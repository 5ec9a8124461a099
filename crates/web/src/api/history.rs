//! `GET …/history`: what was, as points of time.

use super::answer;
use crate::{calendar, filter::BadParameter, id::Id, problem::Problem, shared::Web};
use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode},
    response::Response,
};
use rallypoint_history::{HistoryError, HistoryReader, Resolution, Subject, UnixSeconds, export};
use std::{
    io::{self, Write},
    ops::Range,
};

/// If nothing is said, the last day.
const USUAL: i64 = 24 * 60 * 60;

/// `GET /api/v1/servers/{id}/history`
pub(super) async fn server(
    State(web): State<Web>,
    Id(id): Id,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = id.parse().map_err(|error| Problem::parameter("id", format!("id: {error}")))?;
    tell(&web, Subject::Server(id), query.as_deref().unwrap_or_default(), &headers).await
}

/// `GET /api/v1/lobbies/{id}/history`
pub(super) async fn lobby(
    State(web): State<Web>,
    Id(id): Id,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = id.parse().map_err(|_| Problem::parameter("id", "id: expected the UUID of a lobby"))?;
    tell(&web, Subject::Lobby(id), query.as_deref().unwrap_or_default(), &headers).await
}

/// `GET /api/v1/history`
pub(super) async fn total(
    State(web): State<Web>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    tell(&web, Subject::Total, query.as_deref().unwrap_or_default(), &headers).await
}

/// What is asked for.
#[derive(Clone, Debug)]
struct Wanted {
    range: Range<UnixSeconds>,
    resolution: Resolution,
    is_csv: bool,
}

async fn tell(web: &Web, subject: Subject, query: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    let now = calendar::now() as UnixSeconds;
    let wanted = Wanted::parse(query, now)?;
    let off = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "this lobby keeps no history");
    let history = web.history.clone().ok_or_else(off)?;
    let (is_csv, is_known) = (wanted.is_csv, is_known(web, &subject));
    // It reads from the disk.
    let body = tokio::task::spawn_blocking(move || write(&history, &subject, is_known, &wanted, now)).await;
    let failed = |error: &dyn std::fmt::Display| {
        tracing::warn!(%error, "the history cannot be read");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the history cannot be read right now")
    };
    let body = match body.map_err(|error| failed(&error))? {
        Err(HistoryError::Missing(_)) => {
            let detail = "the history is not there yet: ask again in a moment";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
        body => body.map_err(|error| failed(&error))?,
    };
    let body = body.ok_or_else(|| Problem::not_found("nothing is known of it; its history may be too long ago"))?;
    let kind = if is_csv { HeaderValue::from_static("text/csv; charset=utf-8") } else { answer::JSON };
    Ok(answer::tagged(body.into(), kind, headers))
}

/// Whether something is there now. It may have no history yet: servers get one after five minutes.
fn is_known(web: &Web, subject: &Subject) -> bool {
    let snapshot = web.live.snapshot();
    match subject {
        Subject::Total => true,
        Subject::Lobby(id) => snapshot.lobbies().contains_key(id) || web.settings().names.name(id).is_some(),
        Subject::Server(id) => snapshot.record(*id).is_some(),
    }
}

fn write(
    history: &HistoryReader,
    subject: &Subject,
    is_known: bool,
    wanted: &Wanted,
    now: UnixSeconds,
) -> Result<Option<Vec<u8>>, HistoryError> {
    let summary = history.summary(subject, now)?;
    if summary.is_none() && !is_known {
        return Ok(None);
    }
    let series = history.series(subject, wanted.range.clone(), wanted.resolution)?;
    let mut out = Vec::new();
    // Writing into memory does not fail.
    let written: io::Result<()> = if wanted.is_csv {
        out.write_all(export::CSV_HEADING.as_bytes()).and_then(|()| export::csv(&mut out, subject, &series))
    } else {
        export::json(&mut out, subject, summary.as_ref(), &series)
    };
    Ok(written.is_ok().then_some(out))
}

impl Wanted {
    fn parse(query: &str, now: UnixSeconds) -> Result<Self, BadParameter> {
        let (mut from, mut to, mut resolution, mut is_csv) = (None, None, Resolution::Auto, false);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = |expected: &str| BadParameter::new(&name, expected);
            let time = || {
                let expected = "expected a time such as 2026-11-16T08:00:00Z, a date, or seconds since 1970";
                let time = export::parse_time(&value).map_err(|_| wrong(expected))?;
                // The calendar of SQLite and of graphs ends somewhere.
                if (0..=253_402_300_799).contains(&time) { Ok(time) } else { Err(wrong(expected)) }
            };
            match &*name {
                _ if value.is_empty() => {}
                "from" => from = Some(time()?),
                "to" => to = Some(time()?),
                "resolution" => {
                    let known = Resolution::NAMES.iter().find(|(name, _)| *name == value);
                    resolution = known.ok_or_else(|| wrong("expected auto, minute, hour or day"))?.1;
                }
                "format" => {
                    is_csv = match &*value {
                        "json" => false,
                        "csv" => true,
                        _ => return Err(wrong("expected json or csv")),
                    }
                }
                _ => return Err(wrong("there is no such parameter; there are from, to, resolution, format")),
            }
        }
        let to = to.unwrap_or(now);
        let from = from.unwrap_or((to - USUAL).max(0));
        if from >= to {
            return Err(BadParameter::new("from", "it has to be before to"));
        }
        if resolution.is_too_fine(&(from..to)) {
            let expected = "the range has too many points: ask for less, or for a coarser resolution";
            return Err(BadParameter::new("from", expected));
        }
        Ok(Self { range: from..to, resolution, is_csv })
    }
}
