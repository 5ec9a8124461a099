//! A model of the store: what its scripts do, in memory.

use rallypoint_cluster::{
    BanWrite, Conflict, EntryValue, FORMAT, LogRecord, NodeRow, OpenedStore, RecordKind, Reply, Request, Ticked, Write,
    WriteResult,
};
use rallypoint_lobby_proto::{ListingOrigin, PublicId, UnlistReason};
use rallypoint_wire::lobby::Transport;
use std::{collections::BTreeMap, net::SocketAddr};

/// An endpoint that can be ordered: whether it uses UDP, and its listed address.
type Key = (bool, SocketAddr);

/// How much earlier a change may have been received than what it replaces, in ms.
const TOLERANCE: u64 = 1_000;

/// Leases are ended this often, in ms.
const EXPIRY_INTERVAL: u64 = 800;

#[derive(Clone, Default)]
pub struct ModelStore {
    /// The store's clock in ms.
    pub now: u64,
    meta: Option<Meta>,
    pub entries: BTreeMap<PublicId, EntryValue>,
    at: BTreeMap<Key, PublicId>,
    leases: BTreeMap<(PublicId, bool), u64>,
    tombs: BTreeMap<PublicId, u64>,
    bans: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    nodes: BTreeMap<u64, (u64, Vec<u8>)>,
    log: Vec<LogRecord>,
    pub commands: u64,
}

#[derive(Clone)]
struct Meta {
    secret_check: Vec<u8>,
    epoch: [u8; 16],
    seq: u64,
    token: Vec<u8>,
    ticked: u64,
    grace: u64,
    expired: u64,
}

fn key(transport: Transport, addr: SocketAddr) -> Key {
    (transport == Transport::Udp, addr)
}

impl ModelStore {
    /// An empty store whose clock shows this time.
    pub fn at(now: u64) -> Self {
        Self { now, ..Self::default() }
    }

    /// Lets leases end from now on, as if nodes had been at work for a while.
    pub fn skip_grace(&mut self, now: u64) {
        if let Some(meta) = &mut self.meta {
            meta.ticked = now;
            meta.grace = 0;
            meta.expired = 0;
        }
    }

    /// Loses everything, as a store without persistence does when it is restarted.
    pub fn flush(&mut self) {
        *self = Self { now: self.now, commands: self.commands, ..Self::default() };
    }

    /// Loses a server without a record, as if an operator had deleted it.
    pub fn forget(&mut self, id: PublicId) {
        self.entries.remove(&id);
        self.unbind(id);
    }

    /// Loses a field of the metadata, as if an operator had deleted it.
    pub fn forget_meta(&mut self) {
        self.meta = None;
    }

    /// Loses all bans, as if their key had been deleted.
    pub fn forget_bans(&mut self) {
        self.bans.clear();
    }

    /// Loses all leases, as if their key had been evicted.
    pub fn forget_leases(&mut self) {
        self.leases.clear();
    }

    /// Drops the oldest records of the log.
    pub fn trim_log(&mut self, keep: usize) {
        let excess = self.log.len().saturating_sub(keep);
        self.log.drain(..excess);
    }

    /// Executes a request. `None` if it waits for a record of the log.
    pub fn execute(&mut self, request: &Request) -> Option<Reply> {
        self.commands += 1;
        Some(match request {
            Request::Open { epoch, secret_check } => {
                if self.meta.is_none() {
                    let bans = std::mem::take(&mut self.bans);
                    self.flush();
                    self.bans = bans;
                }
                let meta = self.meta.get_or_insert_with(|| Meta {
                    secret_check: secret_check.to_vec(),
                    epoch: *epoch,
                    seq: 0,
                    token: Vec::new(),
                    ticked: 0,
                    grace: 0,
                    expired: 0,
                });
                Reply::Opened(OpenedStore {
                    format: FORMAT,
                    secret_check: meta.secret_check.clone(),
                    epoch: meta.epoch,
                    seq: meta.seq,
                    token: meta.token.clone(),
                    time: self.now,
                })
            }
            Request::Tick { epoch, token, node, report, after } => {
                if !self.is_epoch(epoch) {
                    return Some(Reply::Ticked(None));
                }
                let was_set_back = self.meta.as_ref().is_some_and(|meta| meta.ticked > self.now + TOLERANCE);
                if was_set_back || 2 * self.leases.len() < self.entries.len() {
                    let bans = std::mem::take(&mut self.bans);
                    self.flush();
                    self.bans = bans;
                    return Some(Reply::Ticked(None));
                }
                if let Some(report) = report {
                    self.nodes.insert(*node, (self.now, report.clone()));
                }
                let has_more = self.expire(token);
                self.check_invariants();
                let meta = self.meta.as_ref()?;
                let row = |(node, (time, report)): (&u64, &(u64, Vec<u8>))| NodeRow {
                    node: *node,
                    time: *time,
                    report: report.clone(),
                };
                let nodes = report.as_ref().map(|_| self.nodes.iter().map(row).collect());
                let servers = self.entries.len() as u64;
                let is_log_complete = meta.seq <= *after || self.log.iter().any(|record| record.seq == after + 1);
                Reply::Ticked(Some(Ticked {
                    seq: meta.seq,
                    token: meta.token.clone(),
                    time: self.now,
                    nodes,
                    has_more,
                    servers,
                    bans: Some(self.bans.len() as u64),
                    is_log_complete,
                }))
            }
            Request::Write { epoch, writes } => {
                if !self.is_epoch(epoch) {
                    return Some(Reply::Written(None));
                }
                let results = writes.iter().map(|(token, write)| self.write(token, write)).collect();
                self.check_invariants();
                Reply::Written(Some(results))
            }
            Request::Renew(leases) => {
                let mut missing = Vec::new();
                for lease in leases {
                    match self.leases.get_mut(&(lease.id, lease.is_ipv6)) {
                        Some(deadline) => *deadline = lease.deadline.max(*deadline),
                        None => missing.push(lease.id),
                    }
                }
                Reply::Renewed(missing)
            }
            Request::Fetch(ids) => Reply::Fetched(ids.iter().map(|id| self.entries.get(id).cloned()).collect()),
            Request::Scan { cursor } => {
                // As with HSCAN, entries that are inserted behind the cursor are missed, and no others.
                let position = |id: &PublicId| u64::from_be_bytes(id.as_bytes()[..8].try_into().unwrap()) >> 1;
                let rest = self.entries.iter().filter(|(id, _)| position(id) >= *cursor);
                let entries: Vec<_> = rest.take(3).map(|(id, value)| (*id, value.clone())).collect();
                let next = if entries.len() < 3 { 0 } else { position(&entries[2].0) + 1 };
                Reply::Scanned { cursor: next, entries, malformed: 0 }
            }
            Request::Bans => {
                let bans = self.bans.iter().map(|(subject, (_, value))| (subject.clone(), value.clone()));
                Reply::Bans { bans: bans.collect(), left_out: 0, malformed: 0 }
            }
            Request::ReadLog { after } => {
                let records: Vec<_> = self.log.iter().filter(|record| record.seq > *after).cloned().collect();
                if records.is_empty() {
                    return None;
                }
                Reply::Log { records, is_malformed: false }
            }
        })
    }

    /// Every endpoint belongs to one entry, and has a lease.
    fn check_invariants(&self) {
        for (id, value) in &self.entries {
            for (is_ipv6, endpoint) in [(false, value.v4), (true, value.v6)] {
                let Some((_, external)) = endpoint else { continue };
                assert_eq!(self.at.get(&key(value.transport, external)), Some(id), "the owner of {external}");
                assert!(self.leases.contains_key(&(*id, is_ipv6)), "a lease of {id}");
            }
        }
    }

    fn is_epoch(&self, epoch: &[u8; 16]) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.epoch == *epoch)
    }

    fn next_seq(&self) -> u64 {
        self.meta.as_ref().map_or(0, |meta| meta.seq) + 1
    }

    fn append(&mut self, token: &[u8], kind: RecordKind) -> u64 {
        let meta = self.meta.as_mut().expect("an open store");
        meta.seq += 1;
        let token = [token, &meta.seq.to_be_bytes()].concat();
        let previous = std::mem::replace(&mut meta.token, token.clone());
        self.log.push(LogRecord { seq: meta.seq, token, previous, kind });
        meta.seq
    }

    fn write(&mut self, token: &[u8], write: &Write) -> WriteResult {
        match write {
            Write::Put { id, value, leases } => self.put(token, *id, value, leases),
            Write::Remove { id, reason, deadline } => self.remove(token, *id, *reason, *deadline),
            Write::Ban(BanWrite { subject, value, since, end, is_current }) => {
                let known = self.bans.get(subject).map_or(0, |(known, _)| *known);
                let since = if *is_current { (known + 1).max(*since) } else { *since };
                if known > since {
                    return WriteResult::Refused(Conflict::Stale, None);
                }
                let value = [format!("{since} {end} ").as_bytes(), value].concat();
                let old = self.bans.insert(subject.clone(), (since, value.clone()));
                if old.is_some_and(|(_, old)| old == value) {
                    return WriteResult::Done(0);
                }
                WriteResult::Done(self.append(token, RecordKind::Ban { subject: subject.clone(), value }))
            }
        }
    }

    fn latest_lease(&self, id: PublicId) -> u64 {
        [false, true].iter().filter_map(|is_ipv6| self.leases.get(&(id, *is_ipv6))).copied().max().unwrap_or(0)
    }

    fn put(&mut self, token: &[u8], id: PublicId, new: &EntryValue, leases: &[u64; 2]) -> WriteResult {
        let EntryValue { origin, transport, v4, v6, .. } = new;
        let old = self.entries.get(&id).cloned();
        let refused = |conflict| WriteResult::Refused(conflict, old.clone().map(Box::new));
        let latest = leases[0].max(leases[1]);
        if self.tombs.get(&id).is_some_and(|tomb| latest <= tomb + 3_000) {
            return refused(Conflict::Tombstone);
        }
        let written = [(false, v4.map(|addr| (addr, leases[0]))), (true, v6.map(|addr| (addr, leases[1])))];
        for (is_ipv6, endpoint) in written {
            if let (Some((_, lease)), Some(known)) = (endpoint, self.leases.get(&(id, is_ipv6)))
                && *known > lease + TOLERANCE
            {
                return refused(Conflict::Stale);
            }
        }
        let mut replaced = Vec::new();
        for (addr, lease) in written.iter().filter_map(|(_, endpoint)| *endpoint) {
            let Some(holder) = self.at.get(&key(*transport, addr.1)).copied().filter(|holder| *holder != id) else {
                continue;
            };
            let Some(other) = self.entries.get(&holder) else { continue };
            let is_weaker = other.origin < *origin || (other.origin, *origin) == (ListingOrigin::Registered, *origin);
            if !is_weaker {
                return refused(Conflict::Taken);
            }
            if other.origin == *origin && self.latest_lease(holder) > lease + TOLERANCE {
                return refused(Conflict::Stale);
            }
            if !replaced.contains(&holder) {
                replaced.push(holder);
            }
        }
        // Endpoints of the other family stay, unless another server has them with the new transport.
        let keep = |endpoint: Option<(SocketAddr, SocketAddr)>| {
            endpoint.filter(|addr| {
                let holder = self.at.get(&key(*transport, addr.1));
                holder.is_none_or(|holder| *holder == id || replaced.contains(holder))
            })
        };
        let merged_v4 = v4.or_else(|| keep(old.as_ref()?.v4));
        let merged_v6 = v6.or_else(|| keep(old.as_ref()?.v6));
        let seq = old.as_ref().map_or(0, |old| old.seq);
        let mut value = EntryValue { seq, v4: merged_v4, v6: merged_v6, ..new.clone() };
        for (is_ipv6, endpoint) in written {
            if let Some((_, lease)) = endpoint {
                let known = self.leases.entry((id, is_ipv6)).or_default();
                *known = lease.max(*known);
            }
        }
        if old.as_ref() == Some(&value) {
            return WriteResult::Done(seq);
        }
        self.unbind(id);
        for (is_ipv6, endpoint) in [(false, merged_v4), (true, merged_v6)] {
            match endpoint {
                Some(addr) => {
                    self.at.insert(key(*transport, addr.1), id);
                }
                None => {
                    self.leases.remove(&(id, is_ipv6));
                }
            }
        }
        value.seq = self.next_seq();
        self.entries.insert(id, value.clone());
        let seq = self.append(token, RecordKind::Put { id, value, is_expiry: false });
        for holder in replaced {
            self.delete(token, holder, Some(UnlistReason::Replaced));
        }
        WriteResult::Done(seq)
    }

    fn remove(&mut self, token: &[u8], id: PublicId, reason: UnlistReason, deadline: u64) -> WriteResult {
        if reason == UnlistReason::Unregistered {
            let tomb = self.tombs.entry(id).or_default();
            *tomb = deadline.max(*tomb);
        }
        let Some(old) = self.entries.get(&id) else { return WriteResult::Done(0) };
        if self.latest_lease(id) > deadline + TOLERANCE {
            return WriteResult::Refused(Conflict::Stale, Some(Box::new(old.clone())));
        }
        WriteResult::Done(self.delete(token, id, Some(reason)))
    }

    fn unbind(&mut self, id: PublicId) {
        self.at.retain(|_, holder| *holder != id);
    }

    fn delete(&mut self, token: &[u8], id: PublicId, reason: Option<UnlistReason>) -> u64 {
        self.unbind(id);
        self.entries.remove(&id);
        self.leases.remove(&(id, false));
        self.leases.remove(&(id, true));
        self.append(token, RecordKind::Remove { id, reason })
    }

    /// Ends leases that are due, at most 500. Returns whether there may be more.
    fn expire(&mut self, token: &[u8]) -> bool {
        let now = self.now;
        let Some(meta) = &mut self.meta else { return false };
        if now > meta.ticked + 5_000 {
            meta.grace = now + 10_000;
        }
        meta.ticked = now;
        if now < meta.grace || (meta.expired <= now && now < meta.expired + EXPIRY_INTERVAL) {
            return false;
        }
        // In the order of the sorted set.
        let due = self.leases.iter().filter(|(_, end)| **end <= now);
        let mut due: Vec<_> = due.map(|((id, is_ipv6), end)| (*end, *is_ipv6, *id)).collect();
        due.sort_unstable();
        due.truncate(500);
        let has_more = due.len() == 500;
        if !has_more {
            meta.expired = now;
        }
        for (_, is_ipv6, id) in due {
            self.leases.remove(&(id, is_ipv6));
            let Some(mut value) = self.entries.get(&id).cloned() else { continue };
            let endpoint = if is_ipv6 { value.v6.take() } else { value.v4.take() };
            if let Some(addr) = endpoint {
                self.at.remove(&key(value.transport, addr.1));
            }
            if value.v4.is_none() && value.v6.is_none() {
                self.delete(token, id, None);
            } else {
                value.seq = self.next_seq();
                self.entries.insert(id, value.clone());
                self.append(token, RecordKind::Put { id, value, is_expiry: true });
            }
        }
        self.tombs.retain(|_, tomb| *tomb + 120_000 > now);
        has_more
    }
}
