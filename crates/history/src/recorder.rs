//! Decides what is written of what is listed, without a clock and without a file.

#[cfg(test)]
mod tests;

use crate::{
    Event, Limits, Sample, Subject, Sweep, UnixSeconds,
    batch::{Batch, Known, New},
    clock::Clock,
    event::What,
    layout,
    subject::{Key, TOTAL},
    sweep::{CameOrWent, Move, Seen},
};
use rallypoint_wire::lobby::LobbyId;
use std::collections::{HashMap, hash_map::Entry};

/// Most events of one sweep, and of one server in it: a stranger decides how many there are.
const EVENTS: usize = 5_000;
const EVENTS_EACH: u8 = 8;

/// Names and maps are cut to so many characters.
const TEXT: usize = 80;

/// Turns what is listed into what is to be written.
///
/// * In: [`handle_sweep`](Self::handle_sweep), once a minute, with what is listed then. What it returns is all there is
///   to write.
/// * Who has a history is bounded ([`Limits`]): a server gets one when it was listed for some minutes in a row. When there
///   is no more room, it takes the place of one that is gone and was listed for less time than itself.
#[derive(Debug)]
pub(crate) struct Recorder {
    limits: Limits,
    /// How long somebody who is not seen is remembered, in seconds.
    keep: i64,
    tracked: HashMap<Subject, Tracked>,
    waiting: HashMap<Subject, Waiting>,
    /// How many of the tracked are of each kind: the total, lobbies, servers.
    counts: [usize; 3],
    next_key: Key,
    clock: Clock,
    /// The hour in which somebody last looked for those who are to be forgotten.
    looked_for_old: i64,
}

#[derive(Debug)]
struct Tracked {
    key: Key,
    last: UnixSeconds,
    minutes: u32,
    peak: u32,
    listed: bool,
    events: u8,
    name: String,
    map: String,
}

#[derive(Debug)]
struct Waiting {
    since: UnixSeconds,
    last: UnixSeconds,
    minutes: u32,
    /// The last one.
    sample: Sample,
}

/// One of the waiting whose time has come.
struct Candidate {
    minutes: u32,
    since: UnixSeconds,
    sample: Sample,
    subject: Subject,
}

/// What a candidate is when it gets its history.
#[derive(Default)]
struct Face {
    lobby: Option<LobbyId>,
    name: String,
    map: String,
}

impl Recorder {
    /// A recorder that goes on where the file ends: with all its subjects and what it knows of the clock.
    pub fn new(limits: Limits, keep_days: u32, known: Vec<Known>, next_key: Key, clock: Clock) -> Self {
        let mut recorder = Self {
            limits,
            keep: i64::from(keep_days) * 86_400,
            tracked: HashMap::with_capacity(known.len()),
            waiting: HashMap::new(),
            counts: [0; 3],
            next_key: next_key.max(TOTAL + 1),
            clock,
            looked_for_old: layout::hour(clock.last),
        };
        for Known { key, subject, last, minutes, peak, listed, name, map } in known {
            recorder.counts[kind(&subject)] += 1;
            recorder.tracked.insert(subject, Tracked { key, last, minutes, peak, listed, events: 0, name, map });
        }
        recorder
    }

    /// How many servers have a history.
    pub fn servers(&self) -> usize {
        self.counts[SERVER]
    }

    /// The minute of the last sweep.
    pub fn last(&self) -> UnixSeconds {
        self.clock.last
    }

    /// Looks at what is listed now. There is nothing to write if this minute, or a later one, was written already: clocks
    /// are set back sometimes.
    pub fn handle_sweep(&mut self, sweep: &Sweep) -> Option<Batch> {
        let now = sweep.time - sweep.time.rem_euclid(60);
        let wrong_after = self.clock.handle_minute(now)?.wrong_after;
        if wrong_after.is_some() {
            self.set_back(now);
        }
        let mut batch = Batch { time: now, clock: self.clock, wrong_after, ..Batch::default() };
        for change in &sweep.moves {
            // The clock may have been wrong for that moment only.
            self.handle_move(&Move { time: change.time.min(sweep.time), ..*change }, &mut batch);
        }
        let (mut total, mut lobbies) = (Sample::default(), HashMap::<LobbyId, Sample>::new());
        let mut faces = HashMap::new();
        sweep.listed.each(&mut |seen| {
            total = total.plus(seen.sample());
            let lobby = lobbies.entry(seen.lobby).or_default();
            *lobby = lobby.plus(seen.sample());
            self.handle_seen(now, &seen, &mut batch, &mut faces);
        });
        for (id, sample) in &lobbies {
            self.handle_sample(now, Subject::Lobby(*id), *sample, &mut batch);
        }
        if let Entry::Vacant(vacant) = self.tracked.entry(Subject::Total) {
            vacant.insert(Tracked::new(TOTAL, Face::default()));
            batch.new.push(New::of(TOTAL, Subject::Total, now, &Face::default()));
        }
        self.handle_sample(now, Subject::Total, total, &mut batch);
        self.promote(now, &mut faces, &mut batch);
        self.find_missing(now, &mut batch);
        if self.clock.is_believed() && layout::hour(now) != self.looked_for_old {
            self.looked_for_old = layout::hour(now);
            self.forget_old(now, &mut batch);
        }
        batch.samples.sort_unstable_by_key(|(key, _)| *key);
        Some(batch)
    }

    fn handle_move(&mut self, change: &Move, batch: &mut Batch) {
        let Some(tracked) = self.tracked.get_mut(&Subject::Server(change.id)) else { return };
        match change.what {
            CameOrWent::Came(lobby) if !tracked.listed => tracked.push(change.time, What::Listed(lobby), batch),
            CameOrWent::Went(why) if tracked.listed => {
                tracked.push(change.time, What::Unlisted(Some(why.code())), batch);
            }
            _ => {}
        }
    }

    fn handle_seen(
        &mut self,
        now: UnixSeconds,
        seen: &Seen<'_>,
        batch: &mut Batch,
        faces: &mut HashMap<Subject, Face>,
    ) {
        let subject = Subject::Server(seen.id);
        if let Some(tracked) = self.tracked.get_mut(&subject) {
            if !tracked.listed {
                tracked.push(now, What::Listed(seen.lobby), batch);
            }
            if tracked.name != cut(seen.name) {
                tracked.name = cut(seen.name).into();
                tracked.push(now, What::Name(tracked.name.clone()), batch);
            }
            if tracked.map != cut(seen.map) {
                tracked.map = cut(seen.map).into();
                tracked.push(now, What::Map(tracked.map.clone()), batch);
            }
        }
        if self.handle_sample(now, subject, seen.sample(), batch) {
            let (name, map) = (cut(seen.name).into(), cut(seen.map).into());
            faces.insert(subject, Face { lobby: Some(seen.lobby), name, map });
        }
    }

    /// Takes a sample of somebody with a history; otherwise says whether the time has come to get one.
    fn handle_sample(&mut self, now: UnixSeconds, subject: Subject, sample: Sample, batch: &mut Batch) -> bool {
        let Some(tracked) = self.tracked.get_mut(&subject) else {
            let new = Waiting { since: now, last: now, minutes: 0, sample };
            let waiting = self.waiting.entry(subject).or_insert(new);
            (waiting.last, waiting.sample) = (now, sample);
            waiting.minutes = waiting.minutes.saturating_add(1);
            return waiting.minutes > self.limits.warm_up;
        };
        tracked.take(now, sample, batch);
        false
    }

    /// Gives a history to those who waited long enough: first to those who waited longest.
    fn promote(&mut self, now: UnixSeconds, faces: &mut HashMap<Subject, Face>, batch: &mut Batch) {
        self.waiting.retain(|_, waiting| waiting.last == now);
        let ready = self.waiting.iter().filter(|(_, waiting)| waiting.minutes > self.limits.warm_up);
        let ready = ready.map(|(&subject, &Waiting { since, minutes, sample, .. })| Candidate {
            minutes,
            since,
            sample,
            subject,
        });
        let mut ready: Vec<_> = ready.collect();
        ready.sort_unstable_by(|a, b| b.minutes.cmp(&a.minutes).then(a.subject.cmp(&b.subject)));
        let (servers, lobbies) = ready.into_iter().partition(|candidate| kind(&candidate.subject) == SERVER);
        self.promote_kind(now, SERVER, servers, faces, batch);
        self.promote_kind(now, LOBBY, lobbies, faces, batch);
    }

    fn promote_kind(
        &mut self,
        now: UnixSeconds,
        of: usize,
        candidates: Vec<Candidate>,
        faces: &mut HashMap<Subject, Face>,
        batch: &mut Batch,
    ) {
        let limit = if of == SERVER { self.limits.servers } else { self.limits.lobbies };
        let room = limit.saturating_sub(self.counts[of]);
        // Nobody is forgotten at a time that may be wrong.
        let is_short = candidates.len() > room && self.clock.is_believed();
        let mut weaker = if is_short { self.weakest(now, of, limit) } else { Vec::new() }.into_iter();
        for (index, candidate) in candidates.into_iter().enumerate() {
            if index >= room {
                let Some((_, weaker)) = weaker.next().filter(|(minutes, _)| *minutes < candidate.minutes) else {
                    return;
                };
                self.forget(&weaker, batch);
            }
            let face = faces.remove(&candidate.subject).unwrap_or_default();
            self.start(now, &candidate, face, batch);
        }
    }

    /// Those who are not there and were there least, and how long that was; not so many that more than twice the limit could
    /// be new in a day.
    fn weakest(&self, now: UnixSeconds, of: usize, limit: usize) -> Vec<(u32, Subject)> {
        let absent = self.tracked.iter().filter(|(subject, tracked)| kind(subject) == of && tracked.last != now);
        let mut absent: Vec<_> = absent.map(|(subject, tracked)| (tracked.minutes, *subject)).collect();
        absent.sort_unstable();
        absent.truncate((limit / 1_440).max(1));
        absent
    }

    fn start(&mut self, now: UnixSeconds, candidate: &Candidate, face: Face, batch: &mut Batch) {
        let Candidate { minutes, since, sample, subject } = *candidate;
        let key = self.next_key;
        self.next_key = self.next_key.saturating_add(1);
        batch.new.push(New::of(key, subject, since, &face));
        let lobby = face.lobby;
        let mut tracked = Tracked::new(key, face);
        tracked.take(now, sample, batch);
        tracked.minutes = minutes;
        if let Some(lobby) = lobby {
            tracked.push(since, What::Listed(lobby), batch);
        }
        self.waiting.remove(&subject);
        self.counts[kind(&subject)] += 1;
        self.tracked.insert(subject, tracked);
    }

    /// Those who left without anybody saying so.
    fn find_missing(&mut self, now: UnixSeconds, batch: &mut Batch) {
        for (subject, tracked) in &mut self.tracked {
            tracked.events = 0;
            if matches!(subject, Subject::Server(_)) && tracked.listed && tracked.last != now {
                tracked.push(now, What::Unlisted(None), batch);
            }
        }
    }

    /// Those whom nobody has seen for so long that nothing is left of them.
    fn forget_old(&mut self, now: UnixSeconds, batch: &mut Batch) {
        let old = self.tracked.iter().filter(|(subject, _)| **subject != Subject::Total);
        let old = old.filter(|(_, tracked)| tracked.last < now - self.keep);
        for subject in old.map(|(subject, _)| *subject).collect::<Vec<_>>() {
            self.forget(&subject, batch);
        }
    }

    /// The clock was wrong: whoever was seen later than now was seen just before.
    fn set_back(&mut self, now: UnixSeconds) {
        self.tracked.values_mut().for_each(|tracked| tracked.last = tracked.last.min(now - 60));
        self.waiting.values_mut().for_each(|waiting| waiting.since = waiting.since.min(now - 60));
    }

    fn forget(&mut self, subject: &Subject, batch: &mut Batch) {
        if let Some(tracked) = self.tracked.remove(subject) {
            self.counts[kind(subject)] -= 1;
            batch.events.retain(|(key, _)| *key != tracked.key);
            batch.forgotten.push(tracked.key);
        }
    }
}

impl Tracked {
    fn new(key: Key, face: Face) -> Self {
        Self {
            key,
            last: UnixSeconds::MIN,
            minutes: 0,
            peak: 0,
            listed: false,
            events: 0,
            name: face.name,
            map: face.map,
        }
    }

    fn take(&mut self, now: UnixSeconds, sample: Sample, batch: &mut Batch) {
        // Nobody is listed twice; if so, the first counts.
        if self.last == now {
            return;
        }
        self.last = now;
        self.minutes = self.minutes.saturating_add(1);
        batch.samples.push((self.key, sample));
        if sample.players > self.peak {
            self.peak = sample.players;
            batch.peaks.push((self.key, sample.players));
        }
    }

    /// Something happened. What is too much is not told, but known.
    fn push(&mut self, time: UnixSeconds, what: What, batch: &mut Batch) {
        match what {
            What::Listed(_) => self.listed = true,
            What::Unlisted(_) => self.listed = false,
            What::Name(_) | What::Map(_) => {}
        }
        if self.events < EVENTS_EACH && batch.events.len() < EVENTS {
            self.events += 1;
            batch.events.push((self.key, Event { time, what }));
        }
    }
}

impl New {
    fn of(key: Key, subject: Subject, first: UnixSeconds, face: &Face) -> Self {
        Self { key, subject, first, lobby: face.lobby, name: face.name.clone(), map: face.map.clone() }
    }
}

/// Indices of the counts.
const LOBBY: usize = 1;
const SERVER: usize = 2;

fn kind(subject: &Subject) -> usize {
    match subject {
        Subject::Total => 0,
        Subject::Lobby(_) => LOBBY,
        Subject::Server(_) => SERVER,
    }
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(TEXT).map_or(text, |(at, _)| &text[..at])
}
