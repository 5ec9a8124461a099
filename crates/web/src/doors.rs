//! The paths of doors: master lists over HTTP, such as that of Bloodmasters at its old address (L17).
//!
//! A server announces its port, and the lobby probes it there before it is listed.

use crate::{Problem, middleware::ClientAddr, router::Routes, state::AppState};
use axum::{
    Extension,
    extract::{RawQuery, State},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use rallypoint_lobby::AnnouncementError;
use rallypoint_lobby_proto::doors::{DOORS, Door, HttpAction, HttpDoor, HttpError, HttpRequest, RequestHandler};
use std::{num::NonZeroU16, sync::Arc, time::Instant};

/// A door with a path, and what handles its requests.
#[derive(Clone)]
struct OpenDoor {
    door: &'static Door,
    http: HttpDoor,
    handler: Arc<dyn RequestHandler>,
}

pub(crate) fn routes() -> Routes {
    let http_doors = DOORS.into_iter().filter_map(|door| Some((door, door.http?)));
    http_doors.fold(Routes::new(), |routes, (door, http)| {
        let open = OpenDoor { door, http, handler: (http.start)().into() };
        let handle = move |method, state, client, query| handle_request(open.clone(), method, state, client, query);
        routes.route(http.path, get(handle))
    })
}

/// The list for clients, or the announcement of a server.
async fn handle_request(
    open: OpenDoor,
    method: Method,
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let request = HttpRequest { method: method.as_str(), query: query.as_deref().unwrap_or_default() };
    match open.handler.handle_request(&request) {
        // It looks at all servers of the list, so it waits for its turn like a page.
        Ok(HttpAction::List) => {
            let limiter = state.render_limiter.clone();
            let list = move || response(&open.http, &open.handler.list(Instant::now(), &state.lobby.lists()));
            Ok(limiter.run(client, list).await)
        }
        Ok(HttpAction::Announce { port, reply }) => {
            announce(&state, open.door, client, port).await?;
            Ok(response(&open.http, &reply))
        }
        Err(HttpError::Method(detail)) => Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)),
        Err(HttpError::Parameter(error)) => Err(Problem::parameter(error.field, error.to_string())),
    }
}

fn response(door: &HttpDoor, body: &[u8]) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(door.content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, body.to_vec()).into_response()
}

/// Handles the announcement of a server: the lobby probes it, and lists it if it replies.
async fn announce(state: &AppState, door: &'static Door, client: ClientAddr, port: NonZeroU16) -> Result<(), Problem> {
    // A server on this machine may know the lobby by any host name.
    if client.ip.is_loopback() && client.is_unnamed {
        let detail = "a proxy forwarded this announcement without naming the server's address: the operator has to list \
                      the proxy in web.trusted_proxies";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let handled = state.lobby.handle_announcement(door, client.ip, port, state.is_exempt(client)).await;
    handled.map_err(|error| {
        let status = match error {
            AnnouncementError::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, error.to_string())
    })
}
