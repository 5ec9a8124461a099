//! `GET /api/v1/servers` and `GET /api/v1/servers/{id}`

use super::{
    lists::no_parameters,
    response::{self, JSON},
    schema::{ListParameters, PublicIdPath, ServerList},
};
use crate::{
    filter::{Column, Filter, ListQuery, MAX_ROWS, QueryDefaults, Sort},
    json::{self, ServerView},
    live::LiveSnapshot,
    middleware::{
        ClientAddr,
        response_limit::{count_response, count_shared_response},
    },
    path_id::PathId,
    problem::Problem,
    render_limiter::RenderRequest,
    server::Connection,
    state::AppState,
};
use axum::{
    Extension,
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::ListId;
use serde::Serialize;
use std::{io::Write, sync::Arc};
use utoipa::ToSchema;

/// Maximum number of servers in a response that is made for one client.
const MAX_OWN_ROWS: usize = 1_000;

/// Maximum size in bytes of the servers in a response that is made for one client. Only servers with very long tables reach it.
const MAX_OWN_BYTES: usize = 4 << 20;

/// Defaults of the parameters of the API: all servers, in an order that never changes.
pub(crate) const DEFAULTS: QueryDefaults = QueryDefaults {
    sort: Sort::ascending(Column::Id),
    limit: MAX_ROWS,
    max_limit: MAX_OWN_ROWS,
    by_page: false,
    is_strict: true,
};

/// The servers
///
/// Without parameters, or with `list` only, the response is prebuilt for all clients: compressed on request, and a 304 costs next
/// to nothing. Any other response is rendered for the client.
#[utoipa::path(
    get,
    operation_id = "list_servers",
    path = "/api/v1/servers",
    params(ListParameters),
    responses(
        (status = 200, description = "The servers.", body = ServerList, headers(("ETag" = String, description = "Send it as If-None-Match: the response is 304 while nothing has changed."))),
        (status = 304, description = "The client has the current version (If-None-Match)."),
        (status = 404, description = "There is no such list."),
        (status = 503, description = "Too many long responses are being rendered or sent; Retry-After is the time to wait in seconds."),
    )
)]
pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut query = ListQuery::parse(query.as_deref().unwrap_or_default(), &DEFAULTS, &state.settings().names)?;
    if let Some(list) = prebuilt_list(&query) {
        let turn = RenderRequest { limiter: &state.render_limiter, client };
        let list = match state.prebuilt_lists.list(&state.live, list, &turn).await {
            Ok(list) => list,
            Err(refused) => return Ok(refused.into_response()),
        };
        let mut response = if response::accepts_gzip(&headers) {
            let gzip = match list.gzip(&turn).await {
                Ok(gzip) => list.held(gzip, &connection),
                Err(refused) => return Ok(refused.into_response()),
            };
            let mut response = response::with_etag(gzip, JSON, &list.gzip_etag, &headers);
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        } else {
            response::with_etag(list.held(&list.json, &connection), JSON, &list.etag, &headers)
        };
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        return Ok(count_shared_response(&state, client, &connection, response));
    }
    query.limit = query.limit.min(MAX_OWN_ROWS);
    let limiter = state.render_limiter.clone();
    let render = move || {
        let trends = state.trends.load();
        let list = write_list(&query, &state.live.snapshot(), &|id| trends.week(id), MAX_OWN_BYTES);
        count_response(&state, client, &connection, response::with_content_etag(list, JSON, &headers))
    };
    Ok(limiter.run(client, render).await)
}

/// One server: the fields of a list, and what the lobby found by probing it.
#[derive(Serialize, ToSchema)]
struct ServerDetails<'a> {
    #[serde(flatten)]
    server: ServerView<'a>,
    /// The name of its list.
    #[schema(required)]
    list_name: Option<&'a str>,
    /// The players, if the lobby queried the server and it reported them.
    players: Vec<PlayerView<'a>>,
    /// Always empty: gamedig has a list here, but no protocol reports the names of bots.
    #[schema(value_type = Vec<Object>)]
    bots: [(); 0],
}

/// A player.
#[derive(Serialize, ToSchema)]
#[schema(as = Player)]
struct PlayerView<'a> {
    /// The name of the player.
    name: &'a str,
    /// The name of the team.
    #[schema(required)]
    team: Option<&'a str>,
    /// Round-trip time to the server, in milliseconds.
    #[schema(required)]
    ping: Option<i32>,
    /// Whether the player only watches.
    spectator: bool,
}

/// One server, with its players if it was queried
#[utoipa::path(
    get,
    operation_id = "get_server",
    path = "/api/v1/servers/{id}",
    params(PublicIdPath),
    responses(
        (status = 200, description = "The server.", body = ServerDetails, headers(("ETag" = String, description = "Send it as If-None-Match: the response is 304 while nothing has changed."))),
        (status = 304, description = "The client has the current version (If-None-Match)."),
        (status = 404, description = "No server of this ID is in the list."),
    )
)]
pub(crate) async fn one(
    State(state): State<Arc<AppState>>,
    PathId(id): PathId,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    no_parameters(query.as_deref())?;
    let id = id.parse().map_err(|error| Problem::parameter("id", format!("id: {error}")))?;
    let snapshot = state.live.snapshot();
    let settings = state.settings();
    let row = snapshot.record(id).ok_or_else(|| Problem::not_found("this server is not in the list (any more)"))?;
    let info = row.info.as_deref();
    let players = info.and_then(|info| info.player_list.as_deref()).unwrap_or_default();
    let players = players.iter().map(|player| PlayerView {
        name: &player.name,
        team: player.team.and_then(|team| info?.team_name(team)),
        ping: player.ping_ms,
        spectator: player.spectator,
    });
    let details = ServerDetails {
        server: ServerView::new(row),
        list_name: settings.names.name(&row.list),
        players: players.collect(),
        bots: [],
    };
    Ok(response::json(&details, &headers).map(Body::from))
}

/// The list that is requested whole and in the default order; `Some(None)` for all lists together.
fn prebuilt_list(query: &ListQuery) -> Option<Option<ListId>> {
    let list = query.filter.list;
    (*query == full_list(list)).then_some(list)
}

/// The query for a whole list, or for all lists together.
pub(crate) fn full_list(list: Option<ListId>) -> ListQuery {
    let filter = Filter { list, ..Filter::default() };
    ListQuery { filter, sort: DEFAULTS.sort, offset: 0, limit: DEFAULTS.limit }
}

/// The result of a query as JSON. The servers are cut off at `max_bytes`, after the first: a client that requests the next part
/// makes progress in any case.
pub(crate) fn write_list(
    query: &ListQuery,
    snapshot: &LiveSnapshot,
    popularity: &dyn Fn(PublicId) -> f32,
    max_bytes: usize,
) -> Bytes {
    let mut selection = query.select(snapshot, popularity);
    let mut size = 0;
    let mut count = 0;
    for row in &selection.rows {
        let new_size = size + json::server(row).len() + 1;
        if new_size > max_bytes && count > 0 {
            break;
        }
        size = new_size;
        count += 1;
    }
    selection.rows.truncate(count);
    let mut out = Vec::with_capacity(size + 160);
    let cursor = snapshot.cursor();
    let total = selection.total;
    let offset = query.offset;
    // Writing to memory does not fail.
    let _ =
        write!(out, "{{\"cursor\":\"{cursor}\",\"total\":{total},\"offset\":{offset},\"count\":{count},\"servers\":[");
    for (index, row) in selection.rows.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&json::server(row));
    }
    out.extend_from_slice(b"]}");
    out.into()
}
