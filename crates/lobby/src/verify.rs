//! Verification: probes the servers that state how to query them (E1), and compares their replies with their registrations.

mod differences;
mod result;
mod schedule;
mod session_key;

pub use differences::Differences;
pub use result::{Verification, VerificationResult};
pub(crate) use schedule::ProbeSchedule;
pub use session_key::SessionKeyStatus;

use crate::{
    cluster::Duties,
    probe::{ProbePool, ProbeReason},
    service::RegistryHandle,
    table::{ServerFeed, ServerRecord, Subscription, TableChange, visit_servers},
};
use rallypoint_lobby_proto::{ListingOrigin, PublicId};
use rallypoint_query_proto::{Probe, ProbeOutcome, Protocol, QueryReply};
use rallypoint_session_proto::PublicKey;
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// Interval at which every server is probed.
const INTERVAL: Duration = Duration::from_secs(60);

/// The parts that verification works with.
pub(crate) struct VerifyContext {
    pub feed: Arc<ServerFeed>,
    pub registry: RegistryHandle,
    pub pool: ProbePool,
    pub duties: Duties,
}

/// Probes new servers at once and all servers once per minute, until the lobby ends. The seed has to be unpredictable.
///
/// `updates` is a subscription from before the first registration: a server that is listed before this task first runs would
/// otherwise wait for its turn, up to a minute. In a cluster, one node probes a server for all.
pub(crate) async fn run(context: VerifyContext, updates: Subscription, seed: u128) {
    let VerifyContext { feed, registry, pool, duties } = context;
    let mut schedule = ProbeSchedule::new(seed);
    let probe = |record: &Arc<ServerRecord>| {
        if !duties.is_own(record.id.as_bytes()) {
            return;
        }
        let targets: Vec<_> = targets(record).collect();
        let ips = targets.iter().map(|(_, target)| target.address.ip());
        if let Some(permits) = schedule.begin(Instant::now(), record.id, ips) {
            let record = Arc::clone(record);
            let feed = Arc::clone(&feed);
            let (registry, pool) = (registry.clone(), pool.clone());
            tokio::spawn(async move {
                if let Some(result) = probe_server(&record, &targets, &feed, &registry, &pool).await {
                    feed.report(result).await;
                }
                drop(permits);
            });
        }
    };
    let is_new = |change: &TableChange| matches!(change, TableChange::Listed(_));
    visit_servers(&feed, updates, INTERVAL, is_new, probe).await;
}

/// Probes a server at each of its addresses until it replies. Returns `None` if this machine could not probe any of them.
async fn probe_server(
    record: &ServerRecord,
    targets: &[(SocketAddr, Probe)],
    feed: &ServerFeed,
    registry: &RegistryHandle,
    pool: &ProbePool,
) -> Option<VerificationResult> {
    let has_replied = matches!(record.verification, Verification::Verified | Verification::Differs);
    let reason = if has_replied { ProbeReason::Requested } else { ProbeReason::Unconfirmed };
    let mut was_probed = false;
    for (listed, target) in targets {
        match pool.probe(*target, reason).await {
            Some(ProbeOutcome::Answered(reply)) => {
                registry.report_reply(record.id, *listed);
                let proven_key = prove_session_key(record, *target, &reply, pool).await;
                let replied_at = Some(*listed);
                return Some(VerificationResult { replied_at, proven_key, ..compare(record.id, feed, *reply) });
            }
            outcome => was_probed |= outcome.is_some(),
        }
    }
    was_probed.then(|| VerificationResult::new(record.id, Verification::Unreachable))
}

/// The key that a server states (E2), if it proves that it holds it. Only a server that just answered is sent a login, so that
/// forged registrations cause none.
async fn prove_session_key(
    record: &ServerRecord,
    target: Probe,
    reply: &QueryReply,
    pool: &ProbePool,
) -> Option<PublicKey> {
    let key = record.stated_session_key().filter(|_| target.query.protocol == Protocol::Session)?;
    let game = reply.info.game.as_deref()?;
    pool.prove_session_key(target.address, key, game).await.then_some(key)
}

/// Compares a reply with the registration as it is now, which may have changed since the probe began.
fn compare(id: PublicId, feed: &ServerFeed, reply: QueryReply) -> VerificationResult {
    let differences = feed.snapshot().record(id).map_or_else(Differences::default, |record| {
        if let Some(listing) = &record.listing {
            // The table displays it when it next refreshes the record.
            listing.set_latency(reply.round_trip.time);
        }
        Differences::between(record, &reply.info)
    });
    let verification = if differences.is_none() { Verification::Verified } else { Verification::Differs };
    VerificationResult { differences, info: Some(Arc::new(reply.info)), ..VerificationResult::new(id, verification) }
}

/// The queries that reach a server: one per listed address, if its registration states how to query it (E1). Servers that are
/// listed because they reply are probed by the code that listed them.
pub(crate) fn targets(record: &ServerRecord) -> impl Iterator<Item = (SocketAddr, Probe)> {
    let listing = record.listing.as_ref().filter(|_| record.origin == ListingOrigin::Registered);
    let query = listing.and_then(|listing| Some((listing, listing.block().table.get(b"x-query")?.to_vec())));
    record.addresses().filter_map(move |listed| {
        let (listing, x_query) = query.as_ref()?;
        Some((listed, Probe::from_x_query(x_query, listing.internal_addr(listed))?))
    })
}
