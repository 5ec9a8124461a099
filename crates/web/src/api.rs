//! The API: `/api/v1`.

mod events;
mod history;
mod lobbies;
mod openapi;
pub(crate) mod outcomes;
pub(crate) mod response;
pub(crate) mod servers;

pub(crate) use lobbies::no_parameters;

use crate::router::Routes;
use axum::routing::get;

/// Routes of the public API.
pub(crate) fn routes() -> Routes {
    Routes::new()
        .route("/api/v1/lobbies", get(lobbies::list))
        .route("/api/v1/lobbies/{id}/history", get(history::lobby))
        .route("/api/v1/servers/{id}", get(servers::one))
        .route("/api/v1/servers/{id}/history", get(history::server))
        .route("/api/v1/history", get(history::total))
        .route("/api/v1/openapi.json", get(openapi::document))
}

/// Routes of the public API whose handlers count the bytes of their responses.
pub(crate) fn long_routes() -> Routes {
    Routes::new().route("/api/v1/servers", get(servers::list))
}

/// Routes of live events.
pub(crate) fn event_routes() -> Routes {
    Routes::new().route("/api/v1/events", get(events::stream))
}

/// Routes whose responses depend on the address of the client, and which the scripts of other pages must not read.
pub(crate) fn private_routes() -> Routes {
    Routes::new().route("/api/v1/outcomes", get(outcomes::list))
}
