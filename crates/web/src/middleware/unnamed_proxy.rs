//! Warns of a proxy on this machine that is not trusted: all of its clients share one address, and one limit.

use rallypoint_lobby::unix_now;
use std::{
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Interval in seconds between two warnings in the log.
const WARN_INTERVAL: u64 = 3_600;

/// Time in seconds for which /readyz reports such a proxy after its last request.
const REPORTED_FOR: u64 = 600;

/// When such a proxy was last seen, and last warned of, in seconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct UnnamedProxy {
    seen: AtomicU64,
    warned: AtomicU64,
}

impl UnnamedProxy {
    /// Records a request from such a proxy.
    pub fn record(&self, proxy: IpAddr) {
        let now = unix_now();
        self.seen.store(now, Relaxed);
        let warned = self.warned.load(Relaxed);
        let is_due = warned == 0 || now.saturating_sub(warned) >= WARN_INTERVAL;
        if is_due && self.warned.compare_exchange(warned, now, Relaxed, Relaxed).is_ok() {
            tracing::warn!(
                %proxy,
                "a proxy forwards requests, but is not in web.trusted_proxies: its visitors share one limit of requests, and \
                 no server can announce itself through it"
            );
        }
    }

    /// Whether such a proxy was seen lately.
    pub fn is_present(&self) -> bool {
        let seen = self.seen.load(Relaxed);
        seen > 0 && unix_now().saturating_sub(seen) < REPORTED_FOR
    }
}
