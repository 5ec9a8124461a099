//! Connections whose reply is sent and whose clients only have to close.
//!
//! That is not urgent, so these connections are polled together a little later. Most clients have closed by then, and one pass
//! over the queue costs far less than waiting for each socket. Clients nearby close at once, and the sooner their sockets are
//! freed, the fewer of them there are, so that they stay in the processor's cache; those far away take a round trip.

use super::Connection;
use rallypoint_udp::clock;
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// Time until a connection is polled for the first time, and until each further time.
const POLL_DELAYS: [Duration; 3] = [Duration::from_millis(2), Duration::from_millis(20), Duration::from_millis(100)];

/// Time for which a connection that is due waits for others, so that they are polled together.
const BATCH_DELAY: Duration = Duration::from_millis(2);

/// Draining connections.
#[derive(Debug, Default)]
pub(super) struct DrainQueue {
    stages: Mutex<Stages>,
    /// Notified when a connection may be due before the others.
    earlier: Notify,
}

/// The connections by the number of times that they were polled, each in the order in which they are due.
type Stages = [VecDeque<Draining>; POLL_DELAYS.len()];

/// A connection that waits to be polled.
#[derive(Debug)]
pub(super) struct Draining {
    pub connection: Connection,
    due: Instant,
    /// Number of times that it was polled.
    polls: usize,
}

impl DrainQueue {
    /// Adds a connection whose reply has just been sent.
    pub fn push(&self, connection: Connection) {
        self.insert(Draining { due: connection.exchange.since() + POLL_DELAYS[0], connection, polls: 0 });
    }

    /// Adds a connection again whose client had not closed it when it was polled. Returns it if it was polled often enough.
    pub fn push_again(&self, Draining { connection, polls, .. }: Draining) -> Option<Connection> {
        let polls = polls + 1;
        let Some(delay) = POLL_DELAYS.get(polls) else { return Some(connection) };
        self.insert(Draining { connection, due: clock::now() + *delay, polls });
        None
    }

    /// Waits until connections are due, and removes them from the queue.
    pub async fn next(&self) -> Vec<Draining> {
        loop {
            let due = self.take_due(clock::now());
            if !due.is_empty() {
                return due;
            }
            match self.next_due() {
                None => self.earlier.notified().await,
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until((at + BATCH_DELAY).into()) => {}
                    () = self.earlier.notified() => {}
                },
            }
        }
    }

    fn insert(&self, draining: Draining) {
        let mut stages = self.stages();
        let stage = &mut stages[draining.polls];
        stage.push_back(draining);
        if stage.len() == 1 {
            self.earlier.notify_one();
        }
    }

    fn next_due(&self) -> Option<Instant> {
        self.stages().iter().filter_map(|stage| stage.front()).map(|draining| draining.due).min()
    }

    fn take_due(&self, now: Instant) -> Vec<Draining> {
        let mut stages = self.stages();
        let mut due = Vec::new();
        for stage in stages.iter_mut() {
            let count = stage.iter().position(|draining| draining.due > now).unwrap_or(stage.len());
            due.extend(stage.drain(..count));
        }
        due
    }

    fn stages(&self) -> MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
