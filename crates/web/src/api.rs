//! The API: `/api/v1`.

mod events;
pub(crate) mod servers;

use crate::shared::Web;
use axum::{Router, routing::get};

/// All addresses of the API.
pub(crate) fn router() -> Router<Web> {
    Router::new().route("/api/v1/servers", get(servers::list)).route("/api/v1/events", get(events::listen))
}
