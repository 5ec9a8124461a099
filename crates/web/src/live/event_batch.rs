//! The changes between two snapshots, as the bytes that are sent to clients.
//!
//! Unlisted servers come first, then the others: a server that moves to another list is unlisted before it is listed. Within
//! both groups the events are sorted by list, so that a client that follows one list gets slices of the same bytes: every
//! event is serialized once, for any number of clients. A changed server is written with the fields that have changed.

use super::{
    Cursor,
    id_filter::{IdFilter, number},
};
use crate::json::{self, text};
use bytes::Bytes;
use rallypoint_lobby::{TableChange, TableSnapshot};
use rallypoint_lobby_proto::PublicId;
use rallypoint_wire::lobby::ListId;
use serde::Serialize;
use std::io::Write;

/// The changes of one table update, as server-sent events.
#[derive(Debug)]
pub struct EventBatch {
    epoch: u32,
    /// The number of the first event.
    first: u64,
    bytes: Bytes,
    /// Number of events.
    count: usize,
    /// All of them; none if the batch is too large to be kept.
    events: Vec<BatchEvent>,
    /// The events by the ID of their server, for clients that follow some servers only.
    by_id: Vec<(u128, u32)>,
    /// Number of servers that were listed.
    listed: u64,
}

/// An event of a batch.
#[derive(Debug)]
struct BatchEvent {
    /// Whether the server is in the list after the event.
    is_listed: bool,
    list: ListId,
    /// Position in the bytes of the batch at which the event ends.
    end: usize,
}

/// The data of an event about an unlisted server.
#[derive(Serialize)]
struct UnlistedView<'a> {
    #[serde(serialize_with = "text")]
    id: PublicId,
    #[serde(serialize_with = "text")]
    list: ListId,
    name: &'a str,
    why: &'static str,
}

/// The order of events: unlisted servers first, then by list.
fn sort_key(change: &TableChange) -> (bool, ListId, PublicId) {
    let record = change.record();
    (!matches!(change, TableChange::Unlisted(..)), record.list, record.id)
}

impl EventBatch {
    /// The events after `before`, which lead from the snapshot `previous` to the next; `None` if there are no changes. If they are
    /// longer than `max_bytes`, the batch has none of them.
    pub(super) fn new(
        changes: &[TableChange],
        previous: &TableSnapshot,
        before: Cursor,
        max_bytes: usize,
    ) -> Option<Self> {
        let count = changes.len();
        let listed = changes.iter().filter(|change| matches!(change, TableChange::Listed(_))).count() as u64;
        let mut changes: Vec<_> = changes.iter().collect();
        changes.sort_unstable_by_key(|change| sort_key(change));
        let mut bytes = Vec::new();
        let mut cursor = before;
        let mut events = Vec::with_capacity(changes.len());
        let mut by_id = Vec::with_capacity(changes.len());
        for change in changes {
            cursor.number += 1;
            write(change, previous, cursor, &mut bytes);
            let (is_listed, list, id) = sort_key(change);
            by_id.push((number(id), events.len() as u32));
            events.push(BatchEvent { is_listed, list, end: bytes.len() });
            if bytes.len() > max_bytes {
                bytes = Vec::new();
                events = Vec::new();
                by_id = Vec::new();
                break;
            }
        }
        by_id.sort_unstable();
        // Batches are kept for a while, and growing has reserved up to twice what they need.
        bytes.shrink_to_fit();
        let first = before.number + 1;
        (count > 0).then(|| Self { epoch: before.epoch, first, bytes: bytes.into(), count, events, by_id, listed })
    }

    /// A batch of one event with these bytes.
    #[cfg(test)]
    pub(super) fn of_event(before: Cursor, list: ListId, bytes: Vec<u8>) -> Self {
        let events = vec![BatchEvent { is_listed: true, list, end: bytes.len() }];
        Self {
            epoch: before.epoch,
            first: before.number + 1,
            bytes: bytes.into(),
            count: 1,
            events,
            by_id: vec![(0, 0)],
            listed: 1,
        }
    }

    /// A batch that was too large, of this number of events.
    #[cfg(test)]
    pub(super) fn of_lost_events(before: Cursor, count: usize) -> Self {
        let first = before.number + 1;
        let (events, by_id) = (Vec::new(), Vec::new());
        Self { epoch: before.epoch, first, bytes: Bytes::new(), count, events, by_id, listed: 0 }
    }

    /// Whether nothing but the batch refers to its bytes.
    #[cfg(test)]
    pub(super) fn is_unshared(&self) -> bool {
        self.bytes.is_unique()
    }

    /// The last event of the batch.
    #[must_use]
    pub fn last(&self) -> Cursor {
        Cursor { epoch: self.epoch, number: self.first + self.count as u64 - 1 }
    }

    /// The event before the first of the batch.
    #[must_use]
    pub fn before(&self) -> Cursor {
        Cursor { epoch: self.epoch, number: self.first - 1 }
    }

    /// Whether the batch was too large, and has none of its events.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.events.len() < self.count
    }

    /// Estimated memory use in bytes. Most batches have one event, whose text is often the smaller part of it.
    #[must_use]
    pub fn memory(&self) -> usize {
        /// Four allocations, and a place in a queue that may be half empty.
        const OVERHEAD: usize = 2 * size_of::<EventBatch>() + 128;
        let per_event = size_of::<BatchEvent>() + size_of::<(u128, u32)>();
        OVERHEAD + self.bytes.len() + per_event * self.events.len()
    }

    /// Number of servers that were listed.
    #[must_use]
    pub fn listed(&self) -> u64 {
        self.listed
    }

    /// The events of some servers after this number, copied together, with the number of the last event that they cover. They
    /// are at most `max_bytes` long, or a single event. `None` if the batch has no more of them.
    #[must_use]
    pub fn of_servers_after(
        &self,
        number: u64,
        ids: &IdFilter,
        list: Option<ListId>,
        max_bytes: usize,
    ) -> Option<(Bytes, u64)> {
        let skip = self.index_after(number);
        let mut wanted = self.find(ids);
        wanted.retain(|index| *index >= skip && list.is_none_or(|list| list == self.events[*index].list));
        let mut out = Vec::new();
        let mut last = None;
        for index in wanted {
            let event = &self.bytes[self.start(index)..self.events[index].end];
            if last.is_some() && out.len() + event.len() > max_bytes {
                break;
            }
            out.extend_from_slice(event);
            last = Some(self.first + index as u64);
        }
        last.map(|last| (out.into(), last))
    }

    /// The events of these servers, in order. The shorter of both lists is looked up in the other.
    fn find(&self, ids: &IdFilter) -> Vec<usize> {
        let mut found: Vec<usize> = if self.len() <= ids.len() {
            let wanted = self.by_id.iter().filter(|(id, _)| ids.contains(PublicId::from_bytes(id.to_be_bytes())));
            wanted.map(|(_, index)| *index as usize).collect()
        } else {
            let range = |(first, last): (u128, u128)| {
                let from = self.by_id.partition_point(|(id, _)| *id < first);
                self.by_id[from..].iter().take_while(move |(id, _)| *id <= last)
            };
            ids.ranges().flat_map(range).map(|(_, index)| *index as usize).collect()
        };
        found.sort_unstable();
        found
    }

    /// Index of the first event after this number.
    fn index_after(&self, number: u64) -> usize {
        usize::try_from((number + 1).saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.len())
    }

    /// Position in the bytes at which an event starts.
    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.events[before].end)
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// The first events after this number, of all lists or of one, ready to send, with the number of the last event that they
    /// cover. They are at most `max_bytes` long, or a single event. `None` if the batch has no more of them.
    #[must_use]
    pub fn after(&self, number: u64, list: Option<ListId>, max_bytes: usize) -> Option<(Bytes, u64)> {
        let skip = self.index_after(number);
        let of_list = |is_listed: bool, list: ListId| {
            let from = self.events.partition_point(|event| (event.is_listed, event.list) < (is_listed, list));
            let to = self.events.partition_point(|event| (event.is_listed, event.list) <= (is_listed, list));
            (from, to)
        };
        let ranges = match list {
            None => [(0, self.len()), (0, 0)],
            Some(list) => [of_list(false, list), of_list(true, list)],
        };
        let mut selected = ranges.into_iter().map(|(from, to)| (from.max(skip), to)).filter(|(from, to)| from < to);
        let (from, to) = selected.next()?;
        let max_end = self.start(from).saturating_add(max_bytes);
        let fitting = from + self.events[from..to].partition_point(|event| event.end <= max_end);
        let to = fitting.max(from + 1);
        Some((self.bytes.slice(self.start(from)..self.start(to)), self.first + to as u64 - 1))
    }
}

fn write(change: &TableChange, previous: &TableSnapshot, cursor: Cursor, out: &mut Vec<u8>) {
    let name = match change {
        TableChange::Listed(_) => "listed",
        TableChange::Changed(_) => "changed",
        TableChange::Unlisted(..) => "unlisted",
    };
    // Writing to memory does not fail, and neither does JSON without maps whose keys are not strings.
    let _ = write!(out, "id: {cursor}\nevent: {name}\ndata: ");
    match change {
        TableChange::Listed(record) => out.extend_from_slice(&json::server(record)),
        TableChange::Changed(record) => match previous.record(record.id) {
            Some(before) => json::write_changes(before, record, out),
            None => out.extend_from_slice(&json::server(record)),
        },
        TableChange::Unlisted(record, reason) => {
            let view = UnlistedView { id: record.id, list: record.list, name: &record.name, why: reason.code() };
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
    use std::{
        sync::Arc,
        time::{Duration, Instant, SystemTime},
    };

    const BEFORE: Cursor = Cursor { epoch: 7, number: 0 };

    fn list(number: u8) -> ListId {
        ListId::from_bytes([number; 16])
    }

    /// Registers servers, given as number and list, and returns the events: one batch for each slice.
    fn batches(steps: &[&[(u8, u8)]]) -> Vec<EventBatch> {
        let mut now = Instant::now();
        let mut registry = Registry::new(Config::default(), HashKeys::default(), now).unwrap();
        let mut table = ServerTable::new(now, WallClock::new(now, SystemTime::now()), TableScope::All);
        let mut cursor = BEFORE;
        let mut previous = Arc::new(TableSnapshot::empty());
        let mut batches = Vec::new();
        for (step, servers) in steps.iter().enumerate() {
            for (number, list_number) in *servers {
                let mut entries = TableBuf::new();
                entries.push(b"name", format!("server {step}").as_bytes()).unwrap();
                let id = ServerId::from_bytes([*number; 16]);
                let occupancy = Occupancy::default();
                let port = (1_000 + u16::from(*number)).try_into().unwrap();
                let mut datagram = Vec::new();
                Registration::new(id, list(*list_number), Transport::Udp, port, occupancy, entries.as_table())
                    .unwrap()
                    .emit(&mut datagram);
                registry.handle_datagram(now, ([192, 0, 2, *number], 5_000).into(), &datagram);
            }
            now += Duration::from_secs(1);
            registry.handle_timeout(now);
            registry.publish(now);
            table.handle_list(&registry.lists().snapshot());
            let update = table.handle_timeout(now).unwrap();
            let batch = EventBatch::new(&update.changes, &previous, cursor, usize::MAX).unwrap();
            previous = update.snapshot;
            assert_eq!(batch.before(), cursor, "the numbers are consecutive");
            cursor = batch.last();
            batches.push(batch);
        }
        batches
    }

    /// The events after a number, fetched in pieces of at most this length.
    fn pieces(batch: &EventBatch, mut after: u64, list: Option<ListId>, max_bytes: usize) -> Vec<Bytes> {
        std::iter::from_fn(|| {
            let (bytes, last) = batch.after(after, list, max_bytes)?;
            assert!(last > after && last <= batch.last().number);
            after = last;
            Some(bytes)
        })
        .collect()
    }

    fn text(batch: &EventBatch, after: u64, list: Option<ListId>) -> String {
        String::from_utf8(pieces(batch, after, list, usize::MAX).concat()).unwrap()
    }

    #[test]
    fn a_server_that_moves_is_unlisted_before_it_is_listed() {
        let batches = batches(&[&[(1, 9), (2, 1)], &[(1, 1), (2, 1)]]);
        let batch = &batches[1];
        let names: Vec<_> =
            text(batch, 0, None).lines().filter_map(|line| line.strip_prefix("event: ").map(str::to_owned)).collect();
        assert_eq!(names[0], "unlisted");
        assert_eq!((names.len(), batch.len()), (3, 3));
        let left = text(batch, 0, Some(list(9)));
        assert!(left.contains("event: unlisted") && left.contains("\"why\":\"moved\""), "{left}");
        let joined = text(batch, 0, Some(list(1)));
        assert!(joined.contains("event: listed") && joined.contains("event: changed"), "{joined}");
    }

    #[test]
    fn the_events_of_one_list_are_a_slice_of_all() {
        let servers: Vec<_> = (0..9).map(|number| (number, number % 3)).collect();
        let batches = batches(&[&servers]);
        let batch = &batches[0];
        let parts: Vec<_> = (0..3).map(|number| text(batch, 0, Some(list(number)))).collect();
        assert_eq!(parts.concat(), text(batch, 0, None));
        assert_eq!(batch.after(0, Some(list(9)), usize::MAX), None);
        let count = |events: String| events.matches("\n\n").count();
        for number in 0..=10u64 {
            assert_eq!(count(text(batch, number, None)), 9usize.saturating_sub(number as usize), "after {number}");
            let middle = (6usize.saturating_sub(number as usize)).min(3);
            assert_eq!(count(text(batch, number, Some(list(1)))), middle, "of the second list after {number}");
        }
        assert_eq!(batch.after(u64::MAX - 1, None, usize::MAX), None);
    }

    #[test]
    fn events_are_sent_in_pieces_of_limited_length() {
        let servers: Vec<_> = (0..9).map(|number| (number, number % 3)).collect();
        let moved: Vec<_> = (0..9).map(|number| (number, (number + 1) % 3)).collect();
        for batch in batches(&[&servers, &moved]) {
            for list in [None, Some(list(1))] {
                let all = text(&batch, 0, list);
                let longest = all.split_inclusive("\n\n").map(str::len).max().unwrap();
                for max_bytes in [1, longest, 2 * longest, usize::MAX] {
                    let pieces = pieces(&batch, 0, list, max_bytes);
                    assert_eq!(pieces.concat(), all.as_bytes());
                    assert!(pieces.iter().all(|piece| piece.len() <= max_bytes.max(longest)));
                }
            }
        }
    }

    #[test]
    fn a_client_of_some_servers_receives_their_events_only() {
        let servers: Vec<_> = (1..=60).map(|number| (number, 1 + number % 2)).collect();
        for (batch_size, batch) in
            [(60, batches(&[&servers]).pop().unwrap()), (2, batches(&[&servers[..2]]).pop().unwrap())]
        {
            assert_eq!((batch.len(), batch.listed()), (batch_size, batch_size as u64));
            let events: Vec<serde_json::Value> = text(&batch, 0, None)
                .lines()
                .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
                .collect();
            let id = |index: usize| events[index]["id"].as_str().unwrap();
            let ids = IdFilter::parse(&format!("{},{}", id(1), &id(0)[..8])).unwrap();
            let (both, last) = batch.of_servers_after(0, &ids, None, usize::MAX).unwrap();
            let both = String::from_utf8_lossy(&both).into_owned();
            assert!(both.contains(id(0)) && both.contains(id(1)) && both.matches("data: ").count() == 2, "{both}");
            assert_eq!(last, 2);
            assert_eq!(batch.of_servers_after(last, &ids, None, usize::MAX), None);
            let (first, last) = batch.of_servers_after(0, &ids, None, 1).unwrap();
            assert_eq!((last, first.len() < both.len()), (1, true), "one event at a time");
            let elsewhere = Some(list(9));
            assert_eq!(batch.of_servers_after(0, &ids, elsewhere, usize::MAX), None);
        }
    }

    #[test]
    fn a_changed_server_is_written_with_the_fields_that_changed() {
        let batches = batches(&[&[(1, 1)], &[(1, 1)]]);
        let changed = text(&batches[1], 0, None);
        let data = changed.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        let keys: Vec<_> = data.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((keys, &data["name"]), (vec!["id", "list", "name", "raw"], &"server 1".into()));
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
                assert!(data["id"].is_string() && data["list"].is_string() && data["name"].is_string(), "{data}");
            }
            assert_eq!(cursor, batch.last());
        }
    }
}
