//! What the operator can do by HTTP: `/api/v1/admin`.
//!
//! It is there only if there is a [`Token`]. Every request has to bring it in a header that no page of somebody else can
//! make a browser send, and no page may read the answers. What is decided here is kept in the data directory, beside the
//! configuration, which stays the operator's own; and all of it is written down in an audit log.

mod audit;
mod desk;
mod operator;
mod part;
mod record;
mod requests;
mod token;

pub use desk::{Admin, AdminError};
pub(crate) use operator::Refusals;
pub use token::{NotAToken, Token};

use crate::shared::Web;
use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{MethodRouter, delete, get, post},
};

/// No request has more to say, in bytes.
const LONGEST_REQUEST: usize = 16 << 10;

/// All addresses, for those who are allowed.
pub(crate) fn router(web: &Web) -> Router<Web> {
    let router = routes().into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    router
        .layer(DefaultBodyLimit::max(LONGEST_REQUEST))
        .route_layer(middleware::from_fn_with_state(Web::clone(web), operator::admit))
}

/// A table, so that the document of the API can be compared with it.
pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Web>)> {
    vec![
        ("/api/v1/admin/bans", get(requests::bans).post(requests::ban)),
        ("/api/v1/admin/bans/{id}", delete(requests::unban)),
        ("/api/v1/admin/servers/{id}/unlist", post(requests::unlist)),
        ("/api/v1/admin/notes", get(requests::notes).post(requests::note)),
        ("/api/v1/admin/notes/{id}", delete(requests::forget_note)),
        ("/api/v1/admin/audit", get(requests::audit)),
    ]
}
