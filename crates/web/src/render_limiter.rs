//! Renders long responses on the blocking thread pool, a few at a time.
//!
//! The lobby shares the runtime with the web server: a list of a thousand servers that is rendered on one of its threads would
//! delay registrations and lists for milliseconds.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum number of responses that are rendered at the same time.
const MAX_CONCURRENT: usize = 2;

/// Limits how many long responses are rendered at the same time. Clones share the limit.
#[derive(Clone, Debug)]
pub(crate) struct RenderLimiter(Arc<Semaphore>);

impl Default for RenderLimiter {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_CONCURRENT)))
    }
}

impl RenderLimiter {
    /// Waits for a permit, then runs `render` on the blocking thread pool.
    ///
    /// `render` has to count the bytes of its response (see [`response_limit`](crate::middleware::response_limit)) before it
    /// returns: the permit is held until then, so at most [`MAX_CONCURRENT`] responses exist that are not counted.
    pub async fn run<R: IntoResponse>(&self, render: impl FnOnce() -> R + Send + 'static) -> Response {
        // Acquiring fails only if the semaphore is closed, which never happens.
        let Ok(permit) = Arc::clone(&self.0).acquire_owned().await else {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        };
        // The permit moves into the closure because a blocking task runs to its end, even if the client disconnects.
        let task = move || {
            let response = render().into_response();
            drop(permit);
            response
        };
        // Joining fails if `render` panics or the runtime shuts down.
        tokio::task::spawn_blocking(task).await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_permit_is_held_while_a_response_is_rendered_even_if_the_client_disconnects() {
        let limiter = RenderLimiter::default();
        let (finish, wait) = std::sync::mpsc::channel::<()>();
        let (started, is_started) = tokio::sync::oneshot::channel();
        let render = move || {
            started.send(()).unwrap();
            let _ = wait.recv();
            "rendered"
        };
        let mut client = Box::pin(limiter.run(render));
        tokio::select! {
            _ = &mut client => panic!("rendering is not finished"),
            started = is_started => started.unwrap(),
        }
        drop(client);
        assert_eq!(limiter.0.available_permits(), MAX_CONCURRENT - 1);
        finish.send(()).unwrap();
        while limiter.0.available_permits() < MAX_CONCURRENT {
            tokio::task::yield_now().await;
        }
        assert_eq!(limiter.run(|| "rendered").await.status(), StatusCode::OK);
        assert_eq!(limiter.0.available_permits(), MAX_CONCURRENT);
    }
}
