//! `GET /lobbies`: all of them together, now and over time; `/lobbies/{id}`: one of them.

use super::{
    frame::{Frame, page},
    graph::Span,
    past::{self, Known},
    shown,
    sorry::Sorry,
};
use crate::{WebSettings, book::Totals, id::Id, problem::Problem, shared::Web};
use askama::Template;
use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};
use rallypoint_history::Subject;
use rallypoint_wire::lobby::LobbyId;
use std::cmp::Reverse;

/// So many are shown: anybody can open one.
const MOST: usize = 200;

#[derive(Template)]
#[template(path = "lobbies.html")]
struct LobbiesPage {
    frame: Frame,
    /// One lobby; nothing for all.
    lobby: Option<LobbyId>,
    totals: Totals,
    known: Known,
    span: Span,
    lobbies: Vec<LobbyLine>,
}

struct LobbyLine {
    id: LobbyId,
    name: String,
    totals: Totals,
}

pub(super) async fn all(State(web): State<Web>, RawQuery(query): RawQuery) -> Response {
    let span = Span::of(query.as_deref());
    let known = Known::read(&web, Subject::Total, span).await;
    let (snapshot, settings) = (web.live.snapshot(), web.settings());
    let mut lobbies: Vec<_> = snapshot.lobbies().iter().collect();
    lobbies.sort_by_key(|(id, totals)| (Reverse((totals.players, totals.servers)), **id));
    lobbies.truncate(MOST);
    let line = |(id, totals): (&LobbyId, &Totals)| LobbyLine { id: *id, name: name(id, &settings), totals: *totals };
    let lobbies = lobbies.into_iter().map(line).collect();
    let frame = Frame::new("Lobbies", "/lobbies");
    page(StatusCode::OK, &LobbiesPage { frame, lobby: None, totals: snapshot.totals(), known, span, lobbies })
}

pub(super) async fn one(State(web): State<Web>, Id(id): Id, RawQuery(query): RawQuery) -> Result<Response, Sorry> {
    let id: LobbyId = id.parse().map_err(|_| Problem::not_found("this is not the address of a lobby"))?;
    let span = Span::of(query.as_deref());
    let known = Known::read(&web, Subject::Lobby(id), span).await;
    let (snapshot, settings) = (web.live.snapshot(), web.settings());
    let totals = snapshot.lobbies().get(&id).copied();
    if totals.is_none() && known.summary().is_none() && settings.names.name(&id).is_none() {
        return Err(Problem::not_found("nobody knows this lobby: it opens with its first server").into());
    }
    let frame = Frame::new(name(&id, &settings), "/lobbies");
    let totals = totals.unwrap_or_default();
    Ok(page(StatusCode::OK, &LobbiesPage { frame, lobby: Some(id), totals, known, span, lobbies: Vec::new() }))
}

fn name(id: &LobbyId, settings: &WebSettings) -> String {
    settings.names.name(id).map_or_else(|| id.to_string(), Into::into)
}
