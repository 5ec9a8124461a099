//! `GET /api/v1/lobbies`

use super::response;
use crate::{filter::InvalidParameter, json::text, problem::Problem, state::AppState};
use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::HeaderMap,
    response::Response,
};
use rallypoint_lobby::Totals;
use rallypoint_wire::lobby::LobbyId;
use serde::Serialize;
use std::{cmp::Reverse, sync::Arc};

/// All lobbies with their totals.
#[derive(Serialize)]
struct LobbyList<'a> {
    servers: usize,
    players: u64,
    bots: u64,
    slots: u64,
    lobbies: Vec<Lobby<'a>>,
}

#[derive(Serialize)]
struct Lobby<'a> {
    #[serde(serialize_with = "text")]
    id: LobbyId,
    name: Option<&'a str>,
    servers: usize,
    players: u64,
    bots: u64,
    slots: u64,
}

/// The lobbies that have servers or a name, those with the most players first.
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    no_parameters(query.as_deref())?;
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let names = &settings.names;
    let empty = names.0.keys().filter(|id| names.name(id).is_some() && !snapshot.lobbies().contains_key(id));
    let all = snapshot.lobbies().iter().map(|(id, totals)| (*id, *totals));
    let mut lobbies: Vec<_> = all
        .chain(empty.map(|id| (*id, Totals::default())))
        .map(|(id, Totals { servers, players, bots, slots })| {
            let name = names.name(&id);
            Lobby { id, name, servers, players, bots, slots }
        })
        .collect();
    lobbies.sort_by_key(|lobby| (Reverse((lobby.players, lobby.servers)), lobby.id));
    let Totals { servers, players, bots, slots } = snapshot.totals();
    let list = LobbyList { servers, players, bots, slots, lobbies };
    Ok(response::json(&list, &headers).map(Body::from))
}

/// Refuses any parameter, at addresses that have none: a client that sends one expects it to have an effect.
pub(crate) fn no_parameters(query: Option<&str>) -> Result<(), InvalidParameter> {
    match form_urlencoded::parse(query.unwrap_or_default().as_bytes()).next() {
        Some((name, _)) => Err(InvalidParameter::new(&name, "this address has no parameters")),
        None => Ok(()),
    }
}
