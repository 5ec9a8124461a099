//! `GET …/history`: players and servers over time.

use super::{
    response,
    schema::{HistoryParameters, ListUuid, PublicIdPath},
};
use crate::{filter::InvalidParameter, middleware::ClientAddr, path_id::PathId, problem::Problem, state::AppState};
use axum::{
    Extension,
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode},
    response::Response,
};
use rallypoint_history::{
    HistoryError, HistoryReader, Resolution, Subject, UnixSeconds,
    export::{self, HistorySeries},
};
use rallypoint_lobby::unix_now;
use std::{
    io::{self, Write},
    ops::Range,
    sync::Arc,
};

/// The default range, in seconds: a day.
const DEFAULT_RANGE: i64 = 24 * 60 * 60;

/// Players of a server over time
#[utoipa::path(
    get,
    operation_id = "server_history",
    path = "/api/v1/servers/{id}/history",
    params(PublicIdPath, HistoryParameters),
    responses(
        (
            status = 200,
            description = "The points.",
            content((HistorySeries = "application/json"), (String = "text/csv")),
            headers(("ETag" = String, description = "Send it as If-None-Match: the response is 304 while nothing has changed.")),
        ),
        (status = 304, description = "The client has the current version (If-None-Match)."),
        (status = 404, description = "Nothing of this ID is known."),
        (status = 503, description = "The lobby keeps no history, or it is not available right now."),
    )
)]
pub(super) async fn server(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = id.parse().map_err(|error| Problem::parameter("id", format!("id: {error}")))?;
    series(state, client, Subject::Server(id), query.as_deref().unwrap_or_default(), headers).await
}

/// Servers and players of a lobby over time
#[utoipa::path(
    get,
    operation_id = "list_history",
    path = "/api/v1/lists/{id}/history",
    params(ListUuid, HistoryParameters),
    responses(
        (
            status = 200,
            description = "The points.",
            content((HistorySeries = "application/json"), (String = "text/csv")),
            headers(("ETag" = String, description = "Send it as If-None-Match: the response is 304 while nothing has changed.")),
        ),
        (status = 304, description = "The client has the current version (If-None-Match)."),
        (status = 404, description = "Nothing of this ID is known."),
        (status = 503, description = "The lobby keeps no history, or it is not available right now."),
    )
)]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = state.settings().names.find(&id).ok_or_else(|| InvalidParameter::no_list("id"))?;
    series(state, client, Subject::List(id), query.as_deref().unwrap_or_default(), headers).await
}

/// Servers and players of all lists over time
#[utoipa::path(
    get,
    operation_id = "total_history",
    path = "/api/v1/history",
    params(HistoryParameters),
    responses(
        (
            status = 200,
            description = "The points.",
            content((HistorySeries = "application/json"), (String = "text/csv")),
            headers(("ETag" = String, description = "Send it as If-None-Match: the response is 304 while nothing has changed.")),
        ),
        (status = 304, description = "The client has the current version (If-None-Match)."),
        (status = 503, description = "The lobby keeps no history, or it is not available right now."),
    )
)]
pub(super) async fn total(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    series(state, client, Subject::Total, query.as_deref().unwrap_or_default(), headers).await
}

/// The parameters of a request.
#[derive(Clone, Debug)]
struct HistoryQuery {
    range: Range<UnixSeconds>,
    resolution: Resolution,
    is_csv: bool,
}

async fn series(
    state: Arc<AppState>,
    client: ClientAddr,
    subject: Subject,
    query: &str,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = HistoryQuery::parse(query, unix_now() as UnixSeconds)?;
    // It reads from the disk, so it waits for its turn like a page.
    Ok(state.render_limiter.clone().run(client, move || read(&state, &subject, &query, &headers)).await)
}

/// The response, read from the disk.
fn read(state: &AppState, subject: &Subject, query: &HistoryQuery, headers: &HeaderMap) -> Result<Response, Problem> {
    let unavailable = |detail| Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    let history = state.history.as_ref().ok_or_else(|| unavailable("this lobby keeps no history"))?;
    let body = match write(history, subject, is_known(state, subject), query, unix_now() as UnixSeconds) {
        Err(HistoryError::Missing(_)) => {
            return Err(unavailable("the history is not available yet: try again in a moment"));
        }
        Err(error) => {
            tracing::warn!(%error, "cannot read the history");
            return Err(unavailable("the history cannot be read right now"));
        }
        Ok(body) => body,
    };
    let body = body.ok_or_else(|| Problem::not_found("nothing of this ID is known; its history may have expired"))?;
    let content_type = if query.is_csv { HeaderValue::from_static("text/csv; charset=utf-8") } else { response::JSON };
    Ok(response::with_content_etag(body.into(), content_type, headers).map(Body::from))
}

/// Whether the subject exists now. It may have no history yet: a server gets one after five minutes.
fn is_known(state: &AppState, subject: &Subject) -> bool {
    let snapshot = state.live.snapshot();
    match subject {
        Subject::Total => true,
        Subject::List(id) => snapshot.lists().contains_key(id) || state.settings().names.name(id).is_some(),
        Subject::Server(id) => snapshot.record(*id).is_some(),
    }
}

/// The points as JSON or CSV; `None` if nothing is known of the subject.
fn write(
    history: &HistoryReader,
    subject: &Subject,
    is_known: bool,
    query: &HistoryQuery,
    now: UnixSeconds,
) -> Result<Option<Vec<u8>>, HistoryError> {
    let summary = history.summary(subject, now)?;
    if summary.is_none() && !is_known {
        return Ok(None);
    }
    let series = history.series(subject, query.range.clone(), query.resolution)?;
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let written: io::Result<()> = if query.is_csv {
        out.write_all(export::CSV_HEADING.as_bytes()).and_then(|()| export::csv(&mut out, subject, &series))
    } else {
        export::json(&mut out, subject, summary.as_ref(), &series)
    };
    Ok(written.is_ok().then_some(out))
}

impl HistoryQuery {
    fn parse(query: &str, now: UnixSeconds) -> Result<Self, InvalidParameter> {
        let mut from = None;
        let mut to = None;
        let mut resolution = Resolution::Auto;
        let mut is_csv = false;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let invalid = |expected: &str| InvalidParameter::new(&name, expected);
            // Before 1970 and after now there is nothing.
            let time = || {
                let expected = "expected a time such as 2026-11-16T08:00:00Z, a date, or seconds since 1970";
                match export::parse_time(&value) {
                    Ok(time) if !value.starts_with('-') => Ok(time.clamp(0, now)),
                    _ => Err(invalid(expected)),
                }
            };
            match &*name {
                "from" => from = Some(time()?),
                "to" => to = Some(time()?),
                "resolution" => {
                    let known = Resolution::NAMES.iter().find(|(name, _)| *name == value);
                    resolution = known.ok_or_else(|| invalid("expected auto, minute, hour or day"))?.1;
                }
                "format" => {
                    is_csv = match &*value {
                        "json" => false,
                        "csv" => true,
                        _ => return Err(invalid("expected json or csv")),
                    }
                }
                _ => return Err(InvalidParameter::unknown(&name, &["from", "to", "resolution", "format"])),
            }
        }
        let to = to.unwrap_or(now);
        let from = from.unwrap_or((to - DEFAULT_RANGE).max(0));
        // An empty range is at a multiple of every step, because ranges are rounded outwards.
        let range = if from < to { from..to } else { 0..0 };
        if resolution.is_too_fine(&range) {
            resolution = Resolution::Auto;
        }
        Ok(Self { range, resolution, is_csv })
    }
}
