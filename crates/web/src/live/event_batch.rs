//! The changes between two snapshots, as the bytes that are sent to clients.
//!
//! Unlisted servers come first, then the others: a server that moves to another lobby is unlisted before it is listed. Within
//! both groups the events are sorted by lobby, so that a client that follows one lobby gets slices of the same bytes: every
//! event is serialized once, for any number of clients.

use super::Cursor;
use crate::json::{self, text};
use bytes::Bytes;
use rallypoint_lobby::TableChange;
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::LobbyId;
use serde::Serialize;
use std::io::Write;

/// The changes of one table update, as server-sent events.
#[derive(Debug)]
pub struct EventBatch {
    epoch: u32,
    /// The number of the first event.
    first: u64,
    bytes: Bytes,
    events: Vec<BatchEvent>,
}

/// An event of a batch.
#[derive(Debug)]
struct BatchEvent {
    /// Whether the server is in the list after the event.
    is_listed: bool,
    lobby: LobbyId,
    /// Position in the bytes of the batch at which the event ends.
    end: usize,
}

/// The data of an event about an unlisted server.
#[derive(Serialize)]
struct UnlistedView<'a> {
    #[serde(serialize_with = "text")]
    id: PublicId,
    #[serde(serialize_with = "text")]
    lobby: LobbyId,
    name: &'a str,
    why: &'static str,
}

/// The order of events: unlisted servers first, then by lobby.
fn sort_key(change: &TableChange) -> (bool, LobbyId, PublicId) {
    let record = change.record();
    (!matches!(change, TableChange::Unlisted(..)), record.lobby, record.id)
}

impl EventBatch {
    /// The events after `before`; `None` if there are no changes.
    pub(super) fn new(changes: &[TableChange], before: Cursor) -> Option<Self> {
        let mut changes: Vec<_> = changes.iter().collect();
        changes.sort_unstable_by_key(|change| sort_key(change));
        let mut bytes = Vec::new();
        let mut cursor = before;
        let mut events = Vec::with_capacity(changes.len());
        for change in changes {
            cursor.number += 1;
            write(change, cursor, &mut bytes);
            let (is_listed, lobby, _) = sort_key(change);
            events.push(BatchEvent { is_listed, lobby, end: bytes.len() });
        }
        let first = before.number + 1;
        (!events.is_empty()).then(|| Self { epoch: before.epoch, first, bytes: bytes.into(), events })
    }

    /// A batch of one event with these bytes.
    #[cfg(test)]
    pub(super) fn of_event(before: Cursor, lobby: LobbyId, bytes: Vec<u8>) -> Self {
        let events = vec![BatchEvent { is_listed: true, lobby, end: bytes.len() }];
        Self { epoch: before.epoch, first: before.number + 1, bytes: bytes.into(), events }
    }

    /// Whether nothing but the batch refers to its bytes.
    #[cfg(test)]
    pub(super) fn is_unshared(&self) -> bool {
        self.bytes.is_unique()
    }

    /// The last event of the batch.
    #[must_use]
    pub fn last(&self) -> Cursor {
        Cursor { epoch: self.epoch, number: self.first + self.events.len() as u64 - 1 }
    }

    /// The event before the first of the batch.
    #[must_use]
    pub fn before(&self) -> Cursor {
        Cursor { epoch: self.epoch, number: self.first - 1 }
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// The first events after this number, of all lobbies or of one, ready to send, with the number of the last event that they
    /// cover. They are at most `max_bytes` long, or a single event. `None` if the batch has no more of them.
    #[must_use]
    pub fn after(&self, number: u64, lobby: Option<LobbyId>, max_bytes: usize) -> Option<(Bytes, u64)> {
        let skip = usize::try_from((number + 1).saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.len());
        let of_lobby = |is_listed: bool, lobby: LobbyId| {
            let from = self.events.partition_point(|event| (event.is_listed, event.lobby) < (is_listed, lobby));
            let to = self.events.partition_point(|event| (event.is_listed, event.lobby) <= (is_listed, lobby));
            (from, to)
        };
        let ranges = match lobby {
            None => [(0, self.len()), (0, 0)],
            Some(lobby) => [of_lobby(false, lobby), of_lobby(true, lobby)],
        };
        let start = |event: usize| event.checked_sub(1).map_or(0, |before| self.events[before].end);
        let mut selected = ranges.into_iter().map(|(from, to)| (from.max(skip), to)).filter(|(from, to)| from < to);
        let (from, to) = selected.next()?;
        let max_end = start(from).saturating_add(max_bytes);
        let fitting = from + self.events[from..to].partition_point(|event| event.end <= max_end);
        let to = fitting.max(from + 1);
        Some((self.bytes.slice(start(from)..start(to)), self.first + to as u64 - 1))
    }
}

fn write(change: &TableChange, cursor: Cursor, out: &mut Vec<u8>) {
    let name = match change {
        TableChange::Listed(_) => "listed",
        TableChange::Changed(_) => "changed",
        TableChange::Unlisted(..) => "unlisted",
    };
    // Writing to memory does not fail, and neither does JSON without maps whose keys are not strings.
    let _ = write!(out, "id: {cursor}\nevent: {name}\ndata: ");
    match change {
        TableChange::Listed(record) | TableChange::Changed(record) => out.extend_from_slice(&json::server(record)),
        TableChange::Unlisted(record, reason) => {
            let view = UnlistedView { id: record.id, lobby: record.lobby, name: &record.name, why: reason.code() };
            let _ = serde_json::to_writer(&mut *out, &view);
        }
    }
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_lobby::{ServerTable, TableScope, WallClock};
    use rallypoint_lobby_proto::{Config, HashKeys, Registry};
    use rallypoint_wire::lobby::{Occupancy, Registration, ServerId, TableBuf, Transport};
    use std::time::{Duration, Instant, SystemTime};

    const BEFORE: Cursor = Cursor { epoch: 7, number: 0 };

    fn lobby(number: u8) -> LobbyId {
        LobbyId::from_bytes([number; 16])
    }

    /// Registers servers, given as number and lobby, and returns the events: one batch for each slice.
    fn batches(steps: &[&[(u8, u8)]]) -> Vec<EventBatch> {
        let mut now = Instant::now();
        let mut registry = Registry::new(Config::default(), HashKeys::default(), now).unwrap();
        let mut table = ServerTable::new(now, WallClock::new(now, SystemTime::now()), TableScope::All);
        let mut cursor = BEFORE;
        let mut batches = Vec::new();
        for (step, servers) in steps.iter().enumerate() {
            for (number, lobby_number) in *servers {
                let mut entries = TableBuf::new();
                entries.push(b"name", format!("server {step}").as_bytes()).unwrap();
                let id = ServerId::from_bytes([*number; 16]);
                let occupancy = Occupancy::default();
                let port = (1_000 + u16::from(*number)).try_into().unwrap();
                let mut datagram = Vec::new();
                Registration::new(id, lobby(*lobby_number), Transport::Udp, port, occupancy, entries.as_table())
                    .unwrap()
                    .emit(&mut datagram);
                registry.handle_datagram(now, ([192, 0, 2, *number], 5_000).into(), &datagram);
            }
            now += Duration::from_secs(1);
            registry.handle_timeout(now);
            registry.publish(now);
            table.handle_list(&registry.lists().snapshot());
            let batch = EventBatch::new(&table.handle_timeout(now).unwrap().changes, cursor).unwrap();
            assert_eq!(batch.before(), cursor, "the numbers are consecutive");
            cursor = batch.last();
            batches.push(batch);
        }
        batches
    }

    /// The events after a number, fetched in pieces of at most this length.
    fn pieces(batch: &EventBatch, mut after: u64, lobby: Option<LobbyId>, max_bytes: usize) -> Vec<Bytes> {
        std::iter::from_fn(|| {
            let (bytes, last) = batch.after(after, lobby, max_bytes)?;
            assert!(last > after && last <= batch.last().number);
            after = last;
            Some(bytes)
        })
        .collect()
    }

    fn text(batch: &EventBatch, after: u64, lobby: Option<LobbyId>) -> String {
        String::from_utf8(pieces(batch, after, lobby, usize::MAX).concat()).unwrap()
    }

    #[test]
    fn a_server_that_moves_is_unlisted_before_it_is_listed() {
        let batches = batches(&[&[(1, 9), (2, 1)], &[(1, 1), (2, 1)]]);
        let batch = &batches[1];
        let names: Vec<_> =
            text(batch, 0, None).lines().filter_map(|line| line.strip_prefix("event: ").map(str::to_owned)).collect();
        assert_eq!(names[0], "unlisted");
        assert_eq!((names.len(), batch.len()), (3, 3));
        let left = text(batch, 0, Some(lobby(9)));
        assert!(left.contains("event: unlisted") && left.contains("\"why\":\"moved\""), "{left}");
        let joined = text(batch, 0, Some(lobby(1)));
        assert!(joined.contains("event: listed") && joined.contains("event: changed"), "{joined}");
    }

    #[test]
    fn the_events_of_one_lobby_are_a_slice_of_all() {
        let servers: Vec<_> = (0..9).map(|number| (number, number % 3)).collect();
        let batches = batches(&[&servers]);
        let batch = &batches[0];
        let parts: Vec<_> = (0..3).map(|number| text(batch, 0, Some(lobby(number)))).collect();
        assert_eq!(parts.concat(), text(batch, 0, None));
        assert_eq!(batch.after(0, Some(lobby(9)), usize::MAX), None);
        let count = |events: String| events.matches("\n\n").count();
        for number in 0..=10u64 {
            assert_eq!(count(text(batch, number, None)), 9usize.saturating_sub(number as usize), "after {number}");
            let middle = (6usize.saturating_sub(number as usize)).min(3);
            assert_eq!(count(text(batch, number, Some(lobby(1)))), middle, "of the second lobby after {number}");
        }
        assert_eq!(batch.after(u64::MAX - 1, None, usize::MAX), None);
    }

    #[test]
    fn events_are_sent_in_pieces_of_limited_length() {
        let servers: Vec<_> = (0..9).map(|number| (number, number % 3)).collect();
        let moved: Vec<_> = (0..9).map(|number| (number, (number + 1) % 3)).collect();
        for batch in batches(&[&servers, &moved]) {
            for lobby in [None, Some(lobby(1))] {
                let all = text(&batch, 0, lobby);
                let longest = all.split_inclusive("\n\n").map(str::len).max().unwrap();
                for max_bytes in [1, longest, 2 * longest, usize::MAX] {
                    let pieces = pieces(&batch, 0, lobby, max_bytes);
                    assert_eq!(pieces.concat(), all.as_bytes());
                    assert!(pieces.iter().all(|piece| piece.len() <= max_bytes.max(longest)));
                }
            }
        }
    }

    #[test]
    fn every_event_has_an_id_a_name_and_one_line_of_json() {
        let batches = batches(&[&[(1, 1), (2, 1)], &[(1, 2), (2, 1)]]);
        for batch in &batches {
            let mut cursor = batch.before();
            for event in text(batch, 0, None).split("\n\n").filter(|event| !event.is_empty()) {
                let [id, name, data] = event.lines().collect::<Vec<_>>()[..] else { panic!("{event}") };
                cursor.number += 1;
                assert_eq!(id, format!("id: {cursor}"));
                assert!(["event: listed", "event: changed", "event: unlisted"].contains(&name), "{name}");
                let data: serde_json::Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                assert!(data["id"].is_string() && data["lobby"].is_string() && data["name"].is_string(), "{data}");
            }
            assert_eq!(cursor, batch.last());
        }
    }
}
