//! The pages that people see.
//!
//! Every page is written here, works without JavaScript, and has nothing inline. What strangers said is escaped by the
//! templates; links of strangers go through a page that warns.

mod assets;
mod badge;
mod compress;
mod facets;
mod frame;
mod graph;
mod line;
mod list;
mod lobbies;
mod past;
mod server;
mod shown;
mod sorry;
mod status;
mod why;

pub(crate) use sorry::{as_page, nowhere, wants_page};

use crate::shared::Web;
use axum::{Router, middleware::from_fn, routing::get};

/// All pages.
pub(crate) fn router() -> Router<Web> {
    Router::new()
        .route("/", get(list::show))
        .route("/status", get(status::show))
        .route("/lobbies", get(lobbies::all))
        .route("/lobbies/{id}", get(lobbies::one))
        .route("/why", get(why::show))
        .route("/servers/{id}", get(server::show))
        .route("/servers/{id}/website", get(server::website))
        .route("/servers/{id}/embed", get(server::embed))
        .route("/servers/{id}/badge.svg", get(badge::show))
        .route("/assets/{name}", get(assets::serve))
        .route("/favicon.ico", get(assets::icon))
        .layer(from_fn(compress::compress))
}
