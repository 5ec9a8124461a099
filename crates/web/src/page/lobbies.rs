//! `GET /lobbies`: totals of all lobbies, now and over time; `GET /lobbies/{id}`: one lobby.

use super::{
    error::PageError,
    format,
    graph::Span,
    history::{self, HistorySection},
    layout::{Layout, page},
    mirrors::MirrorCard,
};
use crate::{WebSettings, middleware::ClientAddr, path_id::PathId, problem::Problem, state::AppState};
use askama::Template;
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use rallypoint_history::Subject;
use rallypoint_lobby::Totals;
use rallypoint_wire::lobby::ListId;
use std::{cmp::Reverse, sync::Arc};

/// Maximum number of lobbies on the page: a lobby exists as soon as a server registers in it.
const MAX_LOBBIES: usize = 200;

#[derive(Template)]
#[template(path = "lobbies.html")]
struct LobbiesPage {
    layout: Layout,
    /// The lobby of the page; `None` for all lobbies together.
    lobby: Option<ListId>,
    totals: Totals,
    history: HistorySection,
    span: Span,
    lobbies: Vec<LobbyRow>,
    /// How to list the servers while the lobby is down, if copies of the list are written.
    mirrors: Option<MirrorCard>,
}

struct LobbyRow {
    id: ListId,
    name: String,
    totals: Totals,
}

pub(super) async fn all(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let span = Span::from_query(query.as_deref());
    state.render_limiter.clone().run(client, move || all_lobbies(&state, span, &headers)).await
}

pub(super) async fn one(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let unknown = || Problem::not_found("there is no lobby of this name or UUID");
    let id: ListId = state.settings().names.find(&id).ok_or_else(unknown)?;
    let span = Span::from_query(query.as_deref());
    Ok(state.render_limiter.clone().run(client, move || one_lobby(&state, id, span)).await)
}

fn all_lobbies(state: &AppState, span: Span, headers: &HeaderMap) -> Response {
    let history = HistorySection::read(state, Subject::Total, span);
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let mut lobbies: Vec<_> = snapshot.lobbies().iter().collect();
    lobbies.sort_by_key(|(id, totals)| (Reverse((totals.players, totals.servers)), **id));
    lobbies.truncate(MAX_LOBBIES);
    let row = |(id, totals): (&ListId, &Totals)| LobbyRow { id: *id, name: name(id, &settings), totals: *totals };
    let lobbies = lobbies.into_iter().map(row).collect();
    let layout = Layout::new(state, "Lobbies", "/lobbies").with_script("lobbies.js").with_feed("/feed.atom");
    let totals = snapshot.totals();
    let mirrors = MirrorCard::new(state, headers, &settings);
    page(StatusCode::OK, &LobbiesPage { layout, lobby: None, totals, history, span, lobbies, mirrors })
}

fn one_lobby(state: &AppState, id: ListId, span: Span) -> Result<Response, PageError> {
    let history = HistorySection::read(state, Subject::Lobby(id), span);
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let totals = snapshot.lobbies().get(&id).copied();
    if totals.is_none() && history.summary().is_none() && settings.names.name(&id).is_none() {
        return Err(Problem::not_found(
            "this lobby does not exist: it is created by the first server that registers in it",
        )
        .into());
    }
    let layout = Layout::new(state, name(&id, &settings), "/lobbies").with_script("lobbies.js");
    let layout = layout.with_feed(&format!("/lobbies/{id}/feed.atom"));
    let totals = totals.unwrap_or_default();
    let lobbies = Vec::new();
    Ok(page(StatusCode::OK, &LobbiesPage { layout, lobby: Some(id), totals, history, span, lobbies, mirrors: None }))
}

fn name(id: &ListId, settings: &WebSettings) -> String {
    settings.names.name(id).map_or_else(|| id.to_string(), Into::into)
}
