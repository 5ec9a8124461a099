//! Following the log, and the states of servers that it shows.

use super::{ClusterNode, SHORT_TICK_INTERVAL, StoreDefect, Update};
use crate::{
    record::{LogRecord, RecordKind},
    request::{RequestKind, Ticked},
};
use rallypoint_lobby_proto::{ApplyMode, PublicId, Removal};
use std::time::Instant;

/// A place in the log: the last record that was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogPosition {
    pub seq: u64,
    /// After a failover that lost changes, another record can have the same number, but not the same token.
    pub token: Vec<u8>,
}

impl LogPosition {
    /// Whether a log with this last record can continue here.
    pub fn is_at_or_before(&self, seq: u64, token: &[u8]) -> bool {
        seq > self.seq || (seq == self.seq && token == self.token)
    }

    /// Moves on to a record. Returns `false` if it is not the next one.
    fn advance(&mut self, record: &LogRecord) -> bool {
        let is_next = self.seq.checked_add(1) == Some(record.seq) && record.previous == self.token;
        if is_next {
            self.seq = record.seq;
            self.token.clone_from(&record.token);
        }
        is_next
    }
}

impl ClusterNode {
    pub(super) fn handle_ticked(&mut self, sent: Instant, now: Instant, ticked: Ticked) {
        if self.clock.handle_sample(sent, now, ticked.time) {
            // In the new time the leases of all servers may have ended.
            self.updates.push_back(Update::ReportLeases);
        }
        self.extend_remote_deadline(now);
        self.stats.behind = ticked.seq.saturating_sub(self.position.seq);
        if let Some(nodes) = ticked.nodes {
            self.nodes = nodes;
        }
        if self.bans.handle_count(ticked.bans) {
            self.stats.malformed = self.stats.malformed.saturating_add(1);
        }
        if ticked.has_more {
            self.tick.next = now + SHORT_TICK_INTERVAL;
        }
        if self.loading.is_some() {
            return;
        }
        // A failover lost changes that were applied here. (Records that were read since the tick was sent do not count.)
        let has_lost_changes = ticked.seq < self.tick.seq;
        let is_forked = ticked.seq == self.position.seq && ticked.token != self.position.token;
        // Servers were deleted from the store without a record.
        let is_unchanged = ticked.seq == self.position.seq && ticked.seq == self.tick.seq;
        let known = self.known.len().min(self.tick.known) as u64;
        let has_lost_servers = is_unchanged && ticked.servers < known;
        // The next record does not come any more.
        let has_lost_records = !ticked.is_log_complete && self.position.seq == self.tick.seq;
        let defect = if has_lost_changes || is_forked {
            Some(StoreDefect::LostChanges)
        } else if has_lost_servers {
            Some(StoreDefect::LostServers)
        } else {
            has_lost_records.then_some(StoreDefect::LostRecords)
        };
        match defect {
            Some(defect) => {
                self.note_defect(defect);
                self.reload(now, defect != StoreDefect::LostRecords);
            }
            None => self.contact.confirm(now),
        }
    }

    pub(super) fn handle_log(&mut self, now: Instant, records: Vec<LogRecord>, is_malformed: bool) {
        if self.loading.is_some() {
            return;
        }
        for record in records {
            if !self.position.advance(&record) {
                // The next number after another record: the store has lost some that were applied here.
                let is_next = record.seq <= self.position.seq.saturating_add(1);
                self.note_defect(if is_next { StoreDefect::LostChanges } else { StoreDefect::LostRecords });
                self.reload(now, is_next);
                return;
            }
            match record.kind {
                RecordKind::Put { id, value, is_expiry } => {
                    let mode = if is_expiry { ApplyMode::Expiry } else { ApplyMode::Change };
                    let update = Update::put(now, &self.clock, id, value, mode);
                    self.handle_state(id, record.seq, update);
                }
                RecordKind::Remove { id, reason } => {
                    let removal = reason.map_or(Removal::Lost, Removal::Change);
                    self.handle_state(id, record.seq, Update::Remove(id, removal));
                }
                RecordKind::Ban { subject: _, value } => {
                    // The reply to a request that is under way may be older, and would undo this.
                    self.bans.is_due |= !self.contact.is_idle(RequestKind::Bans);
                    self.updates.push_back(Update::Ban(value));
                }
                RecordKind::Unknown => self.stats.malformed = self.stats.malformed.saturating_add(1),
            }
        }
        if is_malformed {
            self.stats.malformed = self.stats.malformed.saturating_add(1);
            self.reload(now, true);
        }
    }

    /// Handles the state of a server in the store after the change with this number, unless a later one is known or a change of
    /// this node is on its way.
    pub(super) fn handle_state(&mut self, id: PublicId, seq: u64, update: Update) {
        if let Some(pending) = self.outbox.pending.get_mut(&id) {
            return pending.defer(seq, update);
        }
        let known = self.known.get(&id).copied();
        // After a scan, the log begins before the state that the scan has shown. Its record of that state is applied again: an
        // older record, of another server that had the endpoint before, may have displaced the server.
        if known.is_some_and(|known| known > seq) {
            return;
        }
        if let Update::Remove(..) = update {
            self.known.remove(&id);
            self.outbox.note_removal(id, seq);
        } else if known.is_none() && self.known.len() >= self.config.max_servers {
            self.stats.untracked += 1;
            return;
        } else {
            self.known.insert(id, seq);
        }
        self.stats.applied += 1;
        self.updates.push_back(update);
    }
}
