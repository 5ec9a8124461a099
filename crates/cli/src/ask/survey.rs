//! Looks at many places, once or again and again: the lists of lobbies, what their servers say themselves, and single servers.

use crate::{
    ask::{
        Asking, Engine, Finding, Sweep, Target, Trouble,
        lobby::{Fetched, Listed, Source, fetch},
        output::record::Record,
        sweep::Whom,
        target::Server,
    },
    error::CommandError,
};
use rallypoint_wire::lobby::Transport;
use std::{collections::HashMap, ops::Range, sync::Arc};
use tokio::{sync::mpsc, task::JoinSet};

/// Looks at the same places, as often as it is told to.
#[derive(Debug)]
pub struct Survey {
    asking: Asking,
    places: Arc<[Place]>,
    /// Places whose servers are not asked yet in this look: what waits here takes no memory.
    ahead: Range<usize>,
    /// None if only lists are looked at.
    sweep: Option<Sweep>,
    players: bool,
    /// What was asked and has no finding yet, by its key.
    open: HashMap<u64, Open>,
    last_key: u64,
    /// Lists that are being fetched: they end with the next look.
    lists: JoinSet<()>,
    arrived: Option<mpsc::UnboundedReceiver<Arrived>>,
}

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Server(Server),
    List(Source),
}

/// What was learned.
#[derive(Debug)]
pub enum News {
    /// A list has this server.
    Listed {
        seen: Seen,
        /// Whether it is asked itself, too: some cannot be.
        asked: bool,
    },
    /// A server said this itself.
    Answered(Seen),
    /// A server did not answer: why is in its record.
    Silent(Seen),
    /// A whole list has arrived; all of its servers were told before.
    Complete(usize, Fetched),
    /// A list could not be had.
    Failed(usize, Trouble),
}

/// A server that was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// By this it is known from one look to the next: see [`id_of`].
    pub id: String,
    /// The place that it was found by, counted from 0.
    pub place: usize,
    pub record: Record,
}

/// Whoever is asked. There can be a great many of them.
#[derive(Debug)]
enum Open {
    /// The server of a place.
    Named(usize),
    Listed(Box<Seen>),
}

#[derive(Debug)]
enum Arrived {
    Listed(usize, Box<Listed>),
    Done(usize, Result<Fetched, Trouble>),
}

impl Survey {
    /// Opens sockets. With `players` servers are asked who plays there, too.
    pub fn new(asking: &Asking, places: Arc<[Place]>, players: bool) -> Result<Self, CommandError> {
        let sweep = Sweep::new(Engine::start(asking)?, asking, players);
        Ok(Self { sweep: Some(sweep), players, ..Self::of_lists(asking, places) })
    }

    /// Looks only at lists, and asks no server.
    pub fn of_lists(asking: &Asking, places: Arc<[Place]>) -> Self {
        let (asking, open, lists) = (asking.clone(), HashMap::new(), JoinSet::new());
        Self { asking, places, ahead: 0..0, sweep: None, players: false, open, last_key: 0, lists, arrived: None }
    }

    /// Looks once at every place. It can be cancelled at any time: what was asked is told by the next look.
    pub async fn look(&mut self, each: impl FnMut(News)) {
        self.begin();
        self.finish(each).await;
    }

    /// Waits for whatever is under way.
    pub async fn finish(&mut self, mut each: impl FnMut(News)) {
        while let Some(news) = self.next().await {
            each(news);
        }
    }

    /// Begins to look at every place; [`next`](Self::next) tells what comes.
    pub fn begin(&mut self) {
        let (sender, arrived) = mpsc::unbounded_channel();
        (self.lists, self.arrived) = (JoinSet::new(), Some(arrived));
        self.ahead = 0..self.places.len();
        for (place, source) in self.places.iter().enumerate() {
            let Place::List(source) = source else { continue };
            let (source, asking, sender) = (source.clone(), self.asking.clone(), sender.clone());
            self.lists.spawn(async move {
                let pass_on = |listed| drop(sender.send(Arrived::Listed(place, Box::new(listed))));
                let result = fetch(&source, &asking, pass_on).await;
                let _ = sender.send(Arrived::Done(place, result));
            });
        }
    }

    /// What is learned next; `None` if nothing is under way. It can be cancelled at any time.
    pub async fn next(&mut self) -> Option<News> {
        loop {
            self.feed();
            let is_asking = self.sweep.as_ref().is_some_and(|sweep| sweep.open() > 0);
            tokio::select! {
                arrived = receive(&mut self.arrived), if self.arrived.is_some() => match arrived {
                    Some(Arrived::Listed(place, listed)) => return Some(self.take(place, *listed)),
                    Some(Arrived::Done(place, Ok(fetched))) => return Some(News::Complete(place, fetched)),
                    Some(Arrived::Done(place, Err(trouble))) => return Some(News::Failed(place, trouble)),
                    None => self.arrived = None,
                },
                finding = find(&mut self.sweep), if is_asking => if let Some(news) = self.tell(finding?) {
                    return Some(news);
                },
                else => return None,
            }
        }
    }

    /// Asks one server again, if it can be asked; [`next`](Self::next) tells what came of it.
    pub fn ask_again(&mut self, seen: Seen) {
        if let Some(Place::Server(server)) = self.places.get(seen.place) {
            let server = server.clone();
            return self.ask(Open::Named(seen.place), Whom::Server(server));
        }
        let Record { info, endpoints, protocol, .. } = &seen.record;
        let listed = Listed { info: info.clone(), endpoints: endpoints.clone(), protocol: *protocol };
        let probes = listed.probes(self.players, &self.asking);
        if !probes.is_empty() {
            self.ask(Open::Listed(Box::new(seen)), Whom::Probes(probes));
        }
    }

    /// How many there are to ask, as far as that is known, and how many of them have no finding yet.
    pub fn progress(&self) -> (usize, usize) {
        let asked = usize::try_from(self.last_key).unwrap_or(usize::MAX);
        (asked.saturating_add(self.ahead.len()), self.open.len() + self.ahead.len())
    }

    /// Asks the next servers, as many as there is room for.
    fn feed(&mut self) {
        while self.sweep.as_ref().is_some_and(Sweep::has_room) {
            let Some(place) = self.ahead.next() else { return };
            if let Place::Server(server) = &self.places[place] {
                let server = server.clone();
                self.ask(Open::Named(place), Whom::Server(server));
            }
        }
    }

    fn take(&mut self, place: usize, listed: Listed) -> News {
        let probes = if self.sweep.is_some() { listed.probes(self.players, &self.asking) } else { Vec::new() };
        let seen = Seen { id: id_of(&listed), place, record: Record::listed(listed) };
        let asked = !probes.is_empty();
        if asked {
            self.ask(Open::Listed(Box::new(seen.clone())), Whom::Probes(probes));
        }
        News::Listed { seen, asked }
    }

    fn ask(&mut self, open: Open, whom: Whom) {
        if let Some(sweep) = &mut self.sweep {
            self.last_key += 1;
            self.open.insert(self.last_key, open);
            sweep.add(self.last_key, whom);
        }
    }

    fn tell(&mut self, Finding { key, result }: Finding) -> Option<News> {
        let mut seen = match self.open.remove(&key)? {
            Open::Listed(seen) => *seen,
            Open::Named(place) => self.named(place)?,
        };
        Some(match result {
            Ok(found) => {
                seen.record.take(found);
                News::Answered(seen)
            }
            Err(failed) => {
                seen.record.address = seen.record.address.or(failed.address);
                seen.record.trouble = Some(failed.trouble);
                News::Silent(seen)
            }
        })
    }

    fn named(&self, place: usize) -> Option<Seen> {
        let Some(Place::Server(server)) = self.places.get(place) else { return None };
        let target = server.to_string();
        let record = Record { protocol: server.protocol, ..Record::named(target.clone()) };
        Some(Seen { id: target, place, record })
    }
}

async fn receive(arrived: &mut Option<mpsc::UnboundedReceiver<Arrived>>) -> Option<Arrived> {
    arrived.as_mut()?.recv().await
}

async fn find(sweep: &mut Option<Sweep>) -> Option<Finding> {
    sweep.as_mut()?.next().await
}

impl From<Target> for Place {
    fn from(target: Target) -> Self {
        match target {
            Target::Server(server) => Self::Server(server),
            Target::Lobby(lobby) => Self::List(Source::Lobby(lobby)),
            Target::MasterList(list) => Self::List(Source::MasterList(list)),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(server) => server.fmt(f),
            Self::List(source) => source.fmt(f),
        }
    }
}

/// By what a listed server is known: its lowest address (IPv4 before IPv6, whatever the order of the list) and how players
/// reach it.
pub fn id_of(listed: &Listed) -> String {
    let address = listed.endpoints.iter().min().map(ToString::to_string).unwrap_or_default();
    match listed.info.lobby.as_ref().map(|lobby| lobby.transport) {
        Some(Transport::Tcp) => format!("tcp://{address}"),
        Some(Transport::Udp) | None => format!("udp://{address}"),
    }
}
