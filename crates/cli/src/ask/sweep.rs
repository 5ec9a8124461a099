//! Asks many targets: looks names up, keeps enough of them going, gives findings as they come.

use crate::ask::{
    Asking, Engine, Finding, Trouble,
    engine::Failed,
    options::Family,
    resolve::resolve,
    target::{Host, Server},
};
use rallypoint_query_proto::Probe;
use std::{collections::VecDeque, net::SocketAddr};
use tokio::task::JoinSet;

/// Somebody to ask.
#[derive(Clone, Debug)]
pub struct Request {
    /// Whatever the caller wants to know it by.
    pub key: u64,
    pub whom: Whom,
}

/// Whom to ask.
#[derive(Clone, Debug)]
pub enum Whom {
    /// As a person names it.
    Server(Server),
    /// By addresses: the first answer counts.
    Probes(Vec<Probe>),
}

/// Asks many targets. They can be added at any time.
#[derive(Debug)]
pub struct Sweep {
    engine: Engine,
    family: Option<Family>,
    players: bool,
    waiting: VecDeque<Request>,
    resolving: JoinSet<(u64, Server, Result<Vec<SocketAddr>, Trouble>)>,
}

/// How many are handed to the engine at a time: as many as it asks at the same time.
const IN_FLIGHT: usize = 16_384;

/// How many names are looked up at a time.
const RESOLVING: usize = 32;

impl Sweep {
    /// `players`: whether servers are asked who plays there, too.
    pub fn new(engine: Engine, asking: &Asking, players: bool) -> Self {
        Self { engine, family: asking.family(), players, waiting: VecDeque::new(), resolving: JoinSet::new() }
    }

    /// Adds somebody to ask.
    pub fn add(&mut self, key: u64, whom: Whom) {
        self.waiting.push_back(Request { key, whom });
    }

    /// Whether more can be asked at once. Whoever does not want memory to grow adds nobody before.
    pub fn has_room(&self) -> bool {
        self.open() < IN_FLIGHT
    }

    /// How many are not done.
    pub fn open(&self) -> usize {
        self.waiting.len() + self.resolving.len() + self.engine.open()
    }

    /// The next finding; `None` if everything that was asked is done. Can be cancelled at any time.
    pub async fn next(&mut self) -> Option<Finding> {
        loop {
            self.feed();
            if self.engine.open() == 0 && self.resolving.is_empty() {
                return None;
            }
            tokio::select! {
                Some(finding) = self.engine.next() => return Some(finding),
                Some(resolved) = self.resolving.join_next() => {
                    let Ok((key, server, result)) = resolved else { continue };
                    match result {
                        Ok(addrs) => self.engine.ask(key, server.probes(&addrs, self.players)),
                        Err(trouble) => return Some(Finding { key, result: Err(Failed { trouble, address: None }) }),
                    }
                }
            }
        }
    }

    fn feed(&mut self) {
        while self.engine.open() < IN_FLIGHT && self.resolving.len() < RESOLVING {
            let Some(Request { key, whom }) = self.waiting.pop_front() else { return };
            match whom {
                Whom::Probes(probes) => self.engine.ask(key, probes),
                Whom::Server(server @ Server { host: Host::Ip(ip), .. }) => {
                    self.engine.ask(key, server.probes(&[SocketAddr::new(ip, 0)], self.players));
                }
                Whom::Server(server) => {
                    let family = self.family;
                    self.resolving.spawn(async move {
                        let addrs = resolve(&server.host, 0, family).await;
                        (key, server, addrs)
                    });
                }
            }
        }
    }
}
