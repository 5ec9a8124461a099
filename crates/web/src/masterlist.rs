//! `GET /bloodmasterslist.php`: the master list of Bloodmasters, at its old address (L17).
//!
//! A server announces its port, and the lobby probes it there before it is listed.

use crate::{Problem, gate::Visitor, shared::Web};
use axum::{
    Extension, Router,
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
use std::{net::SocketAddr, num::NonZeroU16};

/// The most servers in a list: no client expects more.
const MOST: usize = 10_000;

pub(crate) fn router() -> Router<Web> {
    Router::new().route(master_list::PATH, get(answer))
}

async fn answer(
    method: Method,
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    match Request::parse(query.as_deref().unwrap_or_default()) {
        Ok(Request::List) => Ok(text(list(&web))),
        Ok(Request::Update(_)) if method != Method::GET => {
            Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "a server announces itself with GET"))
        }
        Ok(Request::Update(update)) => {
            announce(&web, visitor, update.port).await?;
            // The bans, a line each: there are none (W39).
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

/// The servers of the lobby that are asked at the port they are listed with: those who announced themselves, and those who
/// came there in another way.
fn list(web: &Web) -> Vec<u8> {
    let list = web.lobby.lists().lobby(&LobbyId::BLOODMASTERS);
    let listings = list.servers().filter(|listing| listing.block().table.get(b"x-query") == Some(b"bloodmasters"));
    let addresses = listings.flat_map(|listing| {
        let block = listing.block();
        let v4 = block.v4.map(|at| SocketAddr::from((at.ip, at.port.get())));
        let v6 = block.v6.map(|at| SocketAddr::from((at.ip, at.port.get())));
        v4.into_iter().chain(v6)
    });
    let mut out = Vec::new();
    let endpoint = |addr: SocketAddr| Some(Endpoint { ip: addr.ip(), port: NonZeroU16::new(addr.port())? });
    master_list::emit_servers(addresses.take(MOST).filter_map(endpoint), &mut out);
    out
}

/// Handles the announcement of a server: the lobby probes it, and lists it if it replies.
async fn announce(web: &Web, visitor: Visitor, port: NonZeroU16) -> Result<(), Problem> {
    if visitor.ip.is_loopback() && !visitor.is_local {
        let detail = "a proxy passes this on, and the lobby does not know for whom: the operator has to name it in \
                      web.trusted_proxies";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let handled = web.lobby.handle_announcement(visitor.ip, port, web.is_exempt(visitor)).await;
    handled.map_err(|error| {
        let status = match error {
            AnnouncementError::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, error.to_string())
    })
}
