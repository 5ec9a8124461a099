//! `GET /bloodmasterslist.php`: the master list of Bloodmasters, at its old address (L17).
//!
//! A server announces its port, and is asked there before it is listed. It is asked at no other address than the one that
//! the announcement came from, so nobody can have somebody else asked.

use crate::{Asker, Problem, Told, WatchTarget, book::Verified, gate::Visitor, shared::Web, watch::watched};
use axum::{
    Extension, Router,
    extract::{RawQuery, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use rallypoint_limit::{Buckets, Net, Rate};
use rallypoint_lobby::{Origin, Watched, Watching};
use rallypoint_query::{Outcome, Question, Target};
use rallypoint_wire::{
    bloodmasters::master_list::{self, Request},
    lobby::{Endpoint, LobbyId},
};
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// For how long an announcement counts. Servers announce themselves every 60 seconds, so one may get lost.
const LEASE: Duration = Duration::from_secs(150);

/// Announcements of one network (/24 or /56): ten times what a hoster with 60 servers there needs.
const PER_NETWORK: Rate = Rate::per_minute(600, 600);

/// So many networks are remembered.
const NETWORKS: usize = 8_192;

/// So many announcements are looked into at once.
const AT_ONCE: usize = 256;

/// The most servers in a list: no client expects more.
const MOST: usize = 10_000;

/// Those who announce themselves.
#[derive(Debug)]
pub(crate) struct MasterList {
    asker: Option<Asker>,
    budget: Mutex<Buckets<Net>>,
    places: Semaphore,
}

impl MasterList {
    /// Without somebody who asks, nobody is listed.
    pub fn new(asker: Option<Asker>, seed: u128) -> Self {
        let budget = Mutex::new(Buckets::new(PER_NETWORK, NETWORKS, seed));
        Self { asker, budget, places: Semaphore::new(AT_ONCE) }
    }

    fn is_over_budget(&self, ip: IpAddr) -> bool {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        !budget.take(Instant::now(), Net::of(ip))
    }
}

pub(crate) fn router() -> Router<Web> {
    Router::new().route(master_list::PATH, get(answer))
}

async fn answer(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    match Request::parse(query.as_deref().unwrap_or_default()) {
        Ok(Request::List) => Ok(text(list(&web))),
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
    let listings = list.listings().filter(|listing| listing.block().table.get(b"x-query") == Some(b"bloodmasters"));
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

/// Asks a server that announced itself, and lists it if it answers.
async fn announce(web: &Web, visitor: Visitor, port: NonZeroU16) -> Result<(), Problem> {
    let busy = |detail: &str| Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    let ip = visitor.ip;
    if ip.is_loopback() && !visitor.is_local {
        let detail = "a proxy passes this on, and the lobby does not know for whom: the operator has to name it in \
                      web.trusted_proxies";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let asker = web.master_list.asker.as_ref().ok_or_else(|| busy("this lobby does not ask servers"))?;
    if !web.is_exempt(visitor) && web.master_list.is_over_budget(ip) {
        let detail = "too many announcements from your network: one per minute and server is enough";
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    }
    let place = web.master_list.places.try_acquire();
    let _place =
        place.map_err(|_| busy("too many servers are being looked at: announce yourself again in a minute"))?;
    let question = Question::Bloodmasters;
    let Outcome::Answered(answer) = asker.ask(Target::new((ip, port.get()).into(), question)).await else {
        web.lobby.note_announced(ip, port, rallypoint_lobby::Outcome::Unreachable);
        return Ok(());
    };
    let target = WatchTarget { host: ip.to_string(), port, question, lobby: LobbyId::BLOODMASTERS };
    let watched = Watched {
        // The operator may watch the same server: that is another entry.
        label: format!("announced {target}"),
        ..watched(&answer, Origin::Announced, &target, vec![ip], LEASE)
    };
    if let Some(Watching::Listed(id)) = web.lobby.put_watched(watched).await {
        let told = Told { info: Some(Arc::new(answer.info)), ..Told::new(id, Verified::Verified) };
        // Nobody listens when the program ends.
        let _ = web.live.telling().send(told).await;
    }
    Ok(())
}
