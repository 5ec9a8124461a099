//! What changed between two snapshots, as the bytes that are sent to listeners.
//!
//! First come the servers that went, then the others: one that moved is gone before it comes. Within both, the events of a
//! lobby stand together, so that whoever listens to one lobby gets slices of what the others get: every event is written
//! once, however many listen.

use super::{Cursor, Row, text};
use bytes::Bytes;
use rallypoint_lobby_proto::{PublicId, UnlistReason};
use rallypoint_wire::lobby::LobbyId;
use serde::Serialize;
use std::{io::Write, sync::Arc};

/// Something that happened to a server.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Listed(Arc<Row>),
    Changed(Arc<Row>),
    Unlisted(Arc<Row>, UnlistReason),
}

/// The events of one moment, as server-sent events.
#[derive(Debug)]
pub struct Batch {
    epoch: u32,
    /// The number of the first event.
    first: u64,
    bytes: Bytes,
    /// Of every event: whether it is about a server that is there, its lobby, and where it ends.
    events: Vec<(bool, LobbyId, usize)>,
}

/// The data of an event about a server that went.
#[derive(Serialize)]
struct GoneView<'a> {
    #[serde(serialize_with = "text")]
    id: PublicId,
    #[serde(serialize_with = "text")]
    lobby: LobbyId,
    name: &'a str,
    why: &'static str,
}

impl Change {
    /// What they are sorted by.
    fn key(&self) -> (bool, LobbyId, PublicId) {
        let row = self.row();
        (!matches!(self, Self::Unlisted(..)), row.lobby, row.id)
    }

    pub fn row(&self) -> &Arc<Row> {
        match self {
            Self::Listed(row) | Self::Changed(row) | Self::Unlisted(row, _) => row,
        }
    }
}

impl Batch {
    /// The events after `before`; `None` if nothing happened.
    pub(super) fn new(mut changes: Vec<Change>, before: Cursor) -> Option<Self> {
        changes.sort_unstable_by_key(Change::key);
        let (mut bytes, mut cursor) = (Vec::new(), before);
        let mut events = Vec::with_capacity(changes.len());
        for change in &changes {
            cursor.number += 1;
            write(change, cursor, &mut bytes);
            let (is_there, lobby, _) = change.key();
            events.push((is_there, lobby, bytes.len()));
        }
        let first = before.number + 1;
        (!events.is_empty()).then(|| Self { epoch: before.epoch, first, bytes: bytes.into(), events })
    }

    /// Its last event.
    #[must_use]
    pub fn last(&self) -> Cursor {
        Cursor { epoch: self.epoch, number: self.first + self.events.len() as u64 - 1 }
    }

    /// The event before its first.
    #[must_use]
    pub fn before(&self) -> Cursor {
        Cursor { epoch: self.epoch, number: self.first - 1 }
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// How many events it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether it has none, which does not happen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The events after this number, of all lobbies or of one, ready to be sent. May be empty.
    #[must_use]
    pub fn after(&self, number: u64, lobby: Option<LobbyId>) -> Vec<Bytes> {
        let skip = usize::try_from((number + 1).saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.len());
        let of_lobby = |is_there: bool, lobby: LobbyId| {
            let from = self.events.partition_point(|event| (event.0, event.1) < (is_there, lobby));
            let to = self.events.partition_point(|event| (event.0, event.1) <= (is_there, lobby));
            (from, to)
        };
        let ranges = match lobby {
            None => [(0, self.len()), (0, 0)],
            Some(lobby) => [of_lobby(false, lobby), of_lobby(true, lobby)],
        };
        let start = |event: usize| event.checked_sub(1).map_or(0, |before| self.events[before].2);
        let wanted = ranges.into_iter().map(|(from, to)| (from.max(skip), to)).filter(|(from, to)| from < to);
        wanted.map(|(from, to)| self.bytes.slice(start(from)..start(to))).collect()
    }
}

fn write(change: &Change, cursor: Cursor, out: &mut Vec<u8>) {
    let (name, row) = match change {
        Change::Listed(row) => ("listed", row),
        Change::Changed(row) => ("changed", row),
        Change::Unlisted(row, _) => ("unlisted", row),
    };
    // Writing into memory does not fail, and neither does JSON without maps of odd keys.
    let _ = write!(out, "id: {cursor}\nevent: {name}\ndata: ");
    match change {
        Change::Listed(_) | Change::Changed(_) => out.extend_from_slice(row.json()),
        Change::Unlisted(_, why) => {
            let view = GoneView { id: row.id, lobby: row.lobby, name: &row.name, why: why.code() };
            let _ = serde_json::to_writer(&mut *out, &view);
        }
    }
    out.extend_from_slice(b"\n\n");
}
