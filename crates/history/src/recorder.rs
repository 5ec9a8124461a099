//! Decides which samples and events are recorded, without a clock and without a file.

#[cfg(test)]
mod tests;

use crate::{
    HistoryEvent, Observation, Sample, Subject, SubjectLimits, UnixSeconds,
    clock::ClockState,
    event::EventKind,
    layout,
    observation::{ListChange, ListChangeKind, ObservedServer},
    row_batch::{KnownSubject, NewSubject, RowBatch},
    subject::{Key, TOTAL},
};
use rallypoint_wire::lobby::ListId;
use std::collections::{HashMap, hash_map::Entry};

/// Maximum numbers of events per observation, in total and per server: the servers decide how many there are.
const MAX_EVENTS: usize = 5_000;
const MAX_EVENTS_PER_SERVER: u8 = 8;

/// Maximum length of names and maps in characters.
const MAX_TEXT: usize = 80;

/// Turns observations into batches to write.
///
/// * In: [`handle_observation`](Self::handle_observation), once a minute. It returns everything there is to write.
/// * The number of subjects is bounded ([`SubjectLimits`]): the history of a server begins when it was listed for some minutes
///   in a row. When the maximum is reached, it replaces one that is not listed and was listed for less time than itself.
#[derive(Debug)]
pub(crate) struct Recorder {
    limits: SubjectLimits,
    /// How long a subject that is not listed is remembered, in seconds.
    keep: i64,
    tracked: HashMap<Subject, Tracked>,
    /// Subjects that are listed, but not for long enough.
    waiting: HashMap<Subject, WarmingUp>,
    /// Number of tracked lists and servers.
    counts: Counts,
    next_key: Key,
    clock: ClockState,
    /// Hour in which old subjects were last deleted.
    last_deletion_hour: i64,
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
struct WarmingUp {
    since: UnixSeconds,
    last: UnixSeconds,
    minutes: u32,
    /// The last sample.
    sample: Sample,
}

/// A waiting subject that has been listed for long enough.
struct Candidate {
    minutes: u32,
    since: UnixSeconds,
    sample: Sample,
    subject: Subject,
}

/// The list and texts of a server when its history begins.
#[derive(Default)]
struct Profile {
    list: Option<ListId>,
    name: String,
    map: String,
}

impl Recorder {
    /// A recorder that continues where the file ends.
    pub fn new(
        limits: SubjectLimits,
        keep_days: u32,
        known: Vec<KnownSubject>,
        next_key: Key,
        clock: ClockState,
    ) -> Self {
        let mut recorder = Self {
            limits,
            keep: i64::from(keep_days) * 86_400,
            tracked: HashMap::with_capacity(known.len()),
            waiting: HashMap::new(),
            counts: Counts::default(),
            next_key: next_key.max(TOTAL + 1),
            clock,
            last_deletion_hour: layout::hour(clock.last),
        };
        for KnownSubject { key, subject, last, minutes, peak, listed, name, map } in known {
            recorder.counts.add(&subject);
            recorder.tracked.insert(subject, Tracked { key, last, minutes, peak, listed, events: 0, name, map });
        }
        recorder
    }

    /// Number of servers with a history.
    pub fn servers(&self) -> usize {
        self.counts.servers
    }

    /// The last recorded minute.
    pub fn last(&self) -> UnixSeconds {
        self.clock.last
    }

    /// Records the servers that are listed now. Returns `None` if this minute, or a later one, has been recorded already:
    /// clocks are sometimes set back.
    pub fn handle_observation(&mut self, observation: &Observation) -> Option<RowBatch> {
        let now = observation.time - observation.time.rem_euclid(60);
        let wrong_after = self.clock.handle_minute(now)?.wrong_after;
        if wrong_after.is_some() {
            self.set_back(now);
        }
        let mut batch = RowBatch { time: now, clock: self.clock, wrong_after, ..RowBatch::default() };
        for change in &observation.changes {
            // The clock may have been wrong at that moment only.
            self.handle_change(&ListChange { time: change.time.min(observation.time), ..*change }, &mut batch);
        }
        let mut total = Sample::default();
        let mut lists = HashMap::<ListId, Sample>::new();
        let mut profiles = HashMap::new();
        observation.servers.for_each(&mut |server| {
            total = total.plus(server.sample());
            let list = lists.entry(server.list).or_default();
            *list = list.plus(server.sample());
            self.handle_server(now, &server, &mut batch, &mut profiles);
        });
        for (id, sample) in &lists {
            self.handle_sample(now, Subject::List(*id), *sample, &mut batch);
        }
        if let Entry::Vacant(vacant) = self.tracked.entry(Subject::Total) {
            vacant.insert(Tracked::new(TOTAL, Profile::default()));
            batch.new.push(NewSubject::of(TOTAL, Subject::Total, now, &Profile::default()));
        }
        self.handle_sample(now, Subject::Total, total, &mut batch);
        self.promote(now, &mut profiles, &mut batch);
        self.find_missing(now, &mut batch);
        if self.clock.is_trusted() && layout::hour(now) != self.last_deletion_hour {
            self.last_deletion_hour = layout::hour(now);
            self.delete_old(now, &mut batch);
        }
        batch.samples.sort_unstable_by_key(|(key, _)| *key);
        Some(batch)
    }

    fn handle_change(&mut self, change: &ListChange, batch: &mut RowBatch) {
        let Some(tracked) = self.tracked.get_mut(&Subject::Server(change.id)) else { return };
        match change.kind {
            ListChangeKind::Listed(list) if !tracked.listed => {
                tracked.push(change.time, EventKind::Listed(list), batch);
            }
            ListChangeKind::Unlisted(why) if tracked.listed => {
                tracked.push(change.time, EventKind::Unlisted(Some(why.code())), batch);
            }
            _ => {}
        }
    }

    fn handle_server(
        &mut self,
        now: UnixSeconds,
        server: &ObservedServer<'_>,
        batch: &mut RowBatch,
        profiles: &mut HashMap<Subject, Profile>,
    ) {
        let subject = Subject::Server(server.id);
        if let Some(tracked) = self.tracked.get_mut(&subject) {
            if !tracked.listed {
                tracked.push(now, EventKind::Listed(server.list), batch);
            }
            if tracked.name != truncated(server.name) {
                tracked.name = truncated(server.name).into();
                tracked.push(now, EventKind::Name(tracked.name.clone()), batch);
            }
            if tracked.map != truncated(server.map) {
                tracked.map = truncated(server.map).into();
                tracked.push(now, EventKind::Map(tracked.map.clone()), batch);
            }
        }
        if self.handle_sample(now, subject, server.sample(), batch) {
            let name = truncated(server.name).into();
            let map = truncated(server.map).into();
            profiles.insert(subject, Profile { list: Some(server.list), name, map });
        }
    }

    /// Records a sample of a subject with a history. Otherwise returns whether its history should begin.
    fn handle_sample(&mut self, now: UnixSeconds, subject: Subject, sample: Sample, batch: &mut RowBatch) -> bool {
        let Some(tracked) = self.tracked.get_mut(&subject) else {
            let new = WarmingUp { since: now, last: now, minutes: 0, sample };
            let waiting = self.waiting.entry(subject).or_insert(new);
            waiting.last = now;
            waiting.sample = sample;
            waiting.minutes = waiting.minutes.saturating_add(1);
            return waiting.minutes > self.limits.warm_up;
        };
        tracked.take(now, sample, batch);
        false
    }

    /// Begins the histories of subjects that were listed for long enough, longest first.
    fn promote(&mut self, now: UnixSeconds, profiles: &mut HashMap<Subject, Profile>, batch: &mut RowBatch) {
        self.waiting.retain(|_, waiting| waiting.last == now);
        let ready = self.waiting.iter().filter(|(_, waiting)| waiting.minutes > self.limits.warm_up);
        let ready = ready.map(|(&subject, &WarmingUp { since, minutes, sample, .. })| Candidate {
            minutes,
            since,
            sample,
            subject,
        });
        let mut ready: Vec<_> = ready.collect();
        ready.sort_unstable_by(|a, b| b.minutes.cmp(&a.minutes).then(a.subject.cmp(&b.subject)));
        let (servers, lists) = ready.into_iter().partition(|candidate| matches!(candidate.subject, Subject::Server(_)));
        self.promote_kind(now, Kind::Server, servers, profiles, batch);
        self.promote_kind(now, Kind::List, lists, profiles, batch);
    }

    fn promote_kind(
        &mut self,
        now: UnixSeconds,
        kind: Kind,
        candidates: Vec<Candidate>,
        profiles: &mut HashMap<Subject, Profile>,
        batch: &mut RowBatch,
    ) {
        let (limit, count) = match kind {
            Kind::Server => (self.limits.servers, self.counts.servers),
            Kind::List => (self.limits.lists, self.counts.lists),
        };
        let room = limit.saturating_sub(count);
        // No subject is deleted while the clock may be wrong.
        let is_short = candidates.len() > room && self.clock.is_trusted();
        let mut weaker = if is_short { self.weakest(now, kind, limit) } else { Vec::new() }.into_iter();
        for (index, candidate) in candidates.into_iter().enumerate() {
            if index >= room {
                let Some((_, weaker)) = weaker.next().filter(|(minutes, _)| *minutes < candidate.minutes) else {
                    return;
                };
                self.delete(&weaker, batch);
            }
            let profile = profiles.remove(&candidate.subject).unwrap_or_default();
            self.start(now, &candidate, profile, batch);
        }
    }

    /// Subjects that are not listed, by the number of minutes in which they were, fewest first. Their number is bounded, so
    /// that no more than twice the limit can be new in a day.
    fn weakest(&self, now: UnixSeconds, kind: Kind, limit: usize) -> Vec<(u32, Subject)> {
        let absent =
            self.tracked.iter().filter(|(subject, tracked)| Kind::of(subject) == Some(kind) && tracked.last != now);
        let mut absent: Vec<_> = absent.map(|(subject, tracked)| (tracked.minutes, *subject)).collect();
        absent.sort_unstable();
        absent.truncate((limit / 1_440).max(1));
        absent
    }

    fn start(&mut self, now: UnixSeconds, candidate: &Candidate, profile: Profile, batch: &mut RowBatch) {
        let Candidate { minutes, since, sample, subject } = *candidate;
        let key = self.next_key;
        self.next_key = self.next_key.saturating_add(1);
        batch.new.push(NewSubject::of(key, subject, since, &profile));
        let list = profile.list;
        let mut tracked = Tracked::new(key, profile);
        tracked.take(now, sample, batch);
        tracked.minutes = minutes;
        if let Some(list) = list {
            tracked.push(since, EventKind::Listed(list), batch);
        }
        self.waiting.remove(&subject);
        self.counts.add(&subject);
        self.tracked.insert(subject, tracked);
    }

    /// Records the removal of servers that were not among the changes.
    fn find_missing(&mut self, now: UnixSeconds, batch: &mut RowBatch) {
        for (subject, tracked) in &mut self.tracked {
            tracked.events = 0;
            if matches!(subject, Subject::Server(_)) && tracked.listed && tracked.last != now {
                tracked.push(now, EventKind::Unlisted(None), batch);
            }
        }
    }

    /// Deletes subjects that have no rows left.
    fn delete_old(&mut self, now: UnixSeconds, batch: &mut RowBatch) {
        let old = self.tracked.iter().filter(|(subject, _)| **subject != Subject::Total);
        let old = old.filter(|(_, tracked)| tracked.last < now - self.keep);
        for subject in old.map(|(subject, _)| *subject).collect::<Vec<_>>() {
            self.delete(&subject, batch);
        }
    }

    /// Handles a clock that was ahead: subjects that were listed later than now were listed just before.
    fn set_back(&mut self, now: UnixSeconds) {
        self.tracked.values_mut().for_each(|tracked| tracked.last = tracked.last.min(now - 60));
        self.waiting.values_mut().for_each(|waiting| waiting.since = waiting.since.min(now - 60));
    }

    fn delete(&mut self, subject: &Subject, batch: &mut RowBatch) {
        if let Some(tracked) = self.tracked.remove(subject) {
            self.counts.remove(subject);
            batch.events.retain(|(key, _)| *key != tracked.key);
            batch.deleted.push(tracked.key);
        }
    }
}

impl Tracked {
    fn new(key: Key, profile: Profile) -> Self {
        Self {
            key,
            last: UnixSeconds::MIN,
            minutes: 0,
            peak: 0,
            listed: false,
            events: 0,
            name: profile.name,
            map: profile.map,
        }
    }

    fn take(&mut self, now: UnixSeconds, sample: Sample, batch: &mut RowBatch) {
        // A server should occur once per observation; otherwise the first counts.
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

    /// Records an event. Events beyond the maximum are applied but not recorded.
    fn push(&mut self, time: UnixSeconds, kind: EventKind, batch: &mut RowBatch) {
        match kind {
            EventKind::Listed(_) => self.listed = true,
            EventKind::Unlisted(_) => self.listed = false,
            EventKind::Name(_) | EventKind::Map(_) => {}
        }
        if self.events < MAX_EVENTS_PER_SERVER && batch.events.len() < MAX_EVENTS {
            self.events += 1;
            batch.events.push((self.key, HistoryEvent { time, kind }));
        }
    }
}

impl NewSubject {
    fn of(key: Key, subject: Subject, first: UnixSeconds, profile: &Profile) -> Self {
        Self { key, subject, first, list: profile.list, name: profile.name.clone(), map: profile.map.clone() }
    }
}

/// The kinds of subjects whose number is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    List,
    Server,
}

impl Kind {
    fn of(subject: &Subject) -> Option<Self> {
        match subject {
            Subject::Total => None,
            Subject::List(_) => Some(Self::List),
            Subject::Server(_) => Some(Self::Server),
        }
    }
}

/// Numbers of tracked subjects by kind.
#[derive(Debug, Default)]
struct Counts {
    lists: usize,
    servers: usize,
}

impl Counts {
    fn add(&mut self, subject: &Subject) {
        if let Some(count) = self.count_mut(subject) {
            *count += 1;
        }
    }

    fn remove(&mut self, subject: &Subject) {
        if let Some(count) = self.count_mut(subject) {
            *count -= 1;
        }
    }

    fn count_mut(&mut self, subject: &Subject) -> Option<&mut usize> {
        match Kind::of(subject)? {
            Kind::List => Some(&mut self.lists),
            Kind::Server => Some(&mut self.servers),
        }
    }
}

/// A text without the characters beyond [`MAX_TEXT`].
fn truncated(text: &str) -> &str {
    text.char_indices().nth(MAX_TEXT).map_or(text, |(at, _)| &text[..at])
}
