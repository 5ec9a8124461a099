//! Asks servers and lists, and makes records of what comes.

use crate::{
    ask::{
        Asking, Engine, Exit, Finding, Sweep, Target, Whom,
        engine::Failed,
        lobby::{Fetched, Listed, Source, fetch},
        output::{Missed, Record, Sink, sink::ListNote},
    },
    failure::Failure,
    signals::Signals,
};
use std::{io, time::Duration};
use tokio::{task::JoinSet, time::interval};

/// Asks many, and keeps the order of things.
pub struct Collect {
    asking: Asking,
    sweep: Sweep,
    players: bool,
    /// By key, until its finding has come.
    subjects: Vec<Option<Subject>>,
    done: usize,
    answered: usize,
    signals: Signals,
    is_stopped: bool,
}

/// Whoever is asked.
#[derive(Debug)]
enum Subject {
    Named(Target),
    Listed(Box<Record>),
}

/// What came of one.
#[derive(Debug)]
pub enum News {
    /// A server: of a list, it may be one that did not answer.
    Server(Box<Record>),
    Missed(Missed, Exit),
}

/// How often to look whether there is progress to show.
const TICK: Duration = Duration::from_millis(100);

impl Collect {
    /// `players`: whether servers are asked who plays there.
    pub fn new(asking: &Asking, players: bool) -> Result<Self, Failure> {
        let sweep = Sweep::new(Engine::start(asking)?, asking, players);
        let signals = Signals::to_stop().map_err(Failure::failed)?;
        let (asking, subjects) = (asking.clone(), Vec::new());
        Ok(Self { asking, sweep, players, subjects, done: 0, answered: 0, signals, is_stopped: false })
    }

    /// Adds a server that a person named.
    pub fn add(&mut self, target: Target) {
        let key = self.subjects.len() as u64;
        if let Target::Server(server) = &target {
            self.sweep.add(key, Whom::Server(server.clone()));
            self.subjects.push(Some(Subject::Named(target)));
        }
    }

    /// Adds a server of a list. Gives it back if it cannot be asked.
    pub fn add_listed(&mut self, listed: Listed) -> Option<Box<Record>> {
        let probes = listed.probes(self.players, &self.asking);
        let record = Box::new(Record::listed(listed));
        if probes.is_empty() {
            return Some(record);
        }
        self.sweep.add(self.subjects.len() as u64, Whom::Probes(probes));
        self.subjects.push(Some(Subject::Listed(record)));
        None
    }

    /// The next that is done; `None` if all are, or after Ctrl-C: what has come by then is worth showing. Shows how far
    /// things are meanwhile.
    pub async fn next(&mut self, sink: &mut Sink) -> Option<News> {
        let mut tick = interval(TICK);
        while !self.is_stopped {
            tokio::select! {
                biased;
                finding = self.sweep.next() => return self.take(finding?),
                () = self.signals.stop() => self.is_stopped = true,
                _ = tick.tick(), if sink.progress.is_lively() => {
                    sink.progress.show(self.done, self.subjects.len(), self.answered);
                }
            }
        }
        None
    }

    /// Whether it was told to stop before all were done.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    fn take(&mut self, finding: Finding) -> Option<News> {
        self.done += 1;
        let subject = self.subjects.get_mut(usize::try_from(finding.key).ok()?)?.take()?;
        let answered = usize::from(finding.result.is_ok());
        self.answered += answered;
        match (subject, finding.result) {
            (Subject::Named(target), Ok(report)) => {
                Record::answered(target.to_string(), report).map(|record| News::Server(Box::new(record)))
            }
            (Subject::Named(target), Err(failed)) => {
                Some(News::Missed(Missed::new(target.to_string(), &failed), failed.trouble.exit()))
            }
            (Subject::Listed(mut record), Ok(report)) => {
                record.take(report);
                Some(News::Server(record))
            }
            (Subject::Listed(mut record), Err(failed)) => {
                record.trouble = Some(failed.trouble);
                Some(News::Server(record))
            }
        }
    }
}

/// Lists that have arrived, and how it went.
#[derive(Debug, Default)]
pub struct Lists {
    pub servers: Vec<Listed>,
    pub exit: Option<Exit>,
}

/// Gets several lists at the same time, and tells of each.
pub async fn lists(sources: Vec<Source>, asking: &Asking, sink: &mut Sink) -> io::Result<Lists> {
    let mut fetching = JoinSet::new();
    for (number, source) in sources.into_iter().enumerate() {
        let asking = asking.clone();
        fetching.spawn(async move {
            let mut servers = Vec::new();
            let fetched = fetch(&source, &asking, |listed| servers.push(listed)).await;
            (number, source, servers, fetched)
        });
    }
    let mut arrived = fetching.join_all().await;
    arrived.sort_by_key(|list| list.0);
    let mut lists = Lists::default();
    for (_, source, servers, fetched) in arrived {
        let target = source.to_string();
        // What has arrived of a list that broke off is not a reason to show nothing.
        lists.servers.extend(servers);
        let exit = match fetched {
            Ok(Fetched { from, connected, servers, malformed, .. }) => {
                let connect_ms = (connected.as_secs_f64() * 1e6).round() / 1e3;
                sink.list(ListNote { target, address: from, servers, malformed, connect_ms })?;
                Exit::Answered
            }
            Err(trouble) => {
                let exit = trouble.exit();
                sink.missed(Missed::new(target, &Failed { trouble, probe: None }))?;
                exit
            }
        };
        lists.exit = Some(lists.exit.map_or(exit, |before| before.and(exit)));
    }
    Ok(lists)
}
