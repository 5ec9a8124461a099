//! The admin API of the operator: `/api/v1/admin`.
//!
//! It exists only if an [`AdminToken`] is configured. Every request has to carry the token in a header that the page of another
//! site cannot make a browser send, and no such page can read the responses. Changes are kept in the data directory, apart from
//! the configuration file, which only the operator edits; each is recorded in an audit log.

mod access;
mod handlers;
mod pagination;
mod request_schema;
mod token;
pub(crate) mod views;

pub(crate) use access::AdminAccess;
pub use token::{AdminToken, InvalidAdminToken};

use crate::{api::OpenRoutes, router::Routes, state::AppState};
use axum::{extract::DefaultBodyLimit, middleware::from_fn_with_state};
use std::sync::Arc;
use utoipa_axum::routes;

/// Maximum size in bytes of the body of a request.
const MAX_BODY: usize = 16 << 10;

/// Routes of the admin API, for requests with the operator's token only.
pub(crate) fn routes(state: &Arc<AppState>) -> Routes {
    Routes::from(open_routes())
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .route_layer(from_fn_with_state(Arc::clone(state), access::authorize))
}

/// Admin routes without layers, for the OpenAPI document.
pub(crate) fn open_routes() -> OpenRoutes {
    OpenRoutes::default()
        .routes(routes!(handlers::bans, handlers::ban))
        .routes(routes!(handlers::unban))
        .routes(routes!(handlers::unlist))
        .routes(routes!(handlers::notes, handlers::add_note))
        .routes(routes!(handlers::remove_note))
        .routes(routes!(handlers::audit))
}
