//! The door of Bloodmasters: its master list over HTTP (L17).
//!
//! An announcement says only the port of a server; a query of document 002 completes it.

use super::{AnnouncedQuery, Door, HttpAction, HttpDoor, HttpError, HttpRequest, rendered::Rendered};
use crate::{PublishedList, PublishedLists};
use rallypoint_wire::{
    bloodmasters::master_list::{PATH, Request, emit_servers},
    lobby::{Endpoint, ListId},
};
use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// The master list of Bloodmasters, at its old address.
pub static BLOODMASTERS: Door = Door {
    name: "bloodmasters",
    code: 3,
    title: "Bloodmasters master list",
    is_default: true,
    sockets: None,
    http: Some(HttpDoor {
        path: PATH,
        content_type: "text/plain; charset=us-ascii",
        start: || Box::new(MasterList::default()),
    }),
    query: Some(AnnouncedQuery {
        protocol: "bloodmasters",
        list: ListId::BLOODMASTERS,
        // Servers announce themselves every 60 seconds, so one announcement may be lost.
        lease: Duration::from_secs(150),
    }),
};

/// Maximum number of servers in a list: no client expects more.
const MAX_SERVERS: usize = 10_000;

#[derive(Debug, Default)]
struct MasterList {
    rendered: Rendered<Arc<[u8]>>,
}

impl super::RequestHandler for MasterList {
    fn handle_request(&self, request: &HttpRequest<'_>) -> Result<HttpAction, HttpError> {
        match Request::parse(request.query) {
            Ok(Request::List) => Ok(HttpAction::List),
            Ok(Request::Update(_)) if request.method != "GET" => {
                Err(HttpError::Method("a server announces itself with GET"))
            }
            // The reply to an announcement has the bans, one per line: there are none (W39).
            Ok(Request::Update(update)) => Ok(HttpAction::Announce { port: update.port, reply: Arc::new([]) }),
            Err(error) => Err(HttpError::Parameter(error)),
        }
    }

    fn list(&self, now: Instant, lists: &PublishedLists) -> Arc<[u8]> {
        let rendered = self.rendered.get(now, &lists.list(&ListId::BLOODMASTERS), |list, _| render(list).into());
        Arc::clone(&rendered)
    }
}

/// The servers that answer queries at the port they are listed with, whether they announced themselves here or were listed in
/// another way.
fn render(list: &PublishedList) -> Vec<u8> {
    let servers = list.servers().filter(|server| server.block().table.get(b"x-query") == Some(b"bloodmasters"));
    let endpoints = servers.flat_map(|server| {
        let block = server.block();
        let v4 = block.v4.map(|endpoint| Endpoint { ip: IpAddr::V4(endpoint.ip), port: endpoint.port });
        let v6 = block.v6.map(|endpoint| Endpoint { ip: IpAddr::V6(endpoint.ip), port: endpoint.port });
        v4.into_iter().chain(v6)
    });
    let mut out = Vec::new();
    emit_servers(endpoints.take(MAX_SERVERS), &mut out);
    out
}
