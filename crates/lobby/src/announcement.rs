//! Servers that announce themselves with no more than "I am here" (L17): each is probed, and listed if it replies.
//!
//! A server is probed at the address that the announcement came from and at no other, so an announcement cannot direct probes
//! at third parties.

use crate::{
    probe::ProbeReason,
    verify::{Verification, VerificationResult},
    watch::{WatchContext, WatchTarget, probed_server},
};
use rallypoint_limit::{Net, Quota, QuotaPermit, Rate, TokenBuckets};
use rallypoint_lobby_proto::{
    ListingOrigin, ProbedOutcome, ProbedServer, RegistrationOutcome,
    doors::{AnnouncedQuery, Door},
};
use rallypoint_query_proto::{Probe, ProbeOutcome, Protocol};
use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};
use thiserror::Error;

/// Announcements per network (/24 or /56): ten times what a hoster with 60 servers there needs.
const NETWORK_RATE: Rate = Rate::per_minute(600, 600);

/// Number of networks whose rates are tracked.
const NETWORKS: usize = 8_192;

/// Maximum number of announcements that are handled at the same time.
const MAX_PENDING: usize = 128;

/// Maximum number of announcements of one IPv4 address or IPv6 /56 that are handled at the same time.
const MAX_PENDING_PER_ADDRESS: usize = 16;

/// Why an announcement was not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnnouncementError {
    /// The lobby has no sockets for probes.
    #[error("this lobby does not probe servers")]
    Disabled,
    /// The network of the server has sent too many announcements.
    #[error("too many announcements from your network: one per minute and server is enough")]
    RateLimited,
    /// Too many announcements are being handled, or this machine could not send the probe.
    #[error("too many servers are being probed: announce the server again in a minute")]
    Busy,
}

/// Handles announcements.
#[derive(Debug)]
pub(crate) struct Announcements {
    context: WatchContext,
    rate: Mutex<TokenBuckets<Net>>,
    quota: Quota,
    /// Servers that are being probed.
    pending: Arc<Mutex<HashSet<SocketAddr>>>,
}

/// A server that is being probed, until this is dropped.
#[derive(Debug)]
struct Pending {
    addr: SocketAddr,
    all: Arc<Mutex<HashSet<SocketAddr>>>,
    _permit: QuotaPermit,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.addr);
    }
}

impl Announcements {
    /// The seed has to be unpredictable.
    pub fn new(context: WatchContext, seed: u128) -> Self {
        Self {
            context,
            rate: Mutex::new(TokenBuckets::new(NETWORK_RATE, NETWORKS, seed)),
            quota: Quota::new(MAX_PENDING, MAX_PENDING_PER_ADDRESS),
            pending: Arc::default(),
        }
    }

    /// Probes a server that announced itself, and lists it if it replies.
    pub async fn handle(
        &self,
        door: &'static Door,
        ip: IpAddr,
        port: NonZeroU16,
        is_exempt: bool,
    ) -> Result<(), AnnouncementError> {
        if !is_exempt && self.is_over_rate(ip) {
            return Err(AnnouncementError::RateLimited);
        }
        let Some(pending) = self.begin((ip, port.get()).into())? else { return Ok(()) };
        // A task of its own completes even if the server closes its connection.
        let context = self.context.clone();
        let probe = tokio::spawn(async move {
            let was_handled = probe_and_list(&context, door, ip, port).await;
            drop(pending);
            was_handled
        });
        if probe.await.unwrap_or(false) { Ok(()) } else { Err(AnnouncementError::Busy) }
    }

    fn is_over_rate(&self, ip: IpAddr) -> bool {
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        !rate.take(Instant::now(), Net::of(ip))
    }

    /// Registers a probe, unless the server is already being probed.
    fn begin(&self, addr: SocketAddr) -> Result<Option<Pending>, AnnouncementError> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.contains(&addr) {
            return Ok(None);
        }
        let permit = self.quota.take(addr.ip(), false).ok_or(AnnouncementError::Busy)?;
        pending.insert(addr);
        Ok(Some(Pending { addr, all: Arc::clone(&self.pending), _permit: permit }))
    }
}

/// Probes a server and lists it if it replies. Returns whether the probe could be made.
async fn probe_and_list(context: &WatchContext, door: &'static Door, ip: IpAddr, port: NonZeroU16) -> bool {
    let Some(AnnouncedQuery { protocol, list, lease }) = door.query else { return true };
    let Ok(protocol) = protocol.parse::<Protocol>() else { return true };
    if context.registry.precheck_announced(ip, port).await.is_some() {
        return true;
    }
    let probe = Probe::new((ip, port.get()).into(), protocol.info());
    let reply = match context.pool.probe(probe, ProbeReason::Requested).await {
        Some(ProbeOutcome::Answered(reply)) => reply,
        Some(outcome) => {
            let is_refused = matches!(outcome, ProbeOutcome::Refused);
            let failed = if is_refused { RegistrationOutcome::PortClosed } else { RegistrationOutcome::Unreachable };
            context.registry.record_announced(ip, port, failed);
            return true;
        }
        None => return false,
    };
    let target = WatchTarget { host: ip.to_string(), port, protocol, list };
    let server = ProbedServer {
        // The operator may watch the same server: that is another entry.
        label: format!("announced {target}"),
        door: Some(door),
        ..probed_server(&reply, ListingOrigin::Announced, &target, vec![ip], lease)
    };
    if let Some(ProbedOutcome::Listed(id)) = context.registry.list_probed(server).await {
        let info = Some(Arc::new(reply.info));
        context.feed.report(VerificationResult { info, ..VerificationResult::new(id, Verification::Verified) }).await;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_lobby_proto::doors::DOORS;

    #[test]
    fn every_door_names_a_query_protocol_that_exists() {
        for query in DOORS.iter().filter_map(|door| door.query) {
            assert!(query.protocol.parse::<Protocol>().is_ok(), "{}", query.protocol);
        }
    }
}
