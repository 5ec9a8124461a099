//! Reading everything: when a node joins, and when it missed records of the log.

use super::{ClusterNode, NodeState, REFILL_TIME, Update, log::LogPosition};
use crate::record::EntryValue;
use rallypoint_lobby_proto::{ApplyMode, PublicId};
use std::time::{Duration, Instant};

/// The progress of reading everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loading {
    cursor: u64,
    /// Whether the store has lost content that other nodes write again.
    is_refill: bool,
}

impl Loading {
    pub const fn cursor(&self) -> u64 {
        self.cursor
    }

    pub const fn is_refill(&self) -> bool {
        self.is_refill
    }
}

impl ClusterNode {
    /// Begins to read everything. The log is read from this position afterwards: changes that the scan has missed are there.
    pub(super) fn load(&mut self, now: Instant, position: LogPosition, is_refill: bool) {
        self.cancel_requests();
        self.stats.loads += 1;
        self.contact.state = NodeState::Loading;
        self.tick.seq = position.seq;
        self.position = position;
        self.known.clear();
        self.outbox.forget_states();
        self.tick.next = now;
        self.updates.push_back(Update::ReportLeases);
        self.loading = Some(Loading { cursor: 0, is_refill });
    }

    /// Reads everything again. Without contact nothing happens: then everything may be read with the next contact.
    pub fn reread(&mut self, now: Instant) {
        if *self.state() == NodeState::Following {
            self.reload(now, true);
        }
    }

    /// Begins to read everything, from the state that the store has when it executes the request. If it may have lost content
    /// (`is_refill`), servers that it does not have stay for a while: other nodes write them again.
    pub(super) fn reload(&mut self, now: Instant, is_refill: bool) {
        self.cancel_requests();
        self.epoch = None;
        self.is_reload = is_refill;
        self.contact.reopen(now, NodeState::Loading);
    }

    pub(super) fn handle_scanned(
        &mut self,
        now: Instant,
        cursor: u64,
        entries: Vec<(PublicId, EntryValue)>,
        malformed: u64,
    ) {
        let Some(mut loading) = self.loading else { return };
        self.stats.malformed = self.stats.malformed.saturating_add(malformed);
        for (id, value) in entries {
            let seq = value.seq;
            self.handle_state(id, seq, Update::put(now, &self.clock, id, value, ApplyMode::Snapshot));
        }
        loading.cursor = cursor;
        self.loading = (cursor != 0).then_some(loading);
        if cursor == 0 {
            self.contact.state = NodeState::Following;
            self.updates.push_back(Update::ReportMissing(self.known_or_pending()));
            let delay = if loading.is_refill { REFILL_TIME } else { Duration::ZERO };
            self.await_refill(now, delay);
        }
    }
}
