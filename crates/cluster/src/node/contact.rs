//! The contact of a node with the store: requests under way, and when to try again.

use crate::{
    StoreError, StoreErrorKind,
    request::{RequestId, RequestKind},
};
use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

/// First and last pause before the store is contacted again.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// How long a contact has to last for the next pause to be short again.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// The connection state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It has no contact, for this reason.
    Disconnected(StoreError),
    /// It has contact and reads everything.
    Loading,
    /// It has everything, and reads the log.
    Following,
    /// It must not take part: its secret or version is not the store's.
    Refused(String),
}

#[derive(Debug)]
pub(super) struct Contact {
    pub state: NodeState,
    /// Number of connections so far: replies of earlier ones are ignored.
    session: u64,
    in_flight: HashMap<RequestKind, usize>,
    /// Kinds of requests that have failed, and not succeeded since.
    failed: HashSet<RequestKind>,
    /// When the store is contacted again, if there is no contact.
    pub retry_at: Instant,
    retry_delay: Duration,
    /// When the store was last opened.
    pub opened_at: Instant,
    /// When the store last answered.
    pub last: Instant,
}

impl Contact {
    pub fn new(now: Instant) -> Self {
        Self {
            state: NodeState::Disconnected(unreachable("the store has not been contacted yet")),
            session: 0,
            in_flight: HashMap::new(),
            failed: HashSet::new(),
            retry_at: now,
            retry_delay: RETRY_MIN,
            opened_at: now,
            last: now,
        }
    }

    pub fn is_connected(&self) -> bool {
        matches!(self.state, NodeState::Loading | NodeState::Following)
    }

    /// Number of requests of a kind that are under way.
    pub fn in_flight(&self, kind: RequestKind) -> usize {
        self.in_flight.get(&kind).copied().unwrap_or(0)
    }

    pub fn is_idle(&self, kind: RequestKind) -> bool {
        self.in_flight(kind) == 0
    }

    pub fn begin(&mut self, kind: RequestKind) -> RequestId {
        *self.in_flight.entry(kind).or_default() += 1;
        RequestId { session: self.session, kind }
    }

    /// Ends a request. Returns whether its reply counts.
    pub fn end(&mut self, id: RequestId) -> bool {
        if id.session != self.session {
            return false;
        }
        if let Some(count) = self.in_flight.get_mut(&id.kind) {
            *count = count.saturating_sub(1);
        }
        true
    }

    /// A request has failed.
    pub fn fail(&mut self, kind: RequestKind) {
        // The first tick shows that the store takes changes again.
        self.failed.extend([kind, RequestKind::Tick]);
    }

    /// A request has succeeded.
    pub fn succeed(&mut self, now: Instant, kind: RequestKind) {
        self.last = now;
        self.failed.remove(&kind);
    }

    /// Whether each kind of request that has failed has succeeded since, or this contact is stable. Some kinds are not needed again
    /// for a long time.
    pub fn has_recovered(&self, now: Instant) -> bool {
        self.failed.is_empty() || now.saturating_duration_since(self.opened_at) >= STABLE_AFTER
    }

    /// Ignores the replies to all requests that are under way.
    pub fn cancel(&mut self) {
        self.session += 1;
        self.in_flight.clear();
    }

    /// The contact is lost, and is tried again after a pause that grows.
    pub fn lose(&mut self, now: Instant, error: StoreError) {
        self.state = NodeState::Disconnected(error);
        self.retry_at = now + self.retry_delay;
        self.retry_delay = (self.retry_delay * 2).min(RETRY_MAX);
    }

    /// The store is opened again, at once, to begin with the state that it has then. If that happens again before the contact was
    /// stable, there is a pause: a store that changes all the time must not be read in a loop.
    pub fn reopen(&mut self, now: Instant, state: NodeState) {
        let is_first = self.retry_delay == RETRY_MIN;
        self.retry_at = if is_first { now } else { now + self.retry_delay };
        self.retry_delay = (self.retry_delay * 2).min(RETRY_MAX);
        self.state = state;
    }

    /// The node must not take part; the store is opened again at this time.
    pub fn refuse(&mut self, retry_at: Instant, reason: String) {
        self.state = NodeState::Refused(reason);
        self.retry_at = retry_at;
    }

    /// The store was opened.
    pub fn open(&mut self, now: Instant) {
        self.opened_at = now;
    }

    /// The store has answered, and its state is as expected.
    pub fn confirm(&mut self, now: Instant) {
        if now.saturating_duration_since(self.opened_at) >= STABLE_AFTER {
            self.retry_delay = RETRY_MIN;
        }
    }
}

pub(super) fn unreachable(message: &str) -> StoreError {
    StoreError { kind: StoreErrorKind::Unreachable, message: message.into() }
}
