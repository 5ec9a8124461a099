//! All routes, and the layers around them.
//!
//! A request passes, from the outside in: for pages, the conversion of errors to HTML; the request counter of its group; for the
//! public API, the CORS headers; the rate limit; the check of its `Host` header; the limit of response bytes; its handler. The
//! rate limit is inside the HTML conversion and the CORS headers, so that people and scripts can read the reason for a refusal.

use crate::{
    admin, api, doors, health, metrics,
    middleware::{
        as_html, limit_requests, limit_response_bytes, method_not_allowed, not_found,
        request_count::{RouteGroup, count_requests},
        require_single_host,
    },
    page,
    state::AppState,
};
use axum::{
    Router,
    http::{HeaderName, Method, header},
    middleware::{from_fn, from_fn_with_state},
    routing::any,
};
use std::{sync::Arc, time::Duration};
use tower::ServiceBuilder;
use tower_http::cors::{Any, CorsLayer};

/// Routes whose state is not bound yet.
pub(crate) type Routes = Router<Arc<AppState>>;

/// The router of the whole server.
pub(crate) fn router(state: Arc<AppState>) -> Router {
    let layers = Layers { state: &state };
    let page = layers.limit_bytes(page::routes().merge(doors::routes())).merge(page::long_routes()).fallback(not_found);
    let html = Routes::new()
        .merge(layers.guard(RouteGroup::Page, page))
        .merge(layers.guard(RouteGroup::Assets, layers.limit_bytes(page::asset_routes())))
        .merge(layers.guard(RouteGroup::Metrics, layers.limit_bytes(metrics::routes())))
        .merge(layers.guard(RouteGroup::Health, health::routes()))
        .layer(from_fn_with_state(Arc::clone(&state), as_html));
    let public_api =
        layers.limit_bytes(api::routes()).merge(api::long_routes()).route("/api/v1/{*path}", any(not_found));
    let private_api = layers.limit_bytes(api::private_routes()).route("/api/{*path}", any(not_found));
    Router::new()
        .merge(html)
        .merge(layers.count(RouteGroup::Api, layers.admit(public_api).layer(cors())))
        .merge(layers.count(RouteGroup::Events, layers.admit(api::event_routes()).layer(cors())))
        .merge(layers.guard(RouteGroup::Api, private_api))
        .merge(layers.guard(RouteGroup::Admin, layers.limit_bytes(admin::routes(&state))))
        .with_state(state)
}

/// Adds layers to groups of routes.
struct Layers<'a> {
    state: &'a Arc<AppState>,
}

impl Layers<'_> {
    /// Counts all requests, and admits those within the limits.
    fn guard(&self, group: RouteGroup, routes: Routes) -> Routes {
        self.count(group, self.admit(routes))
    }

    fn count(&self, group: RouteGroup, routes: Routes) -> Routes {
        routes.layer(from_fn_with_state((Arc::clone(self.state), group), count_requests))
    }

    /// Refuses requests that are over the rate limit, malformed, or of a method that the route does not have.
    fn admit(&self, routes: Routes) -> Routes {
        let layers = ServiceBuilder::new()
            .layer(from_fn_with_state(Arc::clone(self.state), limit_requests))
            .layer(from_fn(require_single_host));
        routes.method_not_allowed_fallback(method_not_allowed).layer(layers)
    }

    /// For all routes but the long ones, whose handlers count their bytes themselves, before other responses are rendered.
    fn limit_bytes(&self, routes: Routes) -> Routes {
        routes.layer(from_fn_with_state(Arc::clone(self.state), limit_response_bytes))
    }
}

/// Lets the scripts of any page read the public API.
fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::HEAD])
        .allow_headers([
            header::ACCEPT,
            header::CACHE_CONTROL,
            header::IF_NONE_MATCH,
            HeaderName::from_static("last-event-id"),
        ])
        .expose_headers([
            header::ETAG,
            HeaderName::from_static("ratelimit-limit"),
            HeaderName::from_static("ratelimit-remaining"),
            HeaderName::from_static("ratelimit-reset"),
            header::RETRY_AFTER,
        ])
        .max_age(Duration::from_secs(86_400))
        // The responses do not depend on the origin.
        .vary([])
}
