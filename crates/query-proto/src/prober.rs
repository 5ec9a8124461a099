//! Asking many servers at once.

mod collected;
mod config;
mod pace;
mod probe;
mod refused;
mod stats;
mod timers;

pub use config::{ProberConfig, ProberConfigError};
pub use stats::ProberStats;

use crate::{
    Answer, AskError, Measured, Missing, Outcome, Question, Raw, Report, RoundTrip, ServerInfo, Target,
    secret::{Secrets, TableKey},
    target::{Kind, Peer},
};
use pace::Pace;
use probe::{Probe, Probes, ToSend};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_wire::{
    DecodeError,
    bloodmasters::{self, Reply},
    session::{ClientDatagram, Info, ServerDatagram},
};
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    net::SocketAddr,
    time::Instant,
};
use timers::{Mark, Timers};

/// Asks thousands of servers, and tells what each of them answered as soon as it has.
///
/// * In: [`ask`](Self::ask) adds a server at any time, [`cancel`](Self::cancel) takes one back;
///   [`handle_refused`](Self::handle_refused), and `handle_datagram` and `handle_timeout` of [`Machine`].
/// * Out: `poll_transmit`, then `poll_event` (one [`Report`] for each server, in the order in which they are done), then
///   `poll_timeout`.
/// * Getters: [`is_idle`](Self::is_idle), [`waiting`](Self::waiting), [`in_flight`](Self::in_flight),
///   [`stats`](Self::stats).
///
/// # What it promises
///
/// * Datagrams go out evenly, [`ProberConfig::packets_per_second`]; never an empty one (B10).
/// * Only what comes from the asked address counts, and for document 002 only with the echo of a question that was asked
///   (B7). Document 003 has no echo: there, whoever can forge the address of a server can forge its answer.
/// * Every server has its deadline, counted from the first question; what came by then is reported, and what is missing
///   (S9, S10). Who answered in part is asked again for the rest.
/// * A datagram costs the same however many servers are asked. Memory is bounded: targets that wait take 48 bytes, and
///   what comes from strangers is limited in total.
/// * Results that are not taken are kept, but then no more servers are asked.
///
/// Servers at the same address that speak different protocols are asked at the same time; the same server twice, one
/// after the other.
pub struct Prober {
    config: ProberConfig,
    secrets: Secrets,
    waiting: VecDeque<Target>,
    /// Targets that wait for another one of the same server.
    behind: HashMap<(Peer, Kind), VecDeque<Target>, TableKey>,
    held: usize,
    probes: Probes,
    by_peer: HashMap<Peer, Slots, TableKey>,
    /// Who has something to send beside the first question: the slot and its serial.
    ready: VecDeque<Mark>,
    timers: Timers,
    pace: Pace,
    /// Never 0, and never the same twice: serials and stamps.
    last_number: u64,
    events: VecDeque<Report>,
    /// Bytes from strangers that are kept, in probes and in events.
    kept: usize,
    stats: ProberStats,
}

/// What is asked at one address.
#[derive(Clone, Copy, Debug, Default)]
struct Slots {
    bloodmasters: Option<u32>,
    session: Option<u32>,
}

/// How many bytes of answers are kept until they are complete and taken: ten times as much as ten thousand servers of an
/// honest kind need at a time.
const MAX_KEPT: usize = 16 << 20;

impl Prober {
    /// The longest datagram of interest, in bytes: a driver should have room for it.
    pub const MAX_DATAGRAM: usize = bloodmasters::MAX_REPLY;

    /// A prober with nobody to ask. The seed has to be one that nobody can guess.
    ///
    /// # Errors
    /// If the configuration is out of range.
    pub fn new(config: ProberConfig, seed: [u8; 32]) -> Result<Self, ProberConfigError> {
        config.validate()?;
        let secrets = Secrets::new(seed);
        Ok(Self {
            waiting: VecDeque::new(),
            behind: HashMap::with_hasher(secrets.tables),
            held: 0,
            probes: Probes::default(),
            by_peer: HashMap::with_hasher(secrets.tables),
            ready: VecDeque::new(),
            timers: Timers::new(config.waits().chain([config.deadline])),
            pace: Pace::new(config.packets_per_second),
            last_number: 0,
            events: VecDeque::new(),
            kept: 0,
            stats: ProberStats::default(),
            secrets,
            config,
        })
    }

    /// Asks a server, as soon as it is its turn.
    ///
    /// # Errors
    /// If no answer could ever come from its address, or too many servers are waiting.
    pub fn ask(&mut self, target: Target) -> Result<(), AskError> {
        if !target.is_askable() {
            return Err(AskError::NotAServer(target.address));
        }
        if self.waiting() >= self.config.max_targets {
            return Err(AskError::TooMany(self.config.max_targets));
        }
        self.waiting.push_back(target);
        Ok(())
    }

    /// Asks no more, and will not report: whoever is being asked is forgotten. False if it is not being asked, perhaps
    /// because it still waits for its turn.
    pub fn cancel(&mut self, target: &Target) -> bool {
        let mut slots = self.by_peer.get(&Peer::of(target.address)).copied().unwrap_or_default();
        let slot = slots.of(target.question.kind()).filter(|slot| {
            // The same server may be asked for somebody else.
            self.probes.get(*slot).is_some_and(|probe| probe.target == *target)
        });
        slot.and_then(|slot| self.remove(slot)).is_some()
    }

    /// Whether every server that was asked is done, and every report taken.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.in_flight() == 0 && self.events.is_empty()
    }

    /// How many servers wait for their turn.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.held
    }

    /// How many servers are being asked.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.probes.len()
    }

    /// What has happened so far.
    #[must_use]
    pub fn stats(&self) -> ProberStats {
        self.stats
    }

    /// How it asks.
    #[must_use]
    pub fn config(&self) -> &ProberConfig {
        &self.config
    }
}

impl Machine for Prober {
    type Event = Report;

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        self.stats.received += 1;
        let slots = self.by_peer.get(&Peer::of(from)).copied().unwrap_or_default();
        // Some replies of document 002 start like an info of document 003, but no info is also a whole reply.
        let reply = Reply::parse(bytes);
        let is_reply = reply.is_ok_and(|reply| reply.is_complete());
        match slots {
            Slots { bloodmasters: Some(slot), session } if is_reply || session.is_none() => {
                self.handle_bloodmasters(now, slot, bytes, reply);
            }
            Slots { session: Some(slot), .. } if !is_reply => self.handle_session(now, slot, bytes),
            Slots { .. } => self.stats.unasked += 1,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for kind in 0..self.timers.kinds() {
            while let Some(mark) = self.timers.take(kind, now) {
                match self.probes.get(mark.slot) {
                    Some(probe) if probe.serial == mark.stamp => self.finish(mark.slot),
                    Some(probe) if probe.armed == mark.stamp => self.retry(mark.slot),
                    _ => {}
                }
            }
        }
        self.timers.tidy(|mark| is_live(&self.probes, mark));
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        if !self.pace.is_open(now) {
            return None;
        }
        let slot = self.next_ready().or_else(|| self.start(now))?;
        let start = out.len();
        let to = self.send(now, slot, out)?;
        let len = out.len() - start;
        self.pace.take(now);
        self.stats.sent += 1;
        self.stats.sent_bytes += len as u64;
        Some(Transmit::one(to, len))
    }

    fn poll_event(&mut self) -> Option<Report> {
        let report = self.events.pop_front()?;
        self.kept = self.kept.saturating_sub(report.answer().map_or(0, |answer| answer.raw.size()));
        Some(report)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let to_send = !self.ready.is_empty() || self.may_start();
        // Whoever has sent nothing yet may send at once, and `poll_transmit` comes first: so then there is no time to name.
        let send = to_send.then(|| self.pace.wake()).flatten();
        [send, self.timers.next()].into_iter().flatten().min()
    }
}

/// Asking.
impl Prober {
    /// Somebody to whom something is to be sent beside the first question.
    fn next_ready(&mut self) -> Option<u32> {
        while let Some(mark) = self.ready.pop_front() {
            if is_live(&self.probes, mark) {
                return Some(mark.slot);
            }
        }
        None
    }

    fn may_start(&self) -> bool {
        !self.waiting.is_empty() && self.probes.len() + self.events.len() < self.config.max_in_flight
    }

    /// Begins to ask the next one.
    fn start(&mut self, now: Instant) -> Option<u32> {
        while self.may_start() {
            let target = self.waiting.pop_front()?;
            let (peer, kind) = (Peer::of(target.address), target.question.kind());
            let slot = self.by_peer.entry(peer).or_default().of(kind);
            if slot.is_some() {
                self.behind.entry((peer, kind)).or_default().push_back(target);
                self.held += 1;
                continue;
            }
            self.last_number += 1;
            let serial = self.last_number;
            let probe = self.probes.insert(Probe::new(target, serial, now));
            *slot = Some(probe);
            let (live, deadline) = (self.probes.len(), self.timers.kinds() - 1);
            let mark = Mark { slot: probe, stamp: serial };
            self.timers.set(deadline, now, mark, live, |mark| is_live(&self.probes, mark));
            return Some(probe);
        }
        None
    }

    /// Appends what is to be sent to this server next.
    fn send(&mut self, now: Instant, slot: u32, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let probe = self.probes.get_mut(slot)?;
        if probe.is_due {
            // Something may have come since the time for it came.
            probe.to_send = probe.what_to_ask();
            probe.ask(now);
        }
        let attempt = probe.attempts.saturating_sub(1);
        self.stats.retries += u64::from(attempt > 0);
        if probe.to_send.query {
            probe.to_send.query = false;
            match probe.target.question {
                Question::Bloodmasters => {
                    bloodmasters::Query { echo: self.secrets.echo(probe.serial, attempt) }.emit(out);
                }
                Question::Session { .. } => ClientDatagram::Query.emit(out),
            }
        } else {
            probe.to_send.players = false;
            probe.collected.get_or_insert_default().asked_players();
            ClientDatagram::QueryPlayers.emit(out);
        }
        let (to, serial, retry) = (probe.target.address, probe.serial, usize::from(attempt));
        if !probe.to_send.is_nothing() {
            self.ready.push_front(Mark { slot, stamp: serial });
        }
        // The deadline stands behind the last retry.
        if retry < self.timers.kinds() - 1 {
            self.last_number += 1;
            probe.armed = self.last_number;
            let mark = Mark { slot, stamp: self.last_number };
            let live = self.probes.len();
            self.timers.set(retry, now, mark, live, |mark| is_live(&self.probes, mark));
        }
        Some(to)
    }

    fn retry(&mut self, slot: u32) {
        let Some(probe) = self.probes.get_mut(slot) else { return };
        probe.is_due = true;
        let lacking = probe.what_is_lacking();
        self.make_ready(slot, lacking);
    }

    fn make_ready(&mut self, slot: u32, to_send: ToSend) {
        let Some(probe) = self.probes.get_mut(slot) else { return };
        let was_ready = !probe.to_send.is_nothing();
        probe.to_send.query |= to_send.query;
        probe.to_send.players |= to_send.players;
        if !was_ready && !probe.to_send.is_nothing() {
            self.ready.push_back(Mark { slot, stamp: probe.serial });
        }
    }
}

/// Being answered.
impl Prober {
    fn handle_bloodmasters(&mut self, now: Instant, slot: u32, bytes: &[u8], reply: Result<Reply<'_>, DecodeError>) {
        let Some(probe) = self.probes.get_mut(slot) else { return };
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                self.stats.malformed += 1;
                return probe.note_malformed(error);
            }
        };
        let asked = |&attempt: &u8| self.secrets.echo(probe.serial, attempt) == reply.echo();
        let Some(attempt) = (0..probe.attempts).rev().find(asked) else {
            self.stats.wrong_echo += 1;
            return;
        };
        if self.kept + Raw::size_of(bytes) > MAX_KEPT {
            self.stats.over_memory += 1;
            return;
        }
        probe.round_trip = Some(RoundTrip { time: probe.since(attempt, now), measured: Measured::Echo });
        let collected = probe.collected.get_or_insert_default();
        collected.raw.push(bytes);
        self.kept += collected.raw.size();
        self.finish(slot);
    }

    fn handle_session(&mut self, now: Instant, slot: u32, bytes: &[u8]) {
        let Some(probe) = self.probes.get_mut(slot) else { return };
        let datagram = match ServerDatagram::parse(bytes) {
            Ok(datagram) => datagram,
            Err(error) => {
                self.stats.malformed += 1;
                return probe.note_malformed(error);
            }
        };
        if self.kept + Raw::size_of(bytes) > MAX_KEPT {
            self.stats.over_memory += 1;
            return;
        }
        let collected = probe.collected.get_or_insert_default();
        if !collected.take(bytes, &datagram, self.secrets.tables) {
            self.stats.useless += 1;
            return;
        }
        self.kept += Raw::size_of(bytes);
        probe.measure_first(now);
        let lacking = probe.what_is_lacking();
        if lacking.is_nothing() {
            self.finish(slot);
        } else if matches!(datagram, ServerDatagram::Info(Info::Summary(_))) {
            // Only now it is known whether there is anybody to ask for.
            self.make_ready(slot, ToSend { query: false, players: lacking.players });
        }
    }

    /// This server is done, or its time is up.
    fn finish(&mut self, slot: u32) {
        let Some(probe) = self.remove(slot) else { return };
        let report = report(probe);
        let count = match &report.outcome {
            Outcome::Answered(answer) if answer.is_complete() => &mut self.stats.complete,
            Outcome::Answered(_) => &mut self.stats.partial,
            Outcome::Malformed(_) => &mut self.stats.nonsense,
            Outcome::TimedOut => &mut self.stats.timed_out,
            Outcome::Refused => &mut self.stats.refused,
        };
        *count += 1;
        self.kept += report.answer().map_or(0, |answer| answer.raw.size());
        self.events.push_back(report);
    }

    /// This server is asked no more, and whoever waited for that is next.
    fn remove(&mut self, slot: u32) -> Option<Probe> {
        let probe = self.probes.remove(slot)?;
        let (peer, kind) = (Peer::of(probe.target.address), probe.target.question.kind());
        if let Some(slots) = self.by_peer.get_mut(&peer) {
            *slots.of(kind) = None;
            if slots.is_empty() {
                self.by_peer.remove(&peer);
            }
        }
        if let Some(behind) = self.behind.get_mut(&(peer, kind)) {
            self.held -= behind.len();
            self.waiting.extend(behind.pop_front());
            self.held += behind.len();
            if behind.is_empty() {
                self.behind.remove(&(peer, kind));
            }
        }
        self.kept = self.kept.saturating_sub(probe.collected.as_ref().map_or(0, |collected| collected.raw.size()));
        // So that nobody is woken up for what is done.
        self.timers.tidy(|mark| is_live(&self.probes, mark));
        while self.ready.pop_front_if(|mark| !is_live(&self.probes, *mark)).is_some() {}
        Some(probe)
    }
}

impl Slots {
    fn of(&mut self, kind: Kind) -> &mut Option<u32> {
        match kind {
            Kind::Bloodmasters => &mut self.bloodmasters,
            Kind::Session => &mut self.session,
        }
    }

    fn is_empty(&self) -> bool {
        self.bloodmasters.is_none() && self.session.is_none()
    }
}

/// Whether a time still means something: it is the deadline of a probe, or its next retry.
fn is_live(probes: &Probes, mark: Mark) -> bool {
    probes.get(mark.slot).is_some_and(|probe| probe.serial == mark.stamp || probe.armed == mark.stamp)
}

fn report(mut probe: Probe) -> Report {
    let with_players = probe.wants_players();
    let outcome = match (probe.collected.take(), probe.round_trip, probe.last_error) {
        (Some(collected), Some(round_trip), _) => {
            let (info, missing) = match probe.target.question {
                Question::Bloodmasters => match collected.raw.bloodmasters() {
                    Some(reply) => {
                        let cut = reply.warning().map(Missing::From);
                        (ServerInfo::from_bloodmasters(&reply), cut.into_iter().collect())
                    }
                    // It was parsed before it was kept.
                    None => (ServerInfo::default(), Vec::new()),
                },
                Question::Session { .. } => {
                    let mut info = ServerInfo::from_session(collected.raw.session());
                    if with_players && collected.has_players() {
                        // Nobody is there, and that is known.
                        info.player_list.get_or_insert_default();
                    }
                    (info, collected.missing(with_players))
                }
            };
            Outcome::Answered(Box::new(Answer { info, missing, round_trip, raw: collected.raw }))
        }
        (_, _, Some(error)) => Outcome::Malformed(error),
        _ if probe.refusals.is_any() => Outcome::Refused,
        _ => Outcome::TimedOut,
    };
    Report { target: probe.target, outcome, retries: probe.attempts.saturating_sub(1), malformed: probe.malformed }
}

impl fmt::Debug for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prober")
            .field("waiting", &self.waiting())
            .field("in_flight", &self.in_flight())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}
