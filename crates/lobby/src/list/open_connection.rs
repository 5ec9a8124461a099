//! An open connection, as its task and the limits see it.

use super::{
    ListLimits,
    exchange::Phase,
    held_memory::{HeldMemory, HeldReply},
    reply::Reply,
    reset_on_close,
};
use rallypoint_limit::{Activity, Evictable, EvictingPermit, EvictingQuota, QuotaClient, QuotaLimits};
use socket2::Socket;
use std::{
    net::{IpAddr, Shutdown},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The open connections: a bound in total, and per IPv4 address or IPv6 /64.
#[derive(Clone, Debug)]
pub(super) struct OpenConnections {
    quota: EvictingQuota<OpenConnection, 64>,
    loopback_exempt: bool,
    held: Arc<HeldMemory>,
}

/// A connection that another one may evict.
#[derive(Debug)]
struct OpenConnection {
    socket: Arc<Socket>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Last change of the phase, or last time that the client took a part of its reply.
    progress_at: Instant,
    is_open: bool,
    /// What this connection keeps from being freed.
    held: Option<HeldReply>,
}

/// The right of a connection to be open. Dropping it returns the right.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    connection: Arc<OpenConnection>,
    connections: OpenConnections,
    phase: Phase,
    _permit: EvictingPermit<OpenConnection, 64>,
}

impl OpenConnections {
    pub fn new(limits: &ListLimits) -> Self {
        let quota = EvictingQuota::new(QuotaLimits {
            max: limits.connections.max(1),
            max_per_client: limits.per_address.max(1),
            min_age: Duration::ZERO,
            evicts_own: true,
        });
        Self { quota, loopback_exempt: limits.loopback_exempt, held: Arc::new(HeldMemory::new(limits.held_bytes)) }
    }

    /// Number of open connections.
    pub fn len(&self) -> usize {
        self.quota.used()
    }

    /// Maximum number of open connections.
    pub fn limit(&self) -> usize {
        self.quota.max()
    }

    /// Number of connections that were evicted.
    pub fn evicted(&self) -> u64 {
        self.quota.evicted()
    }

    /// Adds a new connection. If there are too many, another connection is evicted. `None` if the address has too many.
    pub fn admit(&self, socket: &Arc<Socket>, from: IpAddr, now: Instant) -> Option<ConnectionGuard> {
        let is_exempt = self.loopback_exempt && from.to_canonical().is_loopback();
        let client = QuotaClient { ip: from, is_exempt, is_privileged: false };
        let state = State { phase: Phase::Request, progress_at: now, is_open: true, held: None };
        let connection = Arc::new(OpenConnection { socket: socket.clone(), state: Mutex::new(state) });
        let permit = self.quota.take(client, 1, &connection, now)?;
        Some(ConnectionGuard { connection, connections: self.clone(), phase: Phase::Request, _permit: permit })
    }

    /// Evicts one connection, if there is any.
    pub fn evict_one(&self, now: Instant) {
        self.quota.evict_one(now);
    }

    /// Closes all connections that are in one of these phases.
    pub fn close(&self, phases: &[Phase]) {
        self.quota.close(|connection| phases.contains(&connection.state().phase));
    }
}

impl OpenConnection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Evictable for OpenConnection {
    fn activity(&self) -> Activity {
        let state = self.state();
        let phase = match state.phase {
            Phase::Request => rallypoint_limit::Phase::New,
            Phase::Reply => rallypoint_limit::Phase::Busy,
            Phase::Drain => rallypoint_limit::Phase::Closing,
        };
        Activity { phase, progress_at: state.progress_at }
    }

    fn evict(&self) {
        let mut state = self.state();
        state.is_open = false;
        state.held = None;
        if state.phase == Phase::Reply {
            // An incomplete reply is useless to the client. A complete one is still delivered by the system.
            reset_on_close(&self.socket);
        }
        // Ends the task that serves the connection. It fails if the peer has closed it already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl ConnectionGuard {
    /// Records that the connection is in this phase now.
    pub fn set_phase(&mut self, phase: Phase, now: Instant) {
        if phase == self.phase {
            return;
        }
        self.phase = phase;
        let mut state = self.connection.state();
        state.phase = phase;
        state.progress_at = now;
        state.held = None;
    }

    /// Records that the client has taken a part of its reply, and that the rest stays in memory until it takes more. If slow
    /// readers hold too much memory, other readers are evicted.
    pub fn hold(&mut self, reply: &Reply, now: Instant) {
        let held = &self.connections.held;
        {
            let mut state = self.connection.state();
            state.progress_at = now;
            if !state.is_open || state.held.is_some() {
                return;
            }
            state.held = Some(held.hold(reply.pieces()));
        }
        if held.is_over_limit() {
            let is_other_reader =
                |other: &OpenConnection| !std::ptr::eq(other, &*self.connection) && other.state().phase == Phase::Reply;
            self.connections.quota.evict_while(now, is_other_reader, || held.is_over_limit());
        }
    }

    /// Whether the connection was not evicted.
    pub fn is_open(&self) -> bool {
        self.connection.state().is_open
    }
}

#[cfg(test)]
mod tests;
