//! The pages for browsers.
//!
//! Every page is rendered here, works without JavaScript, and has nothing inline. The templates escape all texts of game
//! servers; their links lead through a page that warns.

mod assets;
mod badge;
mod error;
mod facets;
mod feed;
pub(crate) mod format;
mod front_page;
mod graph;
mod history;
mod layout;
mod list;
mod lists;
mod lobby_host;
mod mirrors;
mod server;
mod server_row;
mod site;
mod status;
mod why;

pub(crate) use error::{AlwaysPage, error_page};
pub(crate) use front_page::{FrontPage, MAX_AGE_UNDER_LOAD};

use crate::router::Routes;
use axum::routing::get;
use tower_http::compression::{CompressionLayer, predicate::SizeAbove};

/// Minimum size in bytes of a response that is compressed: shorter ones fit into one packet anyway.
const MIN_COMPRESSED: usize = 1_024;

/// Routes of pages.
pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/lists", get(lists::all))
        .route("/lists/{id}", get(lists::one))
        .route("/why", get(why::show))
        .route("/servers/{id}", get(server::show))
        .route("/servers/{id}/website", get(server::website))
        .route("/servers/{id}/embed", get(server::embed))
        .route("/servers/{id}/badge.svg", get(badge::show))
        .route("/feed.atom", get(feed::all))
        .route("/lists/{id}/feed.atom", get(feed::list))
        .route("/theme.css", get(site::theme))
        .route("/logo", get(site::logo))
        .route("/maps/{name}", get(site::map_picture))
        .route("/favicon.ico", get(assets::icon))
        .layer(compression())
}

/// Routes of pages whose handlers count the bytes of their responses, and compress them off the runtime: a list of 200 servers
/// takes milliseconds, in which tower-http's layer would block the task of the connection.
pub(crate) fn long_routes() -> Routes {
    Routes::new().route("/", get(list::show)).route("/status", get(status::show))
}

/// Routes of scripts, styles and images.
pub(crate) fn asset_routes() -> Routes {
    Routes::new().route("/assets/{name}", get(assets::serve)).layer(compression())
}

fn compression() -> CompressionLayer<SizeAbove> {
    CompressionLayer::new().compress_when(SizeAbove::new(MIN_COMPRESSED as u64))
}
