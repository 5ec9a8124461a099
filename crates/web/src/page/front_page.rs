//! The list without filters, rendered once for all clients.
//!
//! It is the page that most visitors request. It is rendered when it is requested and has changed since; while servers change all
//! the time, it may be slightly out of date, because rendering takes at most a few percent of the time. The page contains the
//! cursor of the last event it reflects, so the script that continues with the events misses nothing.

use crate::{WebSettings, state::AppState};
use axum::http::Response;
use bytes::Bytes;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Rendering may take at most one part in this many of the time.
const RENDER_TIME_SHARE: u32 = 20;

/// Maximum age of a page that has changed since, whatever rendering costs.
const MAX_AGE: Duration = Duration::from_secs(2);

/// Maximum age of a page that is shown because there is no time to render another.
const MAX_AGE_UNDER_LOAD: Duration = Duration::from_secs(10);

/// The latest page, compressed and uncompressed.
#[derive(Debug, Default)]
pub(crate) struct FrontPage([Mutex<Option<RenderedPage>>; 2]);

#[derive(Debug)]
struct RenderedPage {
    version: u64,
    /// The settings that the page shows: another configuration makes another page.
    settings: Arc<WebSettings>,
    rendered_at: Instant,
    cost: Duration,
    response: Response<Bytes>,
}

impl FrontPage {
    /// The page, if it is current or not old enough for another one.
    pub fn fresh(&self, state: &AppState, is_gzip: bool) -> Option<Response<Bytes>> {
        self.get(state, is_gzip, |page| {
            let pause = (page.cost * RENDER_TIME_SHARE).min(MAX_AGE);
            page.version == state.live.snapshot().version() || page.rendered_at.elapsed() < pause
        })
    }

    /// The page, if it is not too old to be shown when no other can be rendered.
    pub fn stale(&self, state: &AppState, is_gzip: bool) -> Option<Response<Bytes>> {
        self.get(state, is_gzip, |page| page.rendered_at.elapsed() < MAX_AGE_UNDER_LOAD)
    }

    /// Renders the page, and keeps it.
    pub fn render(&self, state: &AppState, is_gzip: bool, render: impl FnOnce() -> Response<Bytes>) -> Response<Bytes> {
        let version = state.live.snapshot().version();
        let settings = Arc::clone(&state.settings());
        let rendered_at = Instant::now();
        let response = render();
        let page =
            RenderedPage { version, settings, rendered_at, cost: rendered_at.elapsed(), response: response.clone() };
        *self.0[usize::from(is_gzip)].lock().unwrap_or_else(PoisonError::into_inner) = Some(page);
        response
    }

    fn get(
        &self,
        state: &AppState,
        is_gzip: bool,
        is_usable: impl FnOnce(&RenderedPage) -> bool,
    ) -> Option<Response<Bytes>> {
        let page = self.0[usize::from(is_gzip)].lock().unwrap_or_else(PoisonError::into_inner);
        let page = page.as_ref().filter(|page| Arc::ptr_eq(&page.settings, &state.settings()))?;
        is_usable(page).then(|| page.response.clone())
    }
}
