//! Looks at many places again and again: the lists of lobbies, what their servers say themselves, and single servers.

use crate::{
    ask::{
        Asking, Engine, Finding, Sweep, Target, Trouble,
        lobby::{Fetched, Listed, Source, fetch},
        output::record::Record,
        sweep::Whom,
        target::Server,
    },
    failure::Failure,
};
use rallypoint_query::ServerInfo;
use rallypoint_wire::lobby::Transport;
use std::collections::HashMap;
use tokio::{sync::mpsc, task::JoinSet};

/// Looks at the same places again and again.
#[derive(Debug)]
pub struct Survey {
    asking: Asking,
    places: Vec<Target>,
    sweep: Sweep,
    /// What was asked and has no finding yet, by its key.
    open: HashMap<u64, Seen>,
    last_key: u64,
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
    /// A whole list has arrived.
    Complete(usize),
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

impl Survey {
    /// Opens sockets. With `players` servers are asked who plays there, too.
    pub fn new(asking: &Asking, places: Vec<Target>, players: bool) -> Result<Self, Failure> {
        let sweep = Sweep::new(Engine::start(asking)?, asking, players);
        Ok(Self { asking: asking.clone(), places, sweep, open: HashMap::new(), last_key: 0 })
    }

    /// Looks once at every place. It can be cancelled at any time: what was asked is told by the next look.
    pub async fn look(&mut self, mut each: impl FnMut(News)) {
        let (sender, mut arrived) = mpsc::unbounded_channel();
        let mut lists = JoinSet::new();
        for (place, target) in self.places.clone().into_iter().enumerate() {
            match target {
                Target::Server(server) => self.ask(place, server),
                Target::Lobby(lobby) => get(&mut lists, place, Source::Lobby(lobby), &self.asking, sender.clone()),
                Target::MasterList(list) => {
                    get(&mut lists, place, Source::MasterList(list), &self.asking, sender.clone());
                }
            }
        }
        drop(sender);
        let mut more_lists = true;
        while more_lists || self.sweep.open() > 0 {
            tokio::select! {
                listed = arrived.recv(), if more_lists => match listed {
                    Some((place, listed)) => self.take(place, listed, &mut each),
                    None => more_lists = false,
                },
                Some(finding) = self.sweep.next() => self.tell(finding, &mut each),
                Some(Ok((place, result))) = lists.join_next() => match result {
                    Ok(_) => each(News::Complete(place)),
                    Err(trouble) => each(News::Failed(place, trouble)),
                },
                else => break,
            }
        }
        while let Some(done) = lists.join_next().await {
            match done {
                Ok((place, Ok(_))) => each(News::Complete(place)),
                Ok((place, Err(trouble))) => each(News::Failed(place, trouble)),
                Err(_) => {}
            }
        }
    }

    /// Waits for whoever was asked by [`ask_again`](Self::ask_again).
    pub async fn finish(&mut self, mut each: impl FnMut(News)) {
        while let Some(finding) = self.sweep.next().await {
            self.tell(finding, &mut each);
        }
    }

    /// Asks one server again, if it can be asked; the next look tells what came of it, or [`finish`](Self::finish).
    pub fn ask_again(&mut self, seen: Seen) {
        match self.places.get(seen.place) {
            Some(Target::Server(server)) => {
                let server = server.clone();
                self.ask(seen.place, server);
            }
            _ => {
                self.probe(seen);
            }
        }
    }

    fn ask(&mut self, place: usize, server: Server) {
        let target = server.to_string();
        let record = Record {
            target: target.clone(),
            address: None,
            protocol: server.protocol,
            info: ServerInfo::default(),
            answer: None,
            trouble: None,
            endpoints: Vec::new(),
        };
        let key = self.key(Seen { id: target, place, record });
        self.sweep.add(key, Whom::Server(server));
    }

    fn take(&mut self, place: usize, listed: Listed, each: &mut impl FnMut(News)) {
        let seen = Seen { id: id_of(&listed), place, record: Record::listed(listed) };
        let asked = self.probe(seen.clone());
        each(News::Listed { seen, asked });
    }

    /// Asks a listed server itself, if that is possible.
    fn probe(&mut self, seen: Seen) -> bool {
        let Record { info, endpoints, protocol, .. } = &seen.record;
        let listed = Listed { info: info.clone(), endpoints: endpoints.clone(), protocol: *protocol };
        let probes = listed.probes(true, &self.asking);
        if probes.is_empty() {
            return false;
        }
        let key = self.key(seen);
        self.sweep.add(key, Whom::Probes(probes));
        true
    }

    fn key(&mut self, seen: Seen) -> u64 {
        self.last_key += 1;
        self.open.insert(self.last_key, seen);
        self.last_key
    }

    fn tell(&mut self, Finding { key, result }: Finding, each: &mut impl FnMut(News)) {
        let Some(mut seen) = self.open.remove(&key) else { return };
        match result {
            Ok(report) => {
                seen.record.take(report);
                each(News::Answered(seen));
            }
            Err(failed) => {
                seen.record.trouble = Some(failed.trouble);
                each(News::Silent(seen));
            }
        }
    }
}

type Outcome = (usize, Result<Fetched, Trouble>);

fn get(
    lists: &mut JoinSet<Outcome>,
    place: usize,
    source: Source,
    asking: &Asking,
    sender: mpsc::UnboundedSender<(usize, Listed)>,
) {
    let asking = asking.clone();
    lists.spawn(async move {
        let pass_on = |listed| drop(sender.send((place, listed)));
        (place, fetch(&source, &asking, pass_on).await)
    });
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
