//! Changes of this node on their way into the store.

use super::{ClusterNode, MAX_WRITES, pending::ServerState};
use crate::{
    record::EntryBody,
    request::{Refusal, Request, Write, WriteResult},
};
use rallypoint_lobby_proto::{
    ApplyMode, LocalChange, PublicId, Removal, ReplicatedEndpoint, ReplicatedServer, UnlistReason,
};
use rallypoint_wire::lobby::ListBlock;
use std::time::Instant;

impl ClusterNode {
    /// Handles changes of the registry, at most [`free_changes`](Self::free_changes) of them.
    pub fn handle_changes(&mut self, changes: impl IntoIterator<Item = LocalChange>) {
        for change in changes {
            match change {
                LocalChange::Put(server) => {
                    if let Some(write) = self.put(*server) {
                        self.enqueue(write);
                    }
                }
                LocalChange::Remove { public_id: id, reason, deadline } => {
                    let deadline = self.clock.store_time(deadline);
                    self.enqueue(Write::Remove { id, reason, deadline });
                }
                LocalChange::Reread(id) => self.fetches.push_back(id),
            }
        }
    }

    /// Handles a ban that the operator added, changed or lifted at this node. `since` is in milliseconds since 1970.
    pub fn handle_ban(&mut self, subject: Vec<u8>, value: Vec<u8>, since: u64) {
        self.enqueue(Write::Ban { subject, value, since });
    }

    fn enqueue(&mut self, write: Write) {
        if let Some(id) = write.server() {
            self.pending.entry(id).or_default().count += 1;
        }
        self.writes.push_back(write);
    }

    fn put(&self, server: ReplicatedServer) -> Option<Write> {
        let transport = ListBlock::parse(&server.block).ok()?.transport;
        let endpoint = |endpoint: ReplicatedEndpoint| {
            ((endpoint.internal, endpoint.external), self.clock.store_time(endpoint.deadline))
        };
        let since = self.clock.store_time(server.since);
        Some(Write::Put {
            id: server.public_id,
            origin: server.origin,
            transport,
            v4: server.v4.map(endpoint),
            v6: server.v6.map(endpoint),
            body: EntryBody { lobby_id: server.lobby_id, since, block: server.block },
        })
    }

    pub(super) fn write_request(&mut self, epoch: [u8; 16]) -> Request {
        let count = self.writes.len().min(MAX_WRITES);
        self.writing = self.writes.drain(..count).collect();
        let writes = self.writing.clone();
        Request::Write { epoch, writes: writes.into_iter().map(|write| (self.next_token(), write)).collect() }
    }

    pub(super) fn handle_written(&mut self, now: Instant, results: Vec<WriteResult>) {
        for (write, result) in std::mem::take(&mut self.writing).into_iter().zip(results) {
            self.stats.written += 1;
            if let Some(id) = write.server() {
                self.handle_result(now, id, result);
            }
        }
    }

    /// Handles the result of a change. What the log has shown in the meantime is applied if it is not older.
    fn handle_result(&mut self, now: Instant, id: PublicId, result: WriteResult) {
        let is_refused = matches!(result, WriteResult::Refused(..));
        self.stats.refused += u64::from(is_refused);
        let Some(pending) = self.pending.get_mut(&id) else { return };
        pending.count -= 1;
        if pending.count > 0 {
            return;
        }
        let Some(pending) = self.pending.remove(&id) else { return };
        match result {
            WriteResult::Done(0) => {
                self.known.remove(&id);
                if let Some(state) = pending.take_since(1) {
                    self.offer(now, id, state);
                }
            }
            WriteResult::Done(seq) => {
                // The record of this change, if it has not been read yet, is the next one that counts.
                let known = self.known.entry(id).or_default();
                *known = seq.saturating_sub(1).max(*known);
                if let Some(state) = pending.take_since(seq) {
                    self.offer(now, id, state);
                }
            }
            WriteResult::Refused(refusal, current) => {
                let state = match (current, refusal) {
                    (Some(value), _) => ServerState::put(value.seq, *value, ApplyMode::Change),
                    (None, Refusal::Tombstone) => removed(UnlistReason::Unregistered),
                    (None, Refusal::Stale | Refusal::Taken) => removed(UnlistReason::Replaced),
                };
                let state = pending.take_since(state.seq + 1).unwrap_or(state);
                // The store's state counts, even if it was known before: the refused change is listed here.
                self.known.remove(&id);
                self.offer(now, id, state);
            }
        }
    }
}

/// A server that is not in the store because its change was refused.
fn removed(reason: UnlistReason) -> ServerState {
    ServerState { seq: 0, change: Err(Removal::Change(reason)) }
}
