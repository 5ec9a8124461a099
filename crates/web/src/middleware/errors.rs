//! Errors of the router, and errors as pages for browsers.

use crate::{page::error_page, problem::Problem};
use axum::{
    extract::Request,
    http::{HeaderMap, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

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

/// Replaces the problem document of an error by a page, for clients that accept HTML.
pub(crate) async fn as_html(request: Request, next: Next) -> Response {
    let accepts_html = accepts_html(request.headers());
    let mut response = next.run(request).await;
    // `Problem` leaves itself in the extensions of its response for this.
    let Some(problem) = response.extensions_mut().remove::<Problem>().filter(|_| accepts_html) else {
        return response;
    };
    let mut page = error_page(&problem);
    if let Some(retry_after) = response.headers_mut().remove(header::RETRY_AFTER) {
        page.headers_mut().insert(header::RETRY_AFTER, retry_after);
    }
    page
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains("text/html")
}
