//! Whatever a store replies, a node does not panic, does not read everything in a loop, and keeps little.

use crate::support;

use rallypoint_cluster::{
    ClusterNode, Conflict, EntryValue, LogRecord, NodeConfig, NodeRow, OpenedStore, RecordKind, Reply, Request,
    StoreError, StoreErrorKind, Ticked, WriteResult,
};
use rallypoint_lobby_proto::{LeaseRenewal, ListingOrigin, LocalChange, PublicId, UnlistReason};
use rallypoint_wire::lobby::{ListBlock, ListId, Occupancy, TableBuf, Transport};
use std::time::{Duration, Instant};
use support::{Random, node_config, registry};

const MAX_SERVERS: usize = 50;

struct Hostile(Random);

impl Hostile {
    fn number(&mut self) -> u64 {
        match self.0.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX - 1,
            3 => self.0.next(),
            _ => self.0.below(5),
        }
    }

    fn id(&mut self) -> PublicId {
        PublicId::from_bytes(u128::from(self.0.below(200)).to_be_bytes())
    }

    fn bytes(&mut self) -> Vec<u8> {
        vec![self.0.next() as u8; self.0.below(40) as usize]
    }

    fn entry(&mut self) -> EntryValue {
        let mut block = Vec::new();
        let table = TableBuf::new();
        let transport = if self.0.chance(50) { Transport::Udp } else { Transport::Tcp };
        ListBlock { transport, v4: None, v6: None, occupancy: Occupancy::default(), table: table.as_table() }
            .emit(&mut block);
        let block = if self.0.chance(80) { block[4..].to_vec() } else { self.bytes() };
        let addr = |text: String| Some((text.parse().unwrap(), text.parse().unwrap()));
        EntryValue {
            seq: self.number(),
            origin: ListingOrigin::ALL[self.0.below(3) as usize],
            transport,
            v4: addr(format!("203.0.113.{}:{}", self.0.below(9), self.0.below(3))),
            // The wrong family.
            v6: if self.0.chance(20) { addr("203.0.113.1:7".into()) } else { None },
            list_id: ListId::from_bytes([self.0.below(9) as u8; 16]),
            since: self.number(),
            is_proven: self.0.chance(50),
            door: None,
            block,
        }
    }

    fn record(&mut self, seq: u64) -> LogRecord {
        let kind = match self.0.below(5) {
            0 | 1 => RecordKind::Put { id: self.id(), value: self.entry(), is_expiry: self.0.chance(50) },
            2 => RecordKind::Remove { id: self.id(), reason: Some(UnlistReason::Replaced) },
            3 => RecordKind::Ban { subject: self.bytes(), value: self.bytes() },
            _ => RecordKind::Unknown,
        };
        let seq = if self.0.chance(90) { seq } else { self.number() };
        LogRecord { seq, token: Vec::new(), previous: Vec::new(), kind }
    }

    fn reply(&mut self, request: &Request) -> Result<Reply, StoreError> {
        if self.0.chance(10) {
            return Err(StoreError { kind: StoreErrorKind::Unreachable, message: "no".into() });
        }
        Ok(match request {
            Request::Open { epoch, secret_check } => Reply::Opened(OpenedStore {
                format: 1,
                secret_check: secret_check.to_vec(),
                // Another content each time, or always the same.
                epoch: if self.0.chance(50) { *epoch } else { [1; 16] },
                seq: self.number(),
                token: Vec::new(),
                time: self.number(),
            }),
            Request::Tick { .. } if self.0.chance(20) => Reply::Ticked(None),
            Request::Tick { .. } => {
                let nodes = (0..self.0.below(4)).map(|_| NodeRow {
                    node: self.number(),
                    time: self.number(),
                    report: self.bytes(),
                });
                let nodes = Some(nodes.collect());
                let (seq, time, servers) = (self.number(), self.number(), self.number());
                let has_more = self.0.chance(50);
                let is_log_complete = self.0.chance(80);
                let bans = self.0.chance(80).then(|| self.number());
                let token = Vec::new();
                Reply::Ticked(Some(Ticked { seq, token, time, nodes, has_more, servers, bans, is_log_complete }))
            }
            Request::Write { .. } if self.0.chance(20) => Reply::Written(None),
            Request::Write { writes, .. } => {
                let count = if self.0.chance(80) { writes.len() as u64 } else { self.0.below(9) };
                let results = (0..count).map(|_| match self.0.below(3) {
                    0 => WriteResult::Done(self.number()),
                    1 => WriteResult::Refused(Conflict::Stale, None),
                    _ => WriteResult::Refused(Conflict::Taken, Some(Box::new(self.entry()))),
                });
                Reply::Written(Some(results.collect()))
            }
            Request::Renew(leases) => Reply::Renewed(leases.iter().map(|lease| lease.id).collect()),
            Request::Fetch(_) => Reply::Fetched(vec![Some(self.entry()); self.0.below(9) as usize]),
            Request::Scan { .. } => Reply::Scanned {
                cursor: self.number(),
                entries: (0..self.0.below(30)).map(|_| (self.id(), self.entry())).collect(),
                malformed: self.number(),
            },
            Request::Bans => {
                let bans = (0..self.0.below(9)).map(|_| (self.bytes(), self.bytes()));
                Reply::Bans { bans: bans.collect(), left_out: self.number() as usize, malformed: self.number() }
            }
            Request::ReadLog { after } => {
                let records = (1..=self.0.below(9)).map(|n| self.record(after.saturating_add(n)));
                Reply::Log { records: records.collect(), is_malformed: self.0.chance(10) }
            }
        })
    }
}

fn run_seed(seed: u64) {
    let mut hostile = Hostile(Random(seed));
    let start = Instant::now() + Duration::from_secs(1_000);
    let mut now = start;
    let mut node = ClusterNode::new(NodeConfig { max_servers: MAX_SERVERS, ..node_config(1) }, now);
    let mut registry = registry(1, now);
    let mut opens = 0;
    while now < start + Duration::from_secs(60) {
        now += Duration::from_millis(hostile.0.below(40));
        let server = support::server(u128::from(hostile.0.below(20)));
        let from = format!("203.0.113.{}:4000", hostile.0.below(9));
        registry.handle_datagram(now, from.parse().unwrap(), &server.datagram());
        let mut changes = registry.take_changes(node.free_changes());
        changes.push(LocalChange::Reread(hostile.id()));
        node.handle_changes(now, changes);
        node.handle_renewals([LeaseRenewal { public_id: hostile.id(), is_ipv6: false, deadline: now }]);
        // One turn: a store that answers at once could keep a node busy for ever.
        for _ in 0..20 {
            let Some((id, request)) = node.poll_request(now) else { break };
            opens += u32::from(matches!(request, Request::Open { .. }));
            let reply = hostile.reply(&request);
            node.handle_reply(now, now, id, reply);
        }
        while let Some(update) = node.poll_update(now) {
            update.apply_to(now, &mut registry);
        }
        while let Some(at) = registry.poll_timeout().filter(|at| *at <= now) {
            registry.handle_timeout(at.max(now - Duration::from_millis(40)));
        }
        while registry.poll_event().is_some() {}
        assert!(node.stats().servers <= MAX_SERVERS + 1, "{:?}", node.stats());
        assert!(node.poll_timeout().is_some_and(|at| at <= now + Duration::from_secs(20)));
    }
    registry.check_invariants();
    assert!(opens < 120, "seed {seed}: the store was opened {opens} times in a minute");
}

#[test]
fn random_replies() {
    (0..12).for_each(run_seed);
}
