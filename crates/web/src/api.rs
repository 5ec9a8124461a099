//! The API: `/api/v1`.

pub(crate) mod answer;
mod events;
mod history;
mod lobbies;
mod openapi;
pub(crate) mod outcomes;
pub(crate) mod servers;

pub(crate) use lobbies::no_parameters;

use crate::shared::Web;
use axum::{
    Router,
    routing::{MethodRouter, get},
};

/// All addresses of the API.
pub(crate) fn router() -> Router<Web> {
    routes().into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods))
}

/// A table, so that the document of the API can be compared with it.
fn routes() -> Vec<(&'static str, MethodRouter<Web>)> {
    vec![
        ("/api/v1/lobbies", get(lobbies::list)),
        ("/api/v1/lobbies/{id}/history", get(history::lobby)),
        ("/api/v1/servers", get(servers::list)),
        ("/api/v1/servers/{id}", get(servers::one)),
        ("/api/v1/servers/{id}/history", get(history::server)),
        ("/api/v1/history", get(history::total)),
        ("/api/v1/events", get(events::listen)),
        ("/api/v1/outcomes", get(outcomes::ask)),
        ("/api/v1/openapi.json", get(openapi::document)),
    ]
}
