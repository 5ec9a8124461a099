//! `GET /healthz` and `GET /readyz`: for whoever starts this program again, and for whoever sends it visitors.

use crate::{api::answer::JSON, problem::Problem, shared::Web};
use axum::{
    Router,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde::Serialize;

pub(crate) fn router() -> Router<Web> {
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready))
}

const FRESH: (header::HeaderName, HeaderValue) = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// It answers, so it is alive.
async fn alive() -> Response {
    ([FRESH], "ok\n").into_response()
}

/// What a lobby that serves can be without.
#[derive(Serialize)]
struct Ready {
    status: &'static str,
    /// `saved`, `failing`.
    save: &'static str,
    /// `writing`, `starting`, `failing`, `off`.
    history: &'static str,
}

async fn ready(State(web): State<Web>) -> Result<Response, Problem> {
    let mut missing = Vec::new();
    if *web.ending.borrow() {
        missing.push("the web server is ending");
    }
    if !web.lobby.is_alive() {
        missing.push("the registry has ended");
    } else if !web.live.is_current() {
        missing.push("the list is still being read");
    }
    if !missing.is_empty() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, missing.join("; ")));
    }
    let save = if web.lobby.save_stats().is_failing { "failing" } else { "saved" };
    let history = match web.history.as_ref().map(rallypoint_history::HistoryReader::stats) {
        None => "off",
        Some(stats) if stats.is_writing => "writing",
        Some(stats) if stats.written == 0 && stats.dropped == 0 && stats.pending <= 1 => "starting",
        Some(_) => "failing",
    };
    let is_well = save == "saved" && history != "failing";
    let ready = Ready { status: if is_well { "ready" } else { "degraded" }, save, history };
    Ok(([(header::CONTENT_TYPE, JSON), FRESH], serde_json::to_vec(&ready).unwrap_or_default()).into_response())
}
