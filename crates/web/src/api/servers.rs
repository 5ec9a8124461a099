//! Lists of servers, and one server.

use super::{
    answer::{self, JSON},
    lobbies::no_parameters,
};
use crate::{
    book::{LiveSnapshot, ServerView},
    filter::{Column, Defaults, Filter, MOST_ROWS, Query, Sort},
    gate::ForAll,
    id::Id,
    json,
    problem::Problem,
    shared::Web,
};
use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use bytes::Bytes;
use rallypoint_wire::lobby::LobbyId;
use serde::Serialize;
use std::io::Write;

/// The most servers in an answer that is made for one client.
const MOST_OWN: usize = 1_000;

/// The most bytes of servers in such an answer. Only servers that say very much about themselves come to it.
const MOST_BYTES: usize = 4 << 20;

/// What counts in the API if nothing is said: everything, in an order that never changes.
pub(crate) const DEFAULTS: Defaults =
    Defaults { sort: Sort::ascending(Column::Id), limit: MOST_ROWS, most: MOST_OWN, pages: false, strict: true };

/// `GET /api/v1/servers`
pub(crate) async fn list(
    State(web): State<Web>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut query = Query::parse(query.as_deref().unwrap_or_default(), &DEFAULTS)?;
    if let Some(lobby) = prebuilt_lobby(&query) {
        let built = web.prebuilt.list(&web.live, lobby).await;
        let mut response = match answer::accepts_gzip(&headers) {
            false => answer::reply(built.json.clone(), JSON, &built.etag, &headers),
            true => {
                let mut response = answer::reply(built.gzip().await.clone(), JSON, &built.gzip_etag, &headers);
                response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                response
            }
        };
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        response.extensions_mut().insert(ForAll);
        return Ok(response);
    }
    query.limit = query.limit.min(MOST_OWN);
    let turns = web.turns.clone();
    let write = move || answer::tagged(write_list(&query, &web.live.snapshot(), MOST_BYTES), JSON, &headers);
    Ok(turns.write(write).await)
}

/// One server: what lists have, and what was found by asking it.
#[derive(Serialize)]
struct Details<'a> {
    #[serde(flatten)]
    server: ServerView<'a>,
    lobby_name: Option<&'a str>,
    players: Vec<PlayerView<'a>>,
    /// gamedig has a list here; nobody tells what bots are called.
    bots: [(); 0],
}

#[derive(Serialize)]
struct PlayerView<'a> {
    name: &'a str,
    team: Option<&'a str>,
    ping: Option<i32>,
    spectator: bool,
}

/// `GET /api/v1/servers/{id}`
pub(crate) async fn one(
    State(web): State<Web>,
    Id(id): Id,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    no_parameters(query.as_deref())?;
    let id = id.parse().map_err(|error| Problem::parameter("id", format!("id: {error}")))?;
    let (snapshot, settings) = (web.live.snapshot(), web.settings());
    let row =
        snapshot.record(id).ok_or_else(|| Problem::not_found("this server is not in the list, or not any more"))?;
    let told = row.info.as_deref();
    let players = told.and_then(|info| info.player_list.as_deref()).unwrap_or_default();
    let players = players.iter().map(|player| PlayerView {
        name: &player.name,
        team: player.team.and_then(|team| told?.team_name(team)),
        ping: player.ping_ms,
        spectator: player.spectator,
    });
    let details = Details {
        server: ServerView::new(row),
        lobby_name: settings.names.name(&row.lobby),
        players: players.collect(),
        bots: [],
    };
    Ok(answer::json(&details, &headers))
}

/// The lobby, or all lobbies, whose whole list is asked for in the usual order.
fn prebuilt_lobby(query: &Query) -> Option<Option<LobbyId>> {
    let lobby = query.filter.lobby;
    (*query == whole(lobby)).then_some(lobby)
}

/// What asks for the whole list of a lobby, or of all lobbies.
pub(crate) fn whole(lobby: Option<LobbyId>) -> Query {
    let filter = Filter { lobby, ..Filter::default() };
    Query { filter, sort: DEFAULTS.sort, offset: 0, limit: DEFAULTS.limit }
}

/// What a query finds, as JSON, up to so many bytes: but always at least one server, so that a client gets on.
pub(crate) fn write_list(query: &Query, snapshot: &LiveSnapshot, most: usize) -> Bytes {
    let mut found = query.select(snapshot);
    let (mut size, mut fitting) = (0, 0);
    for row in &found.rows {
        let more = size + json::server(row).len() + 1;
        if more > most && fitting > 0 {
            break;
        }
        (size, fitting) = (more, fitting + 1);
    }
    found.rows.truncate(fitting);
    let mut out = Vec::with_capacity(size + 160);
    let (cursor, total, offset, count) = (snapshot.cursor(), found.total, query.offset, found.rows.len());
    // Writing into memory does not fail.
    let _ =
        write!(out, "{{\"cursor\":\"{cursor}\",\"total\":{total},\"offset\":{offset},\"count\":{count},\"servers\":[");
    for (place, row) in found.rows.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(json::server(row));
    }
    out.extend_from_slice(b"]}");
    out.into()
}
