//! Errors of the router, and errors as pages for browsers.

use crate::{
    page::{AlwaysPage, error_page},
    problem::Problem,
    state::AppState,
};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::sync::Arc;

/// Handles requests that no route matches.
pub(crate) async fn not_found() -> Problem {
    Problem::not_found("there is no page at this address")
}

/// Handles methods that a route does not have, and OPTIONS. axum adds the methods that it has as `Allow`.
pub(crate) async fn method_not_allowed(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this address does not support that method").into_response()
}

/// Replaces the problem document of an error by a page: for clients that accept HTML, and where a page was requested.
pub(crate) async fn as_html(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    let accepts_html = accepts_html(request.headers());
    let mut response = next.run(request).await;
    let is_page = accepts_html || response.extensions_mut().remove::<AlwaysPage>().is_some();
    // `Problem` leaves itself in the extensions of its response for this.
    let Some(problem) = response.extensions_mut().remove::<Problem>().filter(|_| is_page) else {
        return response;
    };
    let mut page = error_page(&state, &problem);
    if let Some(retry_after) = response.headers_mut().remove(header::RETRY_AFTER) {
        page.headers_mut().insert(header::RETRY_AFTER, retry_after);
    }
    page
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains("text/html")
}
