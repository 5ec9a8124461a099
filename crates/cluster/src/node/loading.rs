//! Reading everything: when a node joins, and when it missed records of the log.

use super::{Apply, ClusterNode, NodeState, REFILL_TIME, pending::ServerState};
use crate::record::EntryValue;
use rallypoint_lobby_proto::{ApplyMode, PublicId};
use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

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
    pub(super) fn load(&mut self, now: Instant, position: u64, token: Vec<u8>, is_refill: bool) {
        self.cancel_requests();
        self.stats.loads += 1;
        self.state = NodeState::Loading;
        self.position = position;
        self.tick_position = position;
        self.token = token;
        self.known.clear();
        self.needs_bans = true;
        self.next_tick = now;
        self.applies.push_back(Apply::ReportLeases);
        self.loading = Some(Loading { cursor: 0, is_refill });
    }

    /// Reads everything again. Without contact nothing happens: then everything may be read with the next contact.
    pub fn reread(&mut self, now: Instant) {
        if self.state == NodeState::Following {
            self.reload(now);
        }
    }

    /// Begins to read everything, from the state that the store has when it is asked.
    pub(super) fn reload(&mut self, now: Instant) {
        self.cancel_requests();
        self.epoch = None;
        self.retry_at = now;
        // The contact is not lost: the next request is to open the store again.
        self.state = NodeState::Disconnected(crate::StoreError {
            kind: crate::StoreErrorKind::Unreachable,
            message: "records of the log are missing: reading everything again".into(),
        });
        self.is_reload = true;
    }

    pub(super) fn handle_scanned(
        &mut self,
        now: Instant,
        cursor: u64,
        entries: Vec<(PublicId, EntryValue)>,
        malformed: u64,
    ) {
        let Some(mut loading) = self.loading else { return };
        self.stats.malformed += malformed;
        for (id, value) in entries {
            self.offer(now, id, ServerState::put(value.seq, value, ApplyMode::Snapshot));
        }
        loading.cursor = cursor;
        self.loading = (cursor != 0).then_some(loading);
        if cursor == 0 {
            self.state = NodeState::Following;
            self.applies.push_back(Apply::ReportMissing(Arc::new(self.known_or_pending())));
            let delay = if loading.is_refill { REFILL_TIME } else { Duration::ZERO };
            self.remove_missing_at = Some(now + delay);
        }
    }

    /// The servers that are in the store, or that this node is writing there.
    pub(super) fn known_or_pending(&self) -> HashSet<PublicId> {
        self.known.keys().chain(self.pending.keys()).copied().collect()
    }

    /// Ignores the replies to all requests that are under way. What was being written is written again.
    pub(super) fn cancel_requests(&mut self) {
        self.session += 1;
        self.in_flight.clear();
        let writing = std::mem::take(&mut self.writing);
        writing.into_iter().rev().for_each(|write| self.writes.push_front(write));
        let fetching = std::mem::take(&mut self.fetching);
        self.fetches.extend(fetching);
    }
}
