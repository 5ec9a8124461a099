//! Renders long responses on the blocking thread pool, a few at a time, in an order that is fair to all clients.
//!
//! The lobby shares the runtime with the web server: a list of a thousand servers that is rendered on one of its threads would
//! delay registrations and lists for milliseconds.

mod queue;

use crate::{middleware::ClientAddr, problem::Problem};
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use queue::RenderQueue;
use rallypoint_limit::Site;
use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::sync::oneshot;

/// Maximum number of responses that are rendered at the same time.
const MAX_CONCURRENT: usize = 2;

/// Maximum number of those whose network has not paused before the request (see [`queue`]): a visitor does not wait for them.
const MAX_SHARED: usize = 1;

/// Value of `Retry-After` in seconds: a full queue takes less than a second.
const RETRY_AFTER: u32 = 1;

/// Limits how many long responses are rendered at the same time. Clones share the limit.
#[derive(Clone, Debug)]
pub(crate) struct RenderLimiter(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    running: usize,
    /// Those of them whose network had not paused.
    shared: usize,
    queue: RenderQueue<oneshot::Sender<RenderPermit>>,
    refused: u64,
}

/// The right to render one response.
#[derive(Debug)]
pub(crate) struct RenderPermit {
    limiter: RenderLimiter,
    ip: IpAddr,
    is_shared: bool,
}

/// A request of one client that may have to be rendered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RenderRequest<'a> {
    pub limiter: &'a RenderLimiter,
    pub client: ClientAddr,
}

/// The response refused because too many others wait to be rendered.
#[derive(Debug)]
pub(crate) struct TooManyWaiting;

impl IntoResponse for TooManyWaiting {
    fn into_response(self) -> Response {
        let detail = format!("too many requests for long responses: wait {RETRY_AFTER} s");
        let mut response = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response();
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER.into());
        response
    }
}

impl Default for RenderLimiter {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { running: 0, shared: 0, queue: RenderQueue::default(), refused: 0 })))
    }
}

impl RenderLimiter {
    /// Waits for a permit, then runs `render` on the blocking thread pool.
    ///
    /// `render` has to count the bytes of its response (see [`response_limit`](crate::middleware::response_limit)) before it
    /// returns: the permit is held until then, so at most [`MAX_CONCURRENT`] responses exist that are not counted.
    pub async fn run<R: IntoResponse>(
        &self,
        client: ClientAddr,
        render: impl FnOnce() -> R + Send + 'static,
    ) -> Response {
        match self.acquire(client).await {
            Ok(permit) => permit.run(render).await,
            Err(refused) => refused.into_response(),
        }
    }

    /// Waits for the right to render a response.
    pub async fn acquire(&self, client: ClientAddr) -> Result<RenderPermit, TooManyWaiting> {
        let permit = {
            let mut state = self.state();
            let now = Instant::now();
            let is_shared = !state.queue.has_paused(Site::of(client.ip), now);
            let has_turn = !is_shared || state.shared < MAX_SHARED && state.queue.is_empty();
            if state.running < MAX_CONCURRENT && has_turn {
                state.queue.record_turn(client.ip, now);
                return Ok(state.start(self, client.ip, is_shared));
            }
            let (sender, permit) = oneshot::channel();
            // A client that has disconnected takes no place.
            state.queue.retain(|waiting| !waiting.is_closed());
            if let Some(refused) = state.queue.push(client.ip, sender, now) {
                state.refused += 1;
                // Its receiver gets an error.
                drop(refused);
            }
            permit
        };
        permit.await.map_err(|_| TooManyWaiting)
    }

    /// Number of requests that were refused because too many others waited.
    pub fn refused(&self) -> u64 {
        self.state().refused
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RenderRequest<'_> {
    /// Waits for the right to render a response.
    pub async fn acquire(&self) -> Result<RenderPermit, TooManyWaiting> {
        self.limiter.acquire(self.client).await
    }
}

impl State {
    /// The next permit to hand out, with the request that waits for it.
    fn next_permit(
        &mut self,
        limiter: &RenderLimiter,
        now: Instant,
    ) -> Option<(oneshot::Sender<RenderPermit>, RenderPermit)> {
        if self.running >= MAX_CONCURRENT {
            return None;
        }
        let (ip, sender, is_after_pause) = self.queue.pop(self.shared < MAX_SHARED, now)?;
        Some((sender, self.start(limiter, ip, !is_after_pause)))
    }

    fn start(&mut self, limiter: &RenderLimiter, ip: IpAddr, is_shared: bool) -> RenderPermit {
        self.running += 1;
        self.shared += usize::from(is_shared);
        RenderPermit { limiter: limiter.clone(), ip, is_shared }
    }
}

impl RenderPermit {
    /// Runs `render` on the blocking thread pool, under the conditions of [`RenderLimiter::run`].
    pub async fn run<R: IntoResponse>(self, render: impl FnOnce() -> R + Send + 'static) -> Response {
        // The permit moves into the closure because a blocking task runs to its end, even if the client disconnects.
        let task = move || {
            let response = render().into_response();
            drop(self);
            response
        };
        // Joining fails if `render` panics or the runtime shuts down.
        tokio::task::spawn_blocking(task).await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
    }
}

impl Drop for RenderPermit {
    fn drop(&mut self) {
        let mut state = self.limiter.state();
        let now = Instant::now();
        state.queue.record_turn(self.ip, now);
        state.running -= 1;
        state.shared -= usize::from(self.is_shared);
        state.queue.retain(|waiting| !waiting.is_closed());
        let next: Vec<_> = std::iter::from_fn(|| state.next_permit(&self.limiter, now)).collect();
        drop(state);
        for (waiting, permit) in next {
            // If the client disconnects at this moment, the permit comes back and goes to the next one.
            drop(waiting.send(permit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    const CLIENT: ClientAddr =
        ClientAddr { ip: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), is_local: false, is_unnamed: false };

    /// Starts to render a response that is finished when the sender is used or dropped.
    async fn start_rendering(limiter: &RenderLimiter) -> std::sync::mpsc::Sender<()> {
        let (finish, wait) = std::sync::mpsc::channel::<()>();
        let (started, is_started) = oneshot::channel();
        let render = move || {
            started.send(()).unwrap();
            let _ = wait.recv();
            "rendered"
        };
        let mut client = Box::pin(limiter.run(CLIENT, render));
        tokio::select! {
            _ = &mut client => panic!("rendering is not finished"),
            started = is_started => started.unwrap(),
        }
        // The client disconnects.
        drop(client);
        finish
    }

    #[tokio::test]
    async fn a_permit_is_held_while_a_response_is_rendered_even_if_the_client_disconnects() {
        let limiter = RenderLimiter::default();
        let finish = start_rendering(&limiter).await;
        assert_eq!(limiter.state().running, 1);
        finish.send(()).unwrap();
        while limiter.state().running > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(limiter.run(CLIENT, || "rendered").await.status(), StatusCode::OK);
        assert_eq!(limiter.state().running, 0);
    }

    #[tokio::test]
    async fn waiting_requests_are_rendered_or_refused_with_503() {
        let limiter = RenderLimiter::default();
        let held = [start_rendering(&limiter).await, start_rendering(&limiter).await];
        let waiting: Vec<_> = (0..100)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move { limiter.run(CLIENT, || "rendered").await })
            })
            .collect();
        while limiter.refused() < 36 {
            tokio::task::yield_now().await;
        }
        drop(held);
        let mut counts = [0, 0];
        for response in waiting {
            let response = response.await.unwrap();
            let is_refused = response.status() == StatusCode::SERVICE_UNAVAILABLE;
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), is_refused);
            counts[usize::from(is_refused)] += 1;
        }
        assert_eq!(counts, [64, 36]);
        // The first two, whose clients are gone, may finish last.
        while limiter.state().running > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn clients_that_disconnect_while_they_wait_take_no_place() {
        let limiter = RenderLimiter::default();
        let held = [start_rendering(&limiter).await, start_rendering(&limiter).await];
        for _ in 0..1_000 {
            let mut client = Box::pin(limiter.acquire(CLIENT));
            assert!(client.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(limiter.refused(), 0);
        let waiting = limiter.clone();
        let waiting = tokio::spawn(async move { waiting.acquire(CLIENT).await.is_ok() });
        drop(held);
        assert!(waiting.await.unwrap());
    }
}
