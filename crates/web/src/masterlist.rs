//! `GET /bloodmasterslist.php`: the master list of Bloodmasters, at its old address (L17).
//!
//! A server announces its port, and the lobby probes it there before it is listed.

use crate::{Problem, middleware::ClientAddr, router::Routes, state::AppState};
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use rallypoint_lobby::AnnouncementError;
use rallypoint_wire::{
    bloodmasters::master_list::{self, Request},
    lobby::{Endpoint, LobbyId},
};
use std::{net::SocketAddr, num::NonZeroU16, sync::Arc};

/// Maximum number of servers in a list: no client expects more.
const MAX_SERVERS: usize = 10_000;

pub(crate) fn routes() -> Routes {
    Routes::new().route(master_list::PATH, get(handle_request))
}

/// The list for clients, or the announcement of a server.
async fn handle_request(
    method: Method,
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    match Request::parse(query.as_deref().unwrap_or_default()) {
        // It looks at all servers of the lobby, so it waits for its turn like a page.
        Ok(Request::List) => Ok(state.render_limiter.clone().run(client, move || text(list(&state))).await),
        Ok(Request::Update(_)) if method != Method::GET => {
            Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "a server announces itself with GET"))
        }
        Ok(Request::Update(update)) => {
            announce(&state, client, update.port).await?;
            // The bans, one per line: the list is always empty (W39).
            Ok(text(Vec::new()))
        }
        Err(error) => Err(Problem::parameter(error.field, error.to_string())),
    }
}

fn text(body: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=us-ascii")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, body).into_response()
}

/// The servers of the lobby Bloodmasters that answer queries at the port they are listed with, whether they announced
/// themselves here or were listed in another way.
fn list(state: &AppState) -> Vec<u8> {
    let list = state.lobby.lists().lobby(&LobbyId::BLOODMASTERS);
    let servers = list.servers().filter(|server| server.block().table.get(b"x-query") == Some(b"bloodmasters"));
    let addresses = servers.flat_map(|server| {
        let block = server.block();
        let v4 = block.v4.map(|endpoint| SocketAddr::from((endpoint.ip, endpoint.port.get())));
        let v6 = block.v6.map(|endpoint| SocketAddr::from((endpoint.ip, endpoint.port.get())));
        v4.into_iter().chain(v6)
    });
    let mut out = Vec::new();
    let endpoint = |addr: SocketAddr| Some(Endpoint { ip: addr.ip(), port: NonZeroU16::new(addr.port())? });
    master_list::emit_servers(addresses.take(MAX_SERVERS).filter_map(endpoint), &mut out);
    out
}

/// Handles the announcement of a server: the lobby probes it, and lists it if it replies.
async fn announce(state: &AppState, client: ClientAddr, port: NonZeroU16) -> Result<(), Problem> {
    // A server on this machine may know the lobby by any host name.
    if client.ip.is_loopback() && client.is_unnamed {
        let detail = "a proxy forwarded this announcement without naming the server's address: the operator has to list \
                      the proxy in web.trusted_proxies";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let handled = state.lobby.handle_announcement(client.ip, port, state.is_exempt(client)).await;
    handled.map_err(|error| {
        let status = match error {
            AnnouncementError::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, error.to_string())
    })
}
