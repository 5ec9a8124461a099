//! The admin API of the operator: `/api/v1/admin`.
//!
//! It exists only if an [`AdminToken`] is configured. Every request has to carry the token in a header that the page of another
//! site cannot make a browser send, and no such page can read the responses. Changes are kept in the data directory, apart from
//! the configuration file, which only the operator edits; each is recorded in an audit log.

mod access;
mod handlers;
mod pagination;
mod token;

pub(crate) use access::AdminAccess;
pub use token::{AdminToken, InvalidAdminToken};

use crate::{router::Routes, state::AppState};
use axum::{
    extract::DefaultBodyLimit,
    middleware::from_fn_with_state,
    routing::{delete, get, post},
};
use std::sync::Arc;

/// Maximum size in bytes of the body of a request.
const MAX_BODY: usize = 16 << 10;

/// Routes of the admin API, for requests with the operator's token only.
pub(crate) fn routes(state: &Arc<AppState>) -> Routes {
    Routes::new()
        .route("/api/v1/admin/bans", get(handlers::bans).post(handlers::ban))
        .route("/api/v1/admin/bans/{id}", delete(handlers::unban))
        .route("/api/v1/admin/servers/{id}/unlist", post(handlers::unlist))
        .route("/api/v1/admin/notes", get(handlers::notes).post(handlers::add_note))
        .route("/api/v1/admin/notes/{id}", delete(handlers::remove_note))
        .route("/api/v1/admin/audit", get(handlers::audit))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .route_layer(from_fn_with_state(Arc::clone(state), access::authorize))
}
