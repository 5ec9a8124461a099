//! Counts requests by group of routes and class of status, for the metrics.

use crate::state::AppState;
use axum::{
    extract::{Request, State},
    http::StatusCode,
    middleware::Next,
    response::Response,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Routes that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteGroup {
    Admin,
    Events,
    Api,
    Assets,
    Health,
    Metrics,
    Page,
}

/// Labels of the classes of status codes, by their first digit.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Number of requests by group and class of status.
#[derive(Debug, Default)]
pub(crate) struct RequestCounters([[AtomicU64; CLASSES.len()]; RouteGroup::ALL.len()]);

impl RouteGroup {
    pub const ALL: [Self; 7] =
        [Self::Admin, Self::Events, Self::Api, Self::Assets, Self::Health, Self::Metrics, Self::Page];

    /// The label `route` of the metric.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Events => "events",
            Self::Api => "api",
            Self::Assets => "assets",
            Self::Health => "health",
            Self::Metrics => "metrics",
            Self::Page => "page",
        }
    }
}

impl RequestCounters {
    /// Counts a response to a request of this group.
    pub fn add(&self, group: RouteGroup, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        self.0[group as usize][class].fetch_add(1, Relaxed);
    }

    /// All counters with their group and the label of their class.
    pub fn iter(&self) -> impl Iterator<Item = (RouteGroup, &'static str, u64)> {
        RouteGroup::ALL.into_iter().zip(&self.0).flat_map(|(group, classes)| {
            CLASSES.into_iter().zip(classes).map(move |(class, count)| (group, class, count.load(Relaxed)))
        })
    }
}

/// Counts the requests of a group of routes.
pub(crate) async fn count_requests(
    State((state, group)): State<(Arc<AppState>, RouteGroup)>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    state.request_counters.add(group, response.status());
    response
}
