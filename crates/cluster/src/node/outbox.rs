//! The writes of this node to the store: changes, bans and leases, waiting or under way.

use super::{ClusterNode, Update, pending::Pending};
use crate::{
    StoreClock,
    record::EntryValue,
    request::{BanWrite, Conflict, LeaseWrite, Write, WriteResult},
};
use rallypoint_lobby_proto::{
    ApplyMode, LeaseRenewal, LocalChange, PublicId, Removal, ReplicatedEndpoint, UnlistReason,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Instant,
};

/// Maximum number of changes in one request.
const MAX_WRITES: usize = 500;

/// Size in bytes from which a request has no further changes: a slow connection must carry it before its time has passed.
const WRITE_SIZE: usize = 1_000_000;

/// Maximum number of bans that wait, each with its own subject: twice as many as a lobby has, because some are lifted.
const MAX_BANS: usize = 20_000;

/// Maximum number of servers whose state is to be read; for further ones everything is read.
const MAX_FETCHES: usize = 20_000;

/// Maximum number of leases in one request.
const MAX_LEASES: usize = 500;

/// Maximum number of requests for leases at the same time: with a store on another continent, one at a time would be too slow
/// for a hundred thousand servers.
const MAX_RENEWS: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Changes of servers, in order. Their times are the node's until they are sent, because the store's clock can be set in
    /// between.
    changes: VecDeque<LocalChange>,
    /// The changes that are being written.
    writing: Vec<LocalChange>,
    /// Servers with changes of this node that the store has not confirmed.
    pub pending: HashMap<PublicId, Pending>,
    /// By subject, so that a decision replaces an earlier one that was not written yet.
    bans: HashMap<Vec<u8>, BanWrite>,
    /// The bans that are being written, after the changes.
    writing_bans: Vec<BanWrite>,
    leases: VecDeque<LeaseRenewal>,
    /// Whether a request for leases is sent although it could have more.
    is_lease_flush: bool,
    fetches: VecDeque<PublicId>,
    fetching: Vec<Fetching>,
}

/// A server whose state is being read.
#[derive(Debug)]
struct Fetching {
    id: PublicId,
    /// Number of its latest removal that was read from the log since the request was sent, or 0. The reply may be older.
    removed: u64,
}

impl Outbox {
    pub fn free_changes(&self) -> usize {
        MAX_WRITES.saturating_sub(self.changes.len())
    }

    pub fn has_writes(&self) -> bool {
        !self.changes.is_empty() || !self.bans.is_empty()
    }

    pub fn has_room_for_leases(&self) -> bool {
        self.leases.len() < MAX_LEASES * MAX_RENEWS
    }

    /// Adds the leases of one sweep, which is made only if there is room: that bounds their number.
    pub fn push_leases(&mut self, renewals: impl IntoIterator<Item = LeaseRenewal>) {
        self.leases.extend(renewals);
    }

    /// Sends the leases that wait, however few they are.
    pub fn flush_leases(&mut self) {
        self.is_lease_flush = true;
    }

    /// The next leases to renew, if there is a request to spare. They wait for a full request, or for the next
    /// report of the node.
    pub fn take_leases(&mut self, requests: usize, clock: &StoreClock) -> Option<Vec<LeaseWrite>> {
        if self.leases.is_empty() {
            self.is_lease_flush = false;
        }
        let is_due = self.leases.len() >= MAX_LEASES || self.is_lease_flush;
        if !is_due || requests >= MAX_RENEWS {
            return None;
        }
        let count = self.leases.len().min(MAX_LEASES);
        let write = |lease: LeaseRenewal| LeaseWrite {
            id: lease.public_id,
            is_ipv6: lease.is_ipv6,
            deadline: clock.store_time(lease.deadline),
        };
        Some(self.leases.drain(..count).map(write).collect())
    }

    /// The servers whose state is to be read next.
    pub fn begin_fetch(&mut self) -> Option<Vec<PublicId>> {
        let count = self.fetches.len().min(MAX_WRITES);
        self.fetching = self.fetches.drain(..count).map(|id| Fetching { id, removed: 0 }).collect();
        (count > 0).then(|| self.fetching.iter().map(|fetching| fetching.id).collect())
    }

    /// Records that a server was removed, in case its state is being read.
    pub fn note_removal(&mut self, id: PublicId, seq: u64) {
        for fetching in self.fetching.iter_mut().filter(|fetching| fetching.id == id) {
            fetching.removed = fetching.removed.max(seq);
        }
    }

    /// Forgets the states that were kept for later, because everything is read again.
    pub fn forget_states(&mut self) {
        self.pending.values_mut().for_each(Pending::forget_state);
    }

    /// Sends everything that was under way again.
    pub fn cancel(&mut self) {
        for change in self.writing.drain(..).rev() {
            self.changes.push_front(change);
        }
        for ban in self.writing_bans.drain(..) {
            // A later decision may wait by now; and it may have been written, and another node may have decided since.
            self.bans.entry(ban.subject.clone()).or_insert(BanWrite { is_current: false, ..ban });
        }
        let fetching = std::mem::take(&mut self.fetching);
        self.fetches.extend(fetching.into_iter().map(|fetching| fetching.id));
    }

    /// Leases are collected again with the next contact, and decisions about bans that wait no longer count as current.
    pub fn lose_contact(&mut self) {
        self.leases.clear();
        self.bans.values_mut().for_each(|ban| ban.is_current = false);
    }

    fn push_ban(&mut self, ban: BanWrite) -> bool {
        // Bans that this node knew before, and passes on because the store lacks them, are not later than the operator's decisions.
        if !ban.is_current && self.bans.get(&ban.subject).is_some_and(|waiting| waiting.is_current) {
            return true;
        }
        let has_room = self.bans.len() < MAX_BANS || self.bans.contains_key(&ban.subject);
        if has_room {
            self.bans.insert(ban.subject.clone(), ban);
        }
        has_room
    }

    /// The next changes to write.
    pub fn begin_write(&mut self, clock: &StoreClock) -> Vec<Write> {
        let mut writes = Vec::new();
        let mut size = 0;
        while writes.len() < MAX_WRITES
            && size < WRITE_SIZE
            && let Some(change) = self.changes.pop_front()
        {
            size += size_of_command(&change);
            writes.extend(write(&change, clock));
            self.writing.push(change);
        }
        // They are small.
        let room = if size < WRITE_SIZE { MAX_WRITES - writes.len() } else { 0 };
        let subjects: Vec<_> = self.bans.keys().take(room).cloned().collect();
        self.writing_bans.extend(subjects.iter().filter_map(|subject| self.bans.remove(subject)));
        writes.extend(self.writing_bans.iter().cloned().map(Write::Ban));
        writes
    }

    /// Whether a reply has a result for each change that is being written.
    pub fn has_results(&self, results: &[WriteResult]) -> bool {
        self.writing.len() + self.writing_bans.len() == results.len()
    }

    /// Whether a reply has a state for each server that is being read.
    pub fn has_states(&self, count: usize) -> bool {
        self.fetching.len() == count
    }

    /// Confirms a change of a server. Returns what was deferred if it was the last one under way.
    fn confirm(&mut self, id: PublicId) -> Option<Pending> {
        let pending = self.pending.get_mut(&id)?;
        pending.count -= 1;
        if pending.count > 0 { None } else { self.pending.remove(&id) }
    }
}

impl ClusterNode {
    /// Handles changes of the registry, at most [`free_changes`](Self::free_changes) of them.
    pub fn handle_changes(&mut self, now: Instant, changes: impl IntoIterator<Item = LocalChange>) {
        for change in changes {
            match change {
                LocalChange::Reread(id) => self.outbox.fetches.push_back(id),
                change => {
                    self.outbox.pending.entry(change.public_id()).or_default().count += 1;
                    self.outbox.changes.push_back(change);
                }
            }
        }
        if self.outbox.fetches.len() > MAX_FETCHES {
            self.outbox.fetches.clear();
            self.reread(now);
        }
    }

    /// Handles a ban that the operator added, changed or lifted at this node. Times are in milliseconds since 1970. Returns
    /// `false` if too many wait for the store.
    pub fn handle_ban(&mut self, subject: &[u8], value: Vec<u8>, since: u64, end: u64, is_current: bool) -> bool {
        let is_current = is_current && self.contact.is_connected();
        self.outbox.push_ban(BanWrite { subject: subject.to_vec(), value, since, end, is_current })
    }

    pub(super) fn handle_written(&mut self, now: Instant, results: Vec<WriteResult>) {
        self.stats.written += results.len() as u64;
        self.outbox.writing_bans.clear();
        for (change, result) in std::mem::take(&mut self.outbox.writing).into_iter().zip(results) {
            self.handle_result(now, change.public_id(), result);
        }
    }

    /// Handles the result of a change. What the log has shown in the meantime is applied if it is not older.
    fn handle_result(&mut self, now: Instant, id: PublicId, result: WriteResult) {
        self.stats.refused += u64::from(matches!(result, WriteResult::Refused(..)));
        let Some(pending) = self.outbox.confirm(id) else { return };
        let state = match result {
            WriteResult::Done(0) => {
                self.known.remove(&id);
                pending.take_since(1)
            }
            WriteResult::Done(seq) => {
                // The record of this change, if it has not been read yet, is applied; older ones are not.
                let known = self.known.entry(id).or_default();
                *known = seq.max(*known);
                pending.take_since(seq)
            }
            WriteResult::Refused(conflict, current) => {
                let removed = |reason| (0, Update::Remove(id, Removal::Change(reason)));
                let state = match (current, conflict) {
                    (Some(value), _) => (value.seq, Update::put(now, &self.clock, id, *value, ApplyMode::Change)),
                    (None, Conflict::Tombstone) => removed(UnlistReason::Unregistered),
                    (None, Conflict::Stale | Conflict::Taken) => removed(UnlistReason::Replaced),
                };
                // The store's state counts, even if it was known before: the refused change is listed here.
                self.known.remove(&id);
                pending.take_since(state.0.saturating_add(1)).or(Some(state))
            }
        };
        if let Some((seq, update)) = state {
            self.handle_state(id, seq, update);
        }
    }

    pub(super) fn handle_fetched(&mut self, now: Instant, values: Vec<Option<EntryValue>>) {
        for (Fetching { id, removed }, value) in std::mem::take(&mut self.outbox.fetching).into_iter().zip(values) {
            let seq = value.as_ref().map_or(self.fetch_seq, |value| value.seq);
            // A record that was read since the request was sent may be later than the reply.
            if seq >= removed {
                let lost = Update::Remove(id, Removal::Lost);
                let update = value.map_or(lost, |value| Update::put(now, &self.clock, id, value, ApplyMode::Change));
                self.handle_state(id, seq, update);
            }
        }
    }

    /// The servers that are in the store, or that this node is writing there.
    pub(super) fn known_or_pending(&self) -> std::sync::Arc<HashSet<PublicId>> {
        std::sync::Arc::new(self.known.keys().copied().chain(self.outbox.pending.keys().copied()).collect())
    }

    /// Ignores the replies to all requests that are under way. What was being written is written again.
    pub(super) fn cancel_requests(&mut self) {
        self.contact.cancel();
        self.outbox.cancel();
    }
}

/// A change as it is sent now; `None` if nothing is to be written.
fn write(change: &LocalChange, clock: &StoreClock) -> Option<Write> {
    match change {
        LocalChange::Put(server) => {
            let lease = |endpoint: Option<ReplicatedEndpoint>| endpoint.map_or(0, |end| clock.store_time(end.deadline));
            let addrs = |endpoint: ReplicatedEndpoint| (endpoint.internal, endpoint.external);
            let value = EntryValue {
                seq: 0,
                origin: server.origin,
                transport: server.transport,
                v4: server.v4.map(addrs),
                v6: server.v6.map(addrs),
                list_id: server.list_id,
                since: clock.store_time(server.since),
                is_proven: server.is_proven,
                door: server.door,
                block: server.block.clone(),
            };
            let leases = [lease(server.v4), lease(server.v6)];
            Some(Write::Put { id: server.public_id, value: Box::new(value), leases })
        }
        LocalChange::Remove { public_id: id, reason, deadline } => {
            Some(Write::Remove { id: *id, reason: *reason, deadline: clock.store_time(*deadline) })
        }
        LocalChange::Reread(_) => None,
    }
}

/// Approximate size of the command for a change in bytes.
fn size_of_command(change: &LocalChange) -> usize {
    /// Name of the script, keys, and numbers.
    const COMMAND: usize = 500;
    match change {
        LocalChange::Put(server) => COMMAND + server.block.len(),
        _ => COMMAND,
    }
}
