//! `GET /api/v1/lobbies`

use super::response;
use crate::{
    filter::InvalidParameter,
    json::text,
    middleware::{ClientAddr, response_limit::count_response},
    problem::Problem,
    server::Connection,
    state::AppState,
};
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::HeaderMap,
    response::Response,
};
use bytes::Bytes;
use rallypoint_lobby::Totals;
use rallypoint_wire::lobby::ListId;
use serde::Serialize;
use std::{cmp::Reverse, sync::Arc};
use utoipa::ToSchema;

/// All lobbies with their totals.
#[derive(Serialize, ToSchema)]
#[schema(as = Lobbies)]
pub(super) struct LobbiesResponse<'a> {
    /// Number of servers of all lobbies.
    servers: usize,
    /// Number of players of all lobbies.
    players: u64,
    /// Number of bots of all lobbies.
    bots: u64,
    /// Number of slots of all lobbies.
    slots: u64,
    /// The lobbies, those with the most players first.
    lobbies: Vec<Lobby<'a>>,
    /// The public key (minisign) of the copies that this lobby writes for mirrors; null if it writes none.
    #[schema(required, example = "RWSw4dWaD47V+w9rvl0NvKZ/9lcauIWwZXVtjJ6EKxyjBm17BOn53k8S")]
    export_key: Option<String>,
}

/// A lobby with its totals.
#[derive(Serialize, ToSchema)]
struct Lobby<'a> {
    /// The UUID of the lobby.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String, format = "uuid")]
    id: ListId,
    /// The name that the operator has given to the lobby.
    #[schema(required)]
    name: Option<&'a str>,
    /// Number of servers.
    servers: usize,
    /// Number of players.
    players: u64,
    /// Number of bots.
    bots: u64,
    /// Number of slots.
    slots: u64,
}

/// The lobbies that have servers or a name, those with the most players first
#[utoipa::path(
    get,
    operation_id = "list_lobbies",
    path = "/api/v1/lobbies",
    responses(
        (status = 200, description = "The lobbies.", body = LobbiesResponse, headers(("ETag" = String, description = "Send it as If-None-Match: the response is 304 while nothing has changed."))),
        (status = 304, description = "The client has the current version (If-None-Match)."),
        (status = 503, description = "Too many long responses are being rendered or sent; Retry-After is the time to wait in seconds."),
    )
)]
pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    no_parameters(query.as_deref())?;
    let limiter = state.render_limiter.clone();
    let render = move || count_response(&state, client, &connection, all_lobbies(&state, &headers));
    Ok(limiter.run(client, render).await)
}

fn all_lobbies(state: &AppState, headers: &HeaderMap) -> axum::http::Response<Bytes> {
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
    let export_key = state.export.as_ref().map(|export| export.public_key().to_string());
    let list = LobbiesResponse { servers, players, bots, slots, lobbies, export_key };
    response::json(&list, headers)
}

/// Refuses any parameter, at addresses that have none: a client that sends one expects it to have an effect.
pub(crate) fn no_parameters(query: Option<&str>) -> Result<(), InvalidParameter> {
    match form_urlencoded::parse(query.unwrap_or_default().as_bytes()).next() {
        Some((name, _)) => Err(InvalidParameter::new(&name, "this address has no parameters")),
        None => Ok(()),
    }
}
