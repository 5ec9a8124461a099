//! `GET /api/v1/lists`

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

/// All lists with their totals.
#[derive(Serialize, ToSchema)]
#[schema(as = Lists)]
pub(super) struct ListsResponse<'a> {
    /// Number of servers of all lists.
    servers: usize,
    /// Number of players of all lists.
    players: u64,
    /// Number of bots of all lists.
    bots: u64,
    /// Number of slots of all lists.
    slots: u64,
    /// The lists, those with the most players first.
    lists: Vec<List<'a>>,
    /// The public key (minisign) of the copies that this lobby writes for mirrors; null if it writes none.
    #[schema(required, example = "RWSw4dWaD47V+w9rvl0NvKZ/9lcauIWwZXVtjJ6EKxyjBm17BOn53k8S")]
    export_key: Option<String>,
}

/// A list with its totals.
#[derive(Serialize, ToSchema)]
struct List<'a> {
    /// The UUID of the list.
    #[serde(serialize_with = "text")]
    #[schema(value_type = String, format = "uuid")]
    id: ListId,
    /// The name that the operator has given to the list.
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

/// The lists that have servers or a name, those with the most players first
#[utoipa::path(
    get,
    operation_id = "list_lists",
    path = "/api/v1/lists",
    responses(
        (status = 200, description = "The lists.", body = ListsResponse, headers(("ETag" = String, description = "Send it as If-None-Match: the response is 304 while nothing has changed."))),
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
    let render = move || count_response(&state, client, &connection, all_lists(&state, &headers));
    Ok(limiter.run(client, render).await)
}

fn all_lists(state: &AppState, headers: &HeaderMap) -> axum::http::Response<Bytes> {
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let names = &settings.names;
    let empty = names.0.keys().filter(|id| names.name(id).is_some() && !snapshot.lists().contains_key(id));
    let all = snapshot.lists().iter().map(|(id, totals)| (*id, *totals));
    let mut lists: Vec<_> = all
        .chain(empty.map(|id| (*id, Totals::default())))
        .map(|(id, Totals { servers, players, bots, slots })| {
            let name = names.name(&id);
            List { id, name, servers, players, bots, slots }
        })
        .collect();
    lists.sort_by_key(|list| (Reverse((list.players, list.servers)), list.id));
    let Totals { servers, players, bots, slots } = snapshot.totals();
    let export_key = state.export.as_ref().map(|export| export.public_key().to_string());
    let list = ListsResponse { servers, players, bots, slots, lists, export_key };
    response::json(&list, headers)
}

/// Refuses any parameter, at addresses that have none: a client that sends one expects it to have an effect.
pub(crate) fn no_parameters(query: Option<&str>) -> Result<(), InvalidParameter> {
    match form_urlencoded::parse(query.unwrap_or_default().as_bytes()).next() {
        Some((name, _)) => Err(InvalidParameter::new(&name, "this address has no parameters")),
        None => Ok(()),
    }
}
