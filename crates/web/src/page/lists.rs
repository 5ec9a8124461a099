//! `GET /lists`: totals of all lists, now and over time; `GET /lists/{id}`: one list.

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

/// Maximum number of lists on the page: a list exists as soon as a server registers in it.
const MAX_LISTS: usize = 200;

#[derive(Template)]
#[template(path = "lists.html")]
struct ListsPage {
    layout: Layout,
    /// The list of the page; `None` for all lists together.
    list: Option<ListId>,
    totals: Totals,
    history: HistorySection,
    span: Span,
    lists: Vec<ListRow>,
    /// How to list the servers while the lobby is down, if copies of the list are written.
    mirrors: Option<MirrorCard>,
}

struct ListRow {
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
    state.render_limiter.clone().run(client, move || all_lists(&state, span, &headers)).await
}

pub(super) async fn one(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let unknown = || Problem::not_found("there is no list of this name or UUID");
    let id: ListId = state.settings().names.find(&id).ok_or_else(unknown)?;
    let span = Span::from_query(query.as_deref());
    Ok(state.render_limiter.clone().run(client, move || one_list(&state, id, span)).await)
}

fn all_lists(state: &AppState, span: Span, headers: &HeaderMap) -> Response {
    let history = HistorySection::read(state, Subject::Total, span);
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let mut lists: Vec<_> = snapshot.lists().iter().collect();
    lists.sort_by_key(|(id, totals)| (Reverse((totals.players, totals.servers)), **id));
    lists.truncate(MAX_LISTS);
    let row = |(id, totals): (&ListId, &Totals)| ListRow { id: *id, name: name(id, &settings), totals: *totals };
    let lists = lists.into_iter().map(row).collect();
    let layout = Layout::new(state, "Lists", "/lists").with_script("lists.js").with_feed("/feed.atom");
    let totals = snapshot.totals();
    let mirrors = MirrorCard::new(state, headers, &settings);
    page(StatusCode::OK, &ListsPage { layout, list: None, totals, history, span, lists, mirrors })
}

fn one_list(state: &AppState, id: ListId, span: Span) -> Result<Response, PageError> {
    let history = HistorySection::read(state, Subject::List(id), span);
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let totals = snapshot.lists().get(&id).copied();
    if totals.is_none() && history.summary().is_none() && settings.names.name(&id).is_none() {
        return Err(Problem::not_found(
            "this list does not exist: it is created by the first server that registers in it",
        )
        .into());
    }
    let layout = Layout::new(state, name(&id, &settings), "/lists").with_script("lists.js");
    let layout = layout.with_feed(&format!("/lists/{id}/feed.atom"));
    let totals = totals.unwrap_or_default();
    let lists = Vec::new();
    Ok(page(StatusCode::OK, &ListsPage { layout, list: Some(id), totals, history, span, lists, mirrors: None }))
}

fn name(id: &ListId, settings: &WebSettings) -> String {
    settings.names.name(id).map_or_else(|| id.to_string(), Into::into)
}
