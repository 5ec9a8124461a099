//! `GET /bloodmasterslist.php`: the master list of Bloodmasters, at its old address (L17).
//!
//! A server announces its port, and is asked there before it is listed. It is asked at no other address than the one that
//! the announcement came from, so nobody can have somebody else asked.

use crate::{
    Asker, Problem, Told, WatchTarget,
    asker::Whom,
    book::Verified,
    gate::Visitor,
    serve::{Place, Places},
    shared::Web,
    watch::watched,
};
use axum::{
    Extension, Router,
    extract::{RawQuery, State},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use rallypoint_limit::{Net, Rate, TokenBuckets};
use rallypoint_lobby_proto::{ListingOrigin, ProbedOutcome, ProbedServer};
use rallypoint_query_proto::{Probe, ProbeOutcome, Protocol};
use rallypoint_wire::{
    bloodmasters::master_list::{self, Request},
    lobby::{Endpoint, LobbyId},
};
use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// For how long an announcement counts. Servers announce themselves every 60 seconds, so one may get lost.
const LEASE: Duration = Duration::from_secs(150);

/// Announcements of one network (/24 or /56): ten times what a hoster with 60 servers there needs.
const PER_NETWORK: Rate = Rate::per_minute(600, 600);

/// So many networks are remembered.
const NETWORKS: usize = 8_192;

/// So many announcements are looked into at once.
const AT_ONCE: usize = 128;

/// Those of one IPv4 address or IPv6 /56.
const PER_ADDRESS: usize = 16;

/// The most servers in a list: no client expects more.
const MOST: usize = 10_000;

/// Those who announce themselves.
#[derive(Debug)]
pub(crate) struct MasterList {
    asker: Option<Asker>,
    budget: Mutex<TokenBuckets<Net>>,
    places: Places,
    /// Those that are being looked at.
    pending: Arc<Mutex<HashSet<SocketAddr>>>,
}

/// A server that is being looked at, until this is dropped.
#[derive(Debug)]
struct Pending {
    at: SocketAddr,
    all: Arc<Mutex<HashSet<SocketAddr>>>,
    _place: Place,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.at);
    }
}

impl MasterList {
    /// Without somebody who asks, nobody is listed.
    pub fn new(asker: Option<Asker>, seed: u128) -> Self {
        let budget = Mutex::new(TokenBuckets::new(PER_NETWORK, NETWORKS, seed));
        Self { asker, budget, places: Places::with(AT_ONCE, PER_ADDRESS), pending: Arc::default() }
    }

    fn is_over_budget(&self, ip: IpAddr) -> bool {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        !budget.take(Instant::now(), Net::of(ip))
    }

    /// Begins to look at a server, unless that is being done already. It is an error if there are too many.
    fn begin(&self, at: SocketAddr) -> Result<Option<Pending>, Problem> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.contains(&at) {
            return Ok(None);
        }
        let place = self.places.take(at.ip(), false).ok_or_else(busy)?;
        pending.insert(at);
        Ok(Some(Pending { at, all: Arc::clone(&self.pending), _place: place }))
    }
}

fn busy() -> Problem {
    let detail = "too many servers are being looked at: announce yourself again in a minute";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

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

/// Asks a server that announced itself, and lists it if it answers.
async fn announce(web: &Web, visitor: Visitor, port: NonZeroU16) -> Result<(), Problem> {
    let ip = visitor.ip;
    if ip.is_loopback() && !visitor.is_local {
        let detail = "a proxy passes this on, and the lobby does not know for whom: the operator has to name it in \
                      web.trusted_proxies";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let unable = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "this lobby does not ask servers");
    let asker = web.master_list.asker.clone().ok_or_else(unable)?;
    if !web.is_exempt(visitor) && web.master_list.is_over_budget(ip) {
        let detail = "too many announcements from your network: one per minute and server is enough";
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    }
    let Some(pending) = web.master_list.begin((ip, port.get()).into())? else { return Ok(()) };
    // In a task of its own it comes to its end whether or not the server waits for it.
    let web = Web::clone(web);
    let look = tokio::spawn(async move {
        let is_done = look_at(&web, &asker, ip, port).await;
        drop(pending);
        is_done
    });
    if look.await.unwrap_or(false) { Ok(()) } else { Err(busy()) }
}

/// Looks at a server that announced itself. Says whether that could be done.
async fn look_at(web: &Web, asker: &Asker, ip: IpAddr, port: NonZeroU16) -> bool {
    if web.lobby.refuse_announced(ip, port).await.is_some() {
        return true;
    }
    let protocol = Protocol::Bloodmasters;
    let answer = match asker.ask(Probe::new((ip, port.get()).into(), protocol.info()), Whom::Willing).await {
        Some(ProbeOutcome::Answered(answer)) => answer,
        Some(_) => {
            web.lobby.note_announced(ip, port, rallypoint_lobby_proto::RegistrationOutcome::Unreachable);
            return true;
        }
        None => return false,
    };
    let target = WatchTarget { host: ip.to_string(), port, protocol, lobby: LobbyId::BLOODMASTERS };
    let watched = ProbedServer {
        // The operator may watch the same server: that is another entry.
        label: format!("announced {target}"),
        ..watched(&answer, ListingOrigin::Announced, &target, vec![ip], LEASE)
    };
    if let Some(ProbedOutcome::Listed(id)) = web.lobby.put_watched(watched).await {
        let told = Told { info: Some(Arc::new(answer.info)), ..Told::new(id, Verified::Verified) };
        // Nobody listens when the program ends.
        let _ = web.live.telling().send(told).await;
    }
    true
}
