//! Connections whose reply is sent and whose clients only have to close.
//!
//! That is not urgent, so these connections are polled together a little later. Most clients have closed by then, and one pass
//! over the queue costs far less than waiting for each socket.

use super::Connection;
use rallypoint_udp::clock;
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// Time that a client has to close its connection before the connection is polled.
const POLL_DELAY: Duration = Duration::from_millis(20);

/// Draining connections in the order in which their replies were completed.
#[derive(Debug, Default)]
pub(super) struct DrainQueue {
    queue: Mutex<VecDeque<Connection>>,
    not_empty: Notify,
}

impl DrainQueue {
    pub fn push(&self, connection: Connection) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(connection);
        if queue.len() == 1 {
            self.not_empty.notify_one();
        }
    }

    /// Waits until connections are due, and removes them from the queue.
    pub async fn next(&self) -> VecDeque<Connection> {
        loop {
            if self.is_empty() {
                self.not_empty.notified().await;
            }
            tokio::time::sleep(POLL_DELAY).await;
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
        let is_due = |connection: &Connection| connection.exchange.since() + POLL_DELAY <= now;
        let due = queue.iter().position(|connection| !is_due(connection)).unwrap_or(queue.len());
        let rest = queue.split_off(due);
        std::mem::replace(&mut queue, rest)
    }
}
