//! `GET /api/v1/lobbies`

use super::answer;
use crate::{
    book::{Totals, text},
    filter::BadParameter,
    problem::Problem,
    shared::Web,
};
use axum::{
    extract::{RawQuery, State},
    http::HeaderMap,
    response::Response,
};
use rallypoint_wire::lobby::LobbyId;
use serde::Serialize;

#[derive(Serialize)]
struct Lobbies<'a> {
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

/// The lobbies that have servers, and those that have a name, the fullest first.
pub(super) async fn list(
    State(web): State<Web>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    no_parameters(query.as_deref())?;
    let (snapshot, settings) = (web.live.snapshot(), web.settings());
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
    lobbies.sort_by_key(|lobby| (std::cmp::Reverse((lobby.players, lobby.servers)), lobby.id));
    let Totals { servers, players, bots, slots } = snapshot.totals();
    Ok(answer::json(&Lobbies { servers, players, bots, slots, lobbies }, &headers))
}

/// For addresses that take none: a mistake is told.
pub(crate) fn no_parameters(query: Option<&str>) -> Result<(), BadParameter> {
    match form_urlencoded::parse(query.unwrap_or_default().as_bytes()).next() {
        Some((name, _)) => Err(BadParameter::new(&name, "there are no parameters here")),
        None => Ok(()),
    }
}
