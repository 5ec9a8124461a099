//! `GET /servers/{id}/badge.svg`: a server in one line, for other sites.

use super::server_row::ServerRow;
use crate::{middleware::ClientAddr, path_id::PathId, problem::Problem, state::AppState};
use askama::Template;
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use rallypoint_history::{Subject, UnixSeconds};
use rallypoint_lobby::unix_now;
use rallypoint_lobby_proto::PublicId;
use std::sync::Arc;

/// Maximum length in characters of the name on a badge.
const MAX_NAME: usize = 32;

/// Estimated width in pixels of a character; wide ones (such as CJK) take twice as much.
const CHARACTER_WIDTH: usize = 7;

#[derive(Template)]
#[template(path = "badge.svg")]
struct Badge {
    name: String,
    state: String,
    is_online: bool,
    /// Width in pixels of the part with the name.
    left: usize,
    /// Width in pixels of the part with the state.
    right: usize,
    /// The last 24 hours as an SVG path, if a graph was requested.
    graph: Option<String>,
}

/// With `?graph=1` the badge has a second line with the players of the last 24 hours.
pub(super) async fn show(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let has_graph = query.is_some_and(|query| query.split('&').any(|part| part == "graph=1"));
    let id = id.parse().map_err(|error| Problem::parameter("id", format!("id: {error}")))?;
    if state.live.snapshot().record(id).is_some() || state.history.is_none() {
        return Ok(badge(&state, id, has_graph));
    }
    // The name of a server that is not listed is read from the disk.
    Ok(state.render_limiter.clone().run(client, move || badge(&state, id, has_graph)).await)
}

fn badge(state: &AppState, id: PublicId, has_graph: bool) -> Response {
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    // On another site, an image that shows "offline" is better than a broken one.
    let badge = match snapshot.record(id) {
        Some(row) => {
            let trends = state.trends.load();
            let trend = trends.get(id).filter(|_| has_graph);
            let server = ServerRow::new(row, &settings, 0);
            let graph = has_graph.then(|| trend.map(|trend| trend.path(row.slots)).unwrap_or_default());
            Badge { graph, ..Badge::new(server.name(), server.players(), true) }
        }
        None => {
            let name = last_name(state, id);
            let graph = has_graph.then(String::new);
            Badge { graph, ..Badge::new(name.as_deref().unwrap_or("server"), "offline".into(), false) }
        }
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml")),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=30")),
    ];
    let svg = badge.render().unwrap_or_default();
    (headers, svg).into_response()
}

/// The last name of a server that is not listed, from the history.
fn last_name(state: &AppState, id: PublicId) -> Option<String> {
    let summary = state.history.as_ref()?.summary(&Subject::Server(id), unix_now() as UnixSeconds).ok()??;
    Some(summary.name).filter(|name| !name.trim().is_empty())
}

impl Badge {
    fn new(name: &str, state: String, is_online: bool) -> Self {
        let mut short: String = name.chars().take(MAX_NAME).collect();
        if short.len() < name.len() {
            short.push('…');
        }
        Self { left: width(&short), right: width(&state), name: short, state, is_online, graph: None }
    }
}

/// Estimated width in pixels of a text with its padding.
fn width(text: &str) -> usize {
    let wide = |c: char| if (c as u32) < 0x1100 { CHARACTER_WIDTH } else { 2 * CHARACTER_WIDTH };
    text.chars().map(wide).sum::<usize>() + 12
}
