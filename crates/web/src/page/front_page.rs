//! The list without filters, rendered once for all clients.
//!
//! It is the page that most visitors request. It is rendered when it is requested and has changed since; while servers change all
//! the time, it may be slightly out of date, because rendering takes at most a few percent of the time. The page contains the
//! cursor of the last event it reflects, so the script that continues with the events misses nothing.

use crate::{WebSettings, render_age::RenderAge, state::AppState, trends::Trends};
use axum::http::Response;
use bytes::Bytes;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Maximum age of a page that has changed since, whatever rendering costs.
const MAX_AGE: Duration = Duration::from_secs(2);

/// Maximum age of a page that is shown because there is no time to render another.
pub(crate) const MAX_AGE_UNDER_LOAD: Duration = Duration::from_secs(10);

/// The latest page, compressed and uncompressed.
#[derive(Debug, Default)]
pub(crate) struct FrontPage([Mutex<Option<RenderedPage>>; 2]);

#[derive(Debug)]
struct RenderedPage {
    age: RenderAge,
    /// The settings that the page shows: another configuration makes another page.
    settings: Arc<WebSettings>,
    /// The sparklines of the page. They change while the list does not.
    trends: Arc<Trends>,
    /// Whether the page has a notice that the cluster is disconnected.
    has_notice: bool,
    response: Response<Bytes>,
}

impl FrontPage {
    /// The page, if it is current or not old enough for another one.
    pub fn fresh(&self, state: &AppState, is_gzip: bool) -> Option<Response<Bytes>> {
        self.get(state, is_gzip, |page| page.age.is_fresh(state.live.snapshot().version(), MAX_AGE))
    }

    /// The page, if it is not too old to be shown when no other can be rendered.
    pub fn stale(&self, state: &AppState, is_gzip: bool) -> Option<Response<Bytes>> {
        self.get(state, is_gzip, |page| page.age.elapsed() < MAX_AGE_UNDER_LOAD)
    }

    /// Renders the page, and keeps it.
    pub fn render(&self, state: &AppState, is_gzip: bool, render: impl FnOnce() -> Response<Bytes>) -> Response<Bytes> {
        let version = state.live.snapshot().version();
        let settings = Arc::clone(&state.settings());
        let trends = state.trends.load_full();
        let has_notice = is_cluster_disconnected(state);
        let started = Instant::now();
        let response = render();
        let age = RenderAge::new(version, started);
        let page = RenderedPage { age, settings, trends, has_notice, response: response.clone() };
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
        let page = Some(page).filter(|page| Arc::ptr_eq(&page.trends, &state.trends.load()))?;
        let page = Some(page).filter(|page| page.has_notice == is_cluster_disconnected(state))?;
        is_usable(page).then(|| page.response.clone())
    }
}

/// Whether this lobby is a node of a cluster that it has no contact with.
pub(crate) fn is_cluster_disconnected(state: &AppState) -> bool {
    state.lobby.cluster_status().is_some_and(|status| !status.is_connected)
}
