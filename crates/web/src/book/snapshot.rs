//! All servers at one moment.

use super::{Cursor, Row};
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::LobbyId;
use std::{collections::BTreeMap, sync::Arc};

/// In how many parts the rows are kept: a change copies one of them.
pub(super) const PARTS: usize = 256;

/// Rows whose IDs begin with the same byte, in the order of their IDs. IDs are keyed hashes, so all parts are about as
/// long.
pub(super) type Part = Arc<Vec<Arc<Row>>>;

/// All servers at one moment. A reader holds on to it for as long as it needs.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) parts: Box<[Part]>,
    pub(super) totals: Totals,
    pub(super) lobbies: Arc<BTreeMap<LobbyId, Totals>>,
    pub(super) version: u64,
    pub(super) cursor: Cursor,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Servers.
    pub servers: usize,
    /// People who play.
    pub players: u64,
    /// Bots that play.
    pub bots: u64,
    /// Places for people.
    pub slots: u64,
}

impl Snapshot {
    /// How many servers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.totals.servers
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All servers, in the order of their IDs.
    pub fn rows(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    /// In how many parts the servers are kept, all about equally large.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The servers of a part; none if there is no such part.
    pub fn part(&self, number: usize) -> impl Iterator<Item = &Arc<Row>> {
        self.parts.get(number).into_iter().flat_map(|part| part.iter())
    }

    /// One server.
    #[must_use]
    pub fn row(&self, id: PublicId) -> Option<&Arc<Row>> {
        let part = &self.parts[part_of(id)];
        part.binary_search_by_key(&id, |row| row.id).ok().map(|place| &part[place])
    }

    /// All lobbies together.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The lobbies that have servers.
    #[must_use]
    pub fn lobbies(&self) -> &BTreeMap<LobbyId, Totals> {
        &self.lobbies
    }

    /// Grows with every change, also with those that are too small to be events.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The last event whose change is in here.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }
}

impl Totals {
    pub(super) fn add(&mut self, row: &Row) {
        self.servers += 1;
        self.players += u64::from(row.players);
        self.bots += u64::from(row.bots);
        self.slots += u64::from(row.slots);
    }

    pub(super) fn subtract(&mut self, row: &Row) {
        self.servers -= 1;
        self.players -= u64::from(row.players);
        self.bots -= u64::from(row.bots);
        self.slots -= u64::from(row.slots);
    }
}

/// The part that a row is in: by the first byte of its ID.
pub(super) fn part_of(id: PublicId) -> usize {
    usize::from(id.as_bytes()[0])
}
