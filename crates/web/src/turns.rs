//! Long answers are written in turns, and beside the runtime: the lobby lives on the same one, and has to go on.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many answers are written at once.
const AT_ONCE: usize = 2;

/// The turns to write an answer. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<Semaphore>);

/// A turn to write, until all clones are dropped. It stays with an answer until that is counted, so that no more than a few
/// answers exist that are not.
#[derive(Clone, Debug)]
pub(crate) struct Turn(#[expect(dead_code, reason = "it is only held")] Arc<OwnedSemaphorePermit>);

impl Default for Turns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Turns {
    /// Writes an answer when it is its turn.
    pub async fn write<R: IntoResponse>(&self, write: impl FnOnce() -> R + Send + 'static) -> Response {
        // Both fail only when the runtime is going away.
        let Ok(turn) = Arc::clone(&self.0).acquire_owned().await else {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        };
        // The turn goes along: work that was begun goes on when the client is gone.
        let work = move || {
            let mut response = write().into_response();
            response.extensions_mut().insert(Turn(Arc::new(turn)));
            response
        };
        let written = tokio::task::spawn_blocking(work).await;
        written.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_turn_lasts_until_the_answer_is_counted() {
        let turns = Turns::default();
        let mut first = turns.write(|| "first").await;
        let second = turns.write(|| "second").await;
        assert_eq!(turns.0.available_permits(), 0);
        first.extensions_mut().remove::<Turn>();
        assert_eq!(turns.0.available_permits(), 1);
        drop((first, second));
        assert_eq!(turns.0.available_permits(), AT_ONCE);
    }
}
