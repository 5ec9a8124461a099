//! `GET /healthz` and `GET /readyz`: for the supervisor that restarts this program, and for the load balancer in front of it.

use crate::{api::response::JSON, problem::Problem, router::Routes, state::AppState};
use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use rallypoint_lobby::ClusterProblem;
use serde::Serialize;
use std::sync::Arc;

pub(crate) fn routes() -> Routes {
    Routes::new().route("/healthz", get(alive)).route("/readyz", get(ready))
}

/// Health must not be cached.
const NO_STORE: (header::HeaderName, HeaderValue) = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// The program is alive if it responds.
async fn alive() -> Response {
    ([NO_STORE], "ok\n").into_response()
}

/// The state of parts that a lobby can run without.
#[derive(Serialize)]
struct Ready {
    status: &'static str,
    /// `saved` or `failing`.
    save: &'static str,
    /// `writing`, `starting`, `failing` or `off`.
    history: &'static str,
    /// `connected`, `disconnected` or `off`.
    cluster: &'static str,
    /// Why the cluster is disconnected, or what is not shared. The whole error is in the log only, because it contains the
    /// address of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_problem: Option<ClusterProblemView>,
    /// `writing`, `failing` or `off`.
    export: &'static str,
    /// `untrusted` if a proxy of this machine forwards requests and is not in `web.trusted_proxies`, otherwise `ok`.
    proxy: &'static str,
}

#[derive(Serialize)]
struct ClusterProblemView {
    code: &'static str,
    detail: &'static str,
}

impl From<ClusterProblem> for ClusterProblemView {
    fn from(problem: ClusterProblem) -> Self {
        Self { code: problem.code, detail: problem.summary }
    }
}

/// Ready if the list is current, and the server is not shutting down.
async fn ready(State(state): State<Arc<AppState>>) -> Result<Response, Problem> {
    let mut problems = Vec::new();
    if *state.shutdown.borrow() {
        problems.push("the web server is shutting down");
    }
    if !state.lobby.is_alive() {
        problems.push("the lobby has stopped");
    } else if !state.live.is_current() {
        problems.push("the list is still being loaded");
    }
    let is_node = state.lobby.cluster().is_some();
    let cluster_status = state.lobby.cluster_status();
    // Later, a node without contact serves what it knows.
    if is_node && cluster_status.as_ref().is_none_or(|status| status.is_joining) {
        problems.push("the servers of other nodes are being loaded");
    }
    if !problems.is_empty() {
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, problems.join("; ")));
    }
    let save = if state.lobby.save_stats().is_failing { "failing" } else { "saved" };
    let history = match state.history.as_ref().map(rallypoint_history::HistoryReader::stats) {
        None => "off",
        Some(stats) if stats.is_writing => "writing",
        Some(stats) if stats.written == 0 && stats.dropped == 0 && stats.pending <= 1 => "starting",
        Some(_) => "failing",
    };
    let cluster_problem: Option<ClusterProblemView> =
        cluster_status.as_ref().and_then(|status| status.problem).map(Into::into);
    let cluster = match cluster_status {
        None if !is_node => "off",
        Some(status) if status.is_connected => "connected",
        _ => "disconnected",
    };
    let export = match state.export.as_ref().map(|export| export.stats()) {
        None => "off",
        Some(stats) if stats.is_failing => "failing",
        Some(_) => "writing",
    };
    let proxy = if state.unnamed_proxy.is_present() { "untrusted" } else { "ok" };
    let is_cluster_healthy = cluster != "disconnected" && cluster_problem.is_none();
    let is_healthy =
        save == "saved" && history != "failing" && is_cluster_healthy && export != "failing" && proxy == "ok";
    let status = if is_healthy { "ready" } else { "degraded" };
    let ready = Ready { status, save, history, cluster, cluster_problem, export, proxy };
    Ok(([(header::CONTENT_TYPE, JSON), NO_STORE], serde_json::to_vec(&ready).unwrap_or_default()).into_response())
}
