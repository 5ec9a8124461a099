//! Clients that have their reply, and only have to close.
//!
//! Nobody is in a hurry for that, so they are looked at together a little later. Most have closed by then, and that is far
//! less work than being told of each.

use super::Connection;
use rallypoint_udp::clock;
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// How long a client has before it is looked at.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// Those who are leaving, in the order in which they got their reply.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    queue: Mutex<VecDeque<Connection>>,
    some: Notify,
}

impl Leaving {
    pub fn push(&self, connection: Connection) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(connection);
        if queue.len() == 1 {
            self.some.notify_one();
        }
    }

    /// Waits for the next ones who have had their time.
    pub async fn next(&self) -> VecDeque<Connection> {
        loop {
            if self.is_empty() {
                self.some.notified().await;
            }
            tokio::time::sleep(LOOK_AFTER).await;
            let due = self.take_due();
            if !due.is_empty() {
                return due;
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn take_due(&self) -> VecDeque<Connection> {
        let now = clock::now();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |connection: &Connection| connection.exchange.since() + LOOK_AFTER <= now;
        let due = queue.iter().position(|connection| !is_due(connection)).unwrap_or(queue.len());
        let rest = queue.split_off(due);
        std::mem::replace(&mut queue, rest)
    }
}
