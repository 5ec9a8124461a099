//! The servers as rows for reading.
//!
//! The book is told what happens in the lobby and what time it is. It publishes snapshots that any thread can read without
//! waiting, and batches of changes for those who listen. A change costs as much with ten servers as with ten thousand, or
//! nearly: rows are kept in parts, of which a change copies one.

mod batch;
mod cursor;
mod json;
mod row;
mod snapshot;
#[cfg(test)]
mod tests;

pub use crate::calendar::Calendar;
pub use batch::Batch;
pub use cursor::{Cursor, NotACursor};
pub use json::ServerView;
pub(crate) use json::text;
pub use row::{Row, Verified};
pub use snapshot::{Snapshot, Totals};

use crate::Told;
use batch::Change;
use rallypoint_lobby_proto::{Event, ListSnapshot, ListedServer, PublicId, UnlistReason};
use rallypoint_wire::lobby::LobbyId;
use snapshot::{PARTS, Part, part_of};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// Snapshots are at least so far apart: however much changes, listeners are told ten times per second.
pub const PUBLISH_EVERY: Duration = Duration::from_millis(100);

/// A latency is not an event, and the lobby changes it in place; nor is a clock that was set. One part of the rows is looked at
/// this often, so that each row is looked at once a minute.
const REVIEW_EVERY: Duration = Duration::from_millis(60_000 / PARTS as u64);

/// What is told of so many servers that are not here (yet) is kept.
const EARLY: usize = 1_024;

/// The servers as rows.
///
/// * In: [`handle_directory`](Self::handle_directory) to begin with and whenever events were missed,
///   [`handle_event`](Self::handle_event), [`handle_told`](Self::handle_told), and now and then
///   [`handle_wall_clock`](Self::handle_wall_clock).
/// * Out: [`handle_timeout`](Self::handle_timeout) gives what is to be published, at the time that
///   [`poll_timeout`](Self::poll_timeout) names.
#[derive(Debug)]
pub struct Book {
    calendar: Calendar,
    parts: Box<[Part]>,
    totals: Totals,
    lobbies: Arc<BTreeMap<LobbyId, Totals>>,
    published: Arc<Snapshot>,
    /// Servers that are not as they were published; with the reason for those that went.
    touched: HashMap<PublicId, Option<UnlistReason>>,
    /// Something changed that is no event.
    is_stale: bool,
    /// What was found by asking servers. It outlives changes of the registration.
    told: HashMap<PublicId, Told>,
    publish_not_before: Instant,
    review_at: Instant,
    review_part: usize,
}

/// What there is to publish.
#[derive(Clone, Debug)]
pub struct Published {
    /// All servers.
    pub snapshot: Arc<Snapshot>,
    /// What changed since the last one, if it is worth an event.
    pub batch: Option<Arc<Batch>>,
    /// The servers that came since.
    pub listed: Vec<PublicId>,
}

impl Book {
    /// An empty book. The epoch tells the events of this program from those of one before: it should be random.
    #[must_use]
    pub fn new(now: Instant, calendar: Calendar, epoch: u32) -> Self {
        let parts: Box<[Part]> = (0..PARTS).map(|_| Part::default()).collect();
        let cursor = Cursor { epoch, number: 0 };
        let (totals, lobbies) = (Totals::default(), Arc::default());
        let published = Snapshot { parts: parts.clone(), totals, lobbies: Arc::clone(&lobbies), version: 0, cursor };
        Self {
            calendar,
            parts,
            totals,
            lobbies,
            published: Arc::new(published),
            touched: HashMap::new(),
            is_stale: false,
            told: HashMap::new(),
            publish_not_before: now,
            review_at: now + REVIEW_EVERY,
            review_part: 0,
        }
    }

    /// The last snapshot.
    #[must_use]
    pub fn published(&self) -> &Arc<Snapshot> {
        &self.published
    }

    /// Something happened in the lobby.
    pub fn handle_event(&mut self, event: &Event) {
        match event {
            Event::Listed(listing) | Event::Changed(listing) => self.put(listing),
            Event::Unlisted(listing, why) => self.remove(listing.public_id(), *why),
            Event::Check(_) => {}
        }
    }

    /// The whole list: what is not in it has gone.
    pub fn handle_directory(&mut self, directory: &ListSnapshot) {
        let mut listed = HashSet::with_capacity(self.totals.servers);
        for listing in directory.lobbies().flat_map(|(_, list)| list.servers()) {
            listed.insert(listing.public_id());
            self.put(listing);
        }
        let gone: Vec<_> = self.rows().map(|row| row.id).filter(|id| !listed.contains(id)).collect();
        for id in gone {
            // Nobody knows why any more; most go like this.
            self.remove(id, UnlistReason::Expired);
        }
    }

    /// What a server said when it was asked. It may be told before the server is listed here.
    pub fn handle_told(&mut self, told: Told) {
        let id = told.id;
        let Some(row) = self.row(id).cloned() else {
            if self.told.len() < self.totals.servers + EARLY {
                self.told.insert(id, told);
            }
            return;
        };
        let new = row.with_told(&told);
        self.told.insert(id, told);
        // Who plays is on the server's own page; the list changes only with the verdict.
        let is_event = (row.verified, row.differences) != (new.verified, new.differences);
        if is_event || row.told != new.told {
            self.set(Arc::new(new));
            self.is_stale = true;
        }
        if is_event {
            self.touched.entry(id).or_default();
        }
    }

    /// What time of day it is: that can be set, for instance some time after a machine without a clock of its own has begun.
    pub fn handle_wall_clock(&mut self, now: Instant, wall: SystemTime) {
        self.calendar.set(now, wall);
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        if self.has_news() { self.publish_not_before.min(self.review_at) } else { self.review_at }
    }

    /// Lets time pass. Gives a new snapshot if it is time for one.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Published> {
        if self.review_at <= now {
            self.review_at = now + REVIEW_EVERY;
            self.review();
        }
        (self.has_news() && self.publish_not_before <= now).then(|| self.publish(now))
    }

    fn has_news(&self) -> bool {
        self.is_stale || !self.touched.is_empty()
    }

    fn publish(&mut self, now: Instant) -> Published {
        self.publish_not_before = now + PUBLISH_EVERY;
        self.is_stale = false;
        let touched = std::mem::take(&mut self.touched);
        let changes: Vec<_> = touched.into_iter().flat_map(|(id, gone)| self.changes_of(id, gone)).collect();
        let came = |change: &Change| matches!(change, Change::Listed(_)).then(|| change.row().id);
        let listed = changes.iter().filter_map(came).collect();
        let before = self.published.cursor;
        let batch = Batch::new(changes, before).map(Arc::new);
        self.published = Arc::new(Snapshot {
            parts: self.parts.clone(),
            totals: self.totals,
            lobbies: Arc::clone(&self.lobbies),
            version: self.published.version + 1,
            cursor: batch.as_ref().map_or(before, |batch| batch.last()),
        });
        Published { snapshot: Arc::clone(&self.published), batch, listed }
    }

    /// What happened to a server since the last snapshot, however often something did.
    fn changes_of(&self, id: PublicId, gone: Option<UnlistReason>) -> impl Iterator<Item = Change> + use<> {
        let (before, after) = (self.published.row(id).cloned(), self.row(id).cloned());
        let changes = match (before, after) {
            (None, None) => [None, None],
            (None, Some(row)) => [Some(Change::Listed(row)), None],
            (Some(row), None) => [Some(Change::Unlisted(row, gone.unwrap_or(UnlistReason::Expired))), None],
            (Some(before), Some(row)) if before.lobby != row.lobby => {
                [Some(Change::Unlisted(before, UnlistReason::Moved)), Some(Change::Listed(row))]
            }
            // It went and came back as it was.
            (Some(before), Some(row)) if before.json() == row.json() => [None, None],
            (Some(_), Some(row)) => [Some(Change::Changed(row)), None],
        };
        changes.into_iter().flatten()
    }

    fn put(&mut self, listing: &Arc<ListedServer>) {
        let id = listing.public_id();
        let is_known = |row: &Arc<Row>| row.listing.as_ref().is_some_and(|known| Arc::ptr_eq(known, listing));
        if self.row(id).is_some_and(is_known) {
            return;
        }
        let mut row = Row::of(listing, &self.calendar);
        if let Some(told) = self.told.get(&id) {
            row = row.with_told(told);
        }
        self.set(Arc::new(row));
        self.touched.insert(id, None);
    }

    fn set(&mut self, row: Arc<Row>) {
        let lobbies = Arc::make_mut(&mut self.lobbies);
        lobbies.entry(row.lobby).or_default().add(&row);
        self.totals.add(&row);
        let part = Arc::make_mut(&mut self.parts[part_of(row.id)]);
        match part.binary_search_by_key(&row.id, |row| row.id) {
            Ok(place) => {
                let old = std::mem::replace(&mut part[place], row);
                self.forget(&old);
            }
            Err(place) => part.insert(place, row),
        }
    }

    fn remove(&mut self, id: PublicId, why: UnlistReason) {
        let part = &mut self.parts[part_of(id)];
        let Ok(place) = part.binary_search_by_key(&id, |row| row.id) else { return };
        let old = Arc::make_mut(part).remove(place);
        self.forget(&old);
        self.told.remove(&id);
        self.touched.insert(id, Some(why));
    }

    /// A row is no longer counted.
    fn forget(&mut self, row: &Row) {
        self.totals.subtract(row);
        let lobbies = Arc::make_mut(&mut self.lobbies);
        if let Some(totals) = lobbies.get_mut(&row.lobby) {
            totals.subtract(row);
            if totals.servers == 0 {
                lobbies.remove(&row.lobby);
            }
        }
    }

    fn review(&mut self) {
        let part = self.review_part;
        self.review_part = (part + 1) % PARTS;
        let changed: Vec<_> = self.parts[part].iter().filter_map(|row| row.reviewed(&self.calendar)).collect();
        for row in changed {
            self.set(Arc::new(row));
            self.is_stale = true;
        }
    }

    fn rows(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    fn row(&self, id: PublicId) -> Option<&Arc<Row>> {
        let part = &self.parts[part_of(id)];
        part.binary_search_by_key(&id, |row| row.id).ok().map(|place| &part[place])
    }
}
