//! Probing game servers, with a bound on the number of sockets: every probe has a socket of its own (W41).

mod session_key;
mod trim;

use rallypoint_query::{SingleProbe, SingleProbeConfig};
use rallypoint_query_proto::{Probe, ProbeOutcome, ProberStats};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    net::TcpStream,
    sync::{Semaphore, SemaphorePermit},
};
use trim::trim;

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Probes game servers with a bounded number of sockets. Clones share the bound.
#[derive(Clone, Debug)]
pub struct ProbePool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Sockets for servers that the operator has configured, so that no other probe can delay theirs.
    configured: Semaphore,
    /// Sockets for all other servers.
    others: Semaphore,
    sockets: usize,
    stats: Mutex<ProberStats>,
}

/// Why a server is probed, which decides about sockets and retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeReason {
    /// The operator has configured it as a watched server.
    Configured,
    /// Requested by a server whose address is proven: it has replied before, or has announced itself over TCP.
    Requested,
    /// Requested by a registration, whose source can be forged.
    Unconfirmed,
}

impl ProbePool {
    /// Maximum number of sockets of a pool.
    pub const MAX_SOCKETS: usize = 512;

    /// A pool with at most this many sockets at a time (2 to 512). A quarter of them is reserved for servers that the
    /// operator has configured.
    #[must_use]
    pub fn new(sockets: usize) -> Self {
        let sockets = sockets.clamp(2, Self::MAX_SOCKETS);
        let configured = (sockets / 4).max(1);
        Self(Arc::new(Inner {
            configured: Semaphore::new(configured),
            others: Semaphore::new(sockets - configured),
            sockets,
            stats: Mutex::default(),
        }))
    }

    /// Maximum number of sockets of this pool.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.0.sockets
    }

    /// Sums over all probes.
    #[must_use]
    pub fn stats(&self) -> ProberStats {
        *self.0.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Probes a server, for three seconds at most. Texts of its reply are cut to a length that can be stored. Returns `None`
    /// if no probe was made, because all sockets are in use or because of an error of this machine: nothing is known about the
    /// server then.
    pub(crate) async fn probe(&self, probe: Probe, reason: ProbeReason) -> Option<ProbeOutcome> {
        let _permit = self.permit(reason).await?;
        let retries = match reason {
            ProbeReason::Configured | ProbeReason::Requested => 4,
            ProbeReason::Unconfirmed => 1,
        };
        let config = SingleProbeConfig { retries, ..SingleProbeConfig::default() };
        let mut probe = SingleProbe::connect(probe, &config).await.ok()?;
        let mut outcome = probe.run().await.ok()?;
        *self.0.stats.lock().unwrap_or_else(PoisonError::into_inner) += probe.stats();
        if let ProbeOutcome::Answered(reply) = &mut outcome {
            reply.info = trim(std::mem::take(&mut reply.info));
        }
        Some(outcome)
    }

    /// The time that a TCP connection to a server takes, which is one round trip; `None` if there is none within three seconds.
    pub(crate) async fn connect(&self, addr: SocketAddr) -> Option<Duration> {
        let _permit = self.permit(ProbeReason::Requested).await?;
        let began = Instant::now();
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(addr)).await;
        connected.is_ok_and(|connected| connected.is_ok()).then(|| began.elapsed())
    }

    async fn permit(&self, reason: ProbeReason) -> Option<SemaphorePermit<'_>> {
        match reason {
            // Only the operator decides how many there are, so each of them gets a socket in the end.
            ProbeReason::Configured => self.0.configured.acquire().await.ok(),
            ProbeReason::Requested | ProbeReason::Unconfirmed => self.0.others.try_acquire().ok(),
        }
    }
}

impl Default for ProbePool {
    fn default() -> Self {
        Self::new(Self::MAX_SOCKETS)
    }
}

#[cfg(test)]
mod tests;
