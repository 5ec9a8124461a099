//! Headers of requests and responses that are the same for all routes.

use crate::problem::Problem;
use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, Version, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Allows scripts, styles and images of this server only, and nothing inline.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// Headers of every response whose handler has not set them differently.
const DEFAULT_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// Adds the default headers, and OPTIONS to the methods of `Allow`, which axum writes outside all layers of a router.
pub(crate) fn add_response_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in DEFAULT_HEADERS {
        headers.entry(name).or_insert(value);
    }
    // tower-http answers a CORS preflight with 200, but there is no content.
    if headers.contains_key(header::ACCESS_CONTROL_ALLOW_METHODS) {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    let headers = response.headers_mut();
    if let Some(allow) = headers.get(header::ALLOW).and_then(with_options) {
        headers.insert(header::ALLOW, allow);
    }
    response
}

fn with_options(allow: &HeaderValue) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{},OPTIONS", allow.to_str().ok()?)).ok()
}

/// Refuses requests with more than one `Host` header, because a proxy may have checked the other one, and requests of HTTP/1.1
/// without one or with one that is no host (RFC 9112).
pub(crate) async fn require_single_host(request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let is_valid = match (hosts.next(), hosts.next()) {
        (None, _) => request.version() < Version::HTTP_11,
        (Some(host), None) => {
            host.is_empty() || Authority::try_from(host.as_bytes()).is_ok_and(|host| !has_user(&host))
        }
        (Some(_), Some(_)) => false,
    };
    if !is_valid {
        let detail = "a request must have exactly one valid Host header (RFC 9112)";
        return Problem::new(StatusCode::BAD_REQUEST, detail).into_response();
    }
    next.run(request).await
}

fn has_user(host: &Authority) -> bool {
    host.as_str().contains('@')
}
