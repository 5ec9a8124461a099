//! Servers that cannot register, and that the operator wants in the list: they are asked every 30 seconds.

mod answered;

pub(crate) use answered::watched;

use crate::{Asker, Told, asker::Whom, book::Verified};
use rallypoint_lobby::LobbyService;
use rallypoint_lobby_proto::{ListingOrigin, ProbedOutcome};
use rallypoint_query_proto::{Probe, ProbeOutcome, Protocol, QueryReply};
use rallypoint_wire::lobby::LobbyId;
use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::mpsc, task::JoinHandle, time};

/// How often each is asked.
const EVERY: Duration = Duration::from_secs(30);

/// For how long an answer counts: three questions without one, and the server is offline.
const LEASE: Duration = Duration::from_secs(3 * EVERY.as_secs() + 10);

/// How often a name is looked up, and how long that may take. A server that does not answer may have moved: then at once.
const LOOK_UP_EVERY: Duration = Duration::from_secs(300);
const LOOK_UP_PATIENCE: Duration = Duration::from_secs(10);

/// A server to watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchTarget {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: NonZeroU16,
    /// The protocol to query it with.
    pub protocol: Protocol,
    /// The lobby to list it in.
    pub lobby: LobbyId,
}

/// As it is written: `bloodmasters://example.org:6969`.
impl fmt::Display for WatchTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, protocol, .. } = self;
        match host.contains(':') {
            true => write!(f, "{protocol}://[{host}]:{port}"),
            false => write!(f, "{protocol}://{host}:{port}"),
        }
    }
}

/// Watches servers. They are not asked any more when it is dropped, and go when their time is up.
#[derive(Debug)]
pub struct Watcher {
    asks: Asks,
    tasks: HashMap<WatchTarget, JoinHandle<()>>,
}

/// What every task has.
#[derive(Clone, Debug)]
struct Asks {
    asker: Asker,
    lobby: LobbyService,
    told: Option<mpsc::Sender<Told>>,
}

impl Watcher {
    /// One that watches nobody yet. What servers say is told, if there is somebody to tell.
    #[must_use]
    pub fn new(lobby: LobbyService, asker: Asker, told: Option<mpsc::Sender<Told>>) -> Self {
        Self { asks: Asks { asker, lobby, told }, tasks: HashMap::new() }
    }

    /// Watches these and no others. It has to be called within a runtime.
    pub async fn set(&mut self, targets: &[WatchTarget]) {
        let gone: Vec<_> = self.tasks.keys().filter(|known| !targets.contains(known)).cloned().collect();
        for target in gone {
            if let Some(task) = self.tasks.remove(&target) {
                task.abort();
                // Not before it has ended: it could list the server once more.
                let _ = task.await;
            }
            let label = target.to_string();
            // One that only changes its lobby stays the same server.
            if !targets.iter().any(|kept| kept.to_string() == label) {
                self.asks.lobby.forget_watched(label).await;
            }
        }
        for target in targets {
            let asks = &self.asks;
            self.tasks.entry(target.clone()).or_insert_with(|| tokio::spawn(asks.clone().watch(target.clone())));
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.tasks.values().for_each(JoinHandle::abort);
    }
}

impl Asks {
    /// Asks one server for ever.
    async fn watch(self, target: WatchTarget) {
        let mut turns = time::interval(EVERY);
        turns.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let (mut addrs, mut looked_up, mut state) = (Vec::new(), None::<Instant>, State::default());
        loop {
            turns.tick().await;
            let is_old = looked_up.is_none_or(|at| at.elapsed() >= LOOK_UP_EVERY);
            if is_old || state.id.is_none() {
                addrs = look_up(&target).await;
                looked_up = Some(Instant::now());
            }
            let news = match self.ask(&target, &addrs).await {
                Some(answers) => self.show(&target, answers, &mut state).await,
                None => News::Unasked,
            };
            if news != state.news {
                match news {
                    News::Answers => tracing::info!(server = %target, "a watched server answers"),
                    News::Silent if addrs.is_empty() => {
                        tracing::warn!(server = %target, "a watched server has no address: its name is not known");
                    }
                    News::Silent => tracing::warn!(server = %target, "a watched server does not answer"),
                    News::Taken => tracing::info!(server = %target, "a server is watched twice: it is listed once"),
                    News::Unasked => tracing::warn!(
                        server = %target,
                        "a watched server cannot be asked: this machine has no way to it, or no files left"
                    ),
                    News::Refused(why) => tracing::warn!(server = %target, why, "a watched server cannot be listed"),
                }
                state.news = news;
            }
        }
    }

    /// Asks at all addresses, and gives those that answered. Nothing, if it has addresses and could be asked at none.
    async fn ask(&self, target: &WatchTarget, addrs: &[SocketAddr]) -> Option<Vec<(IpAddr, Box<QueryReply>)>> {
        let mut asked = Vec::new();
        for &addr in addrs {
            let (asker, target) = (self.asker.clone(), Probe::new(addr, target.protocol.players()));
            asked.push((addr.ip(), tokio::spawn(async move { asker.ask(target, Whom::Watched).await })));
        }
        let (mut answers, mut was_asked) = (Vec::new(), addrs.is_empty());
        for (ip, outcome) in asked {
            match outcome.await {
                Ok(Some(ProbeOutcome::Answered(answer))) => answers.push((ip, answer)),
                Ok(Some(_)) => was_asked = true,
                Ok(None) | Err(_) => {}
            }
        }
        (was_asked || !answers.is_empty()).then_some(answers)
    }

    /// Lists what was answered.
    async fn show(&self, target: &WatchTarget, answers: Vec<(IpAddr, Box<QueryReply>)>, state: &mut State) -> News {
        let ips = answers.iter().map(|(ip, _)| *ip).collect();
        let Some((_, answer)) = answers.into_iter().next() else {
            if let Some(id) = state.id.take() {
                self.tell(Told::new(id, Verified::Unreachable)).await;
            }
            return News::Silent;
        };
        let watched = watched(&answer, ListingOrigin::Watched, target, ips, LEASE);
        match self.lobby.put_watched(watched).await {
            Some(ProbedOutcome::Listed(id)) => {
                state.id = Some(id);
                self.tell(Told { info: Some(Arc::new(answer.info)), ..Told::new(id, Verified::Verified) }).await;
                News::Answers
            }
            Some(ProbedOutcome::Refused(why)) => News::Refused(why.code()),
            Some(ProbedOutcome::Taken) | None => News::Taken,
        }
    }

    async fn tell(&self, told: Told) {
        if let Some(sender) = &self.told {
            // Nobody listens when the program ends.
            let _ = sender.send(told).await;
        }
    }
}

/// What is known of a watched server.
#[derive(Debug, Default)]
struct State {
    /// If it answered the last time.
    id: Option<rallypoint_lobby_proto::PublicId>,
    news: News,
}

/// What the operator is told once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum News {
    #[default]
    Answers,
    Silent,
    Unasked,
    Taken,
    Refused(&'static str),
}

/// One address of each family, the first.
async fn look_up(target: &WatchTarget) -> Vec<SocketAddr> {
    let found = tokio::net::lookup_host((&*target.host, target.port.get()));
    let Ok(Ok(found)) = time::timeout(LOOK_UP_PATIENCE, found).await else { return Vec::new() };
    let mut addrs: Vec<SocketAddr> = Vec::new();
    for addr in found {
        if !addrs.iter().any(|known| known.is_ipv4() == addr.is_ipv4()) {
            addrs.push(addr);
        }
    }
    addrs
}
