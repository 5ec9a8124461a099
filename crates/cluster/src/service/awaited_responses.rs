//! Requests to the other nodes whose responses are awaited.

use super::messenger::NodeResponse;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::mpsc;

/// Maximum number of requests of this node at a time.
const MAX_REQUESTS: usize = 32;

/// Maximum number of responses to a request that wait to be taken.
const MAX_WAITING: usize = 64;

/// The requests of this node that await responses, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct AwaitedResponses(Arc<Mutex<HashMap<u64, mpsc::Sender<NodeResponse>>>>);

/// The responses to one request. The request ends when this is dropped, also if the visitor who caused it has left.
#[derive(Debug)]
pub(super) struct Responses {
    all: AwaitedResponses,
    number: u64,
    receiver: mpsc::Receiver<NodeResponse>,
}

impl AwaitedResponses {
    /// Begins a request; `None` if there are too many.
    pub fn begin(&self, number: u64) -> Option<Responses> {
        let mut requests = self.lock();
        if requests.len() >= MAX_REQUESTS {
            return None;
        }
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        requests.insert(number, sender);
        Some(Responses { all: self.clone(), number, receiver })
    }

    /// Hands a response to its request. Without one, and if too many wait, it is dropped.
    pub fn handle(&self, number: u64, response: NodeResponse) {
        if let Some(request) = self.lock().get(&number) {
            let _ = request.try_send(response);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, mpsc::Sender<NodeResponse>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Responses {
    pub async fn next(&mut self) -> Option<NodeResponse> {
        self.receiver.recv().await
    }
}

impl Drop for Responses {
    fn drop(&mut self) {
        self.all.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The handler of a visitor who closes the connection is dropped while it waits.
    #[tokio::test]
    async fn requests_that_were_dropped_do_not_count() {
        let awaited = AwaitedResponses::default();
        for number in 0..=MAX_REQUESTS as u64 {
            let mut responses = awaited.begin(number).expect("the earlier ones have ended");
            let request = tokio::spawn(async move { responses.next().await });
            tokio::task::yield_now().await;
            request.abort();
            assert!(request.await.is_err_and(|error| error.is_cancelled()));
        }
        let mut responses = awaited.begin(100).expect("all have ended");
        awaited.handle(100, ("eu-1".into(), Vec::new()));
        assert_eq!(responses.next().await.map(|(name, _)| name).as_deref(), Some("eu-1"));
    }

    #[test]
    fn the_number_of_requests_is_bounded() {
        let awaited = AwaitedResponses::default();
        let requests: Vec<_> = (0..100).filter_map(|number| awaited.begin(number)).collect();
        assert_eq!(requests.len(), MAX_REQUESTS);
        drop(requests);
        assert!(awaited.begin(7).is_some());
    }
}
