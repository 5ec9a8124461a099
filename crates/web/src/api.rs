//! The API: `/api/v1`.

mod events;
mod history;
mod lists;
mod openapi;
pub(crate) mod outcomes;
pub(crate) mod response;
pub(crate) mod schema;
pub(crate) mod servers;

pub(crate) use lists::no_parameters;

use crate::{router::Routes, state::AppState};
use std::sync::Arc;
use utoipa_axum::{router::OpenApiRouter, routes};

/// Routes that describe themselves for the OpenAPI document.
pub(crate) type OpenRoutes = OpenApiRouter<Arc<AppState>>;

/// Routes of the public API.
pub(crate) fn routes() -> Routes {
    open_routes().into()
}

/// Routes of the public API whose handlers count the bytes of their responses.
pub(crate) fn long_routes() -> Routes {
    long_open_routes().into()
}

/// Routes of live events.
pub(crate) fn event_routes() -> Routes {
    event_open_routes().into()
}

/// Routes whose responses depend on the address of the client, and which the scripts of other pages must not read.
pub(crate) fn private_routes() -> Routes {
    private_open_routes().into()
}

fn open_routes() -> OpenRoutes {
    OpenRoutes::default()
        .routes(routes!(history::list))
        .routes(routes!(servers::one))
        .routes(routes!(history::server))
        .routes(routes!(history::total))
        .routes(routes!(openapi::document))
}

fn long_open_routes() -> OpenRoutes {
    OpenRoutes::default().routes(routes!(servers::list)).routes(routes!(lists::list))
}

fn event_open_routes() -> OpenRoutes {
    OpenRoutes::default().routes(routes!(events::stream))
}

fn private_open_routes() -> OpenRoutes {
    OpenRoutes::default().routes(routes!(outcomes::list))
}
