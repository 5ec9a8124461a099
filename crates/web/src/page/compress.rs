//! Pages as few bytes: a list of 200 servers shrinks to a twentieth.

use crate::{api::answer::accepts_gzip, prebuilt::gzip};
use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// What is shorter fits into one packet anyway.
const LEAST: usize = 1_024;

/// What is longer is compressed beside the runtime, which has others to serve.
const LONG: usize = 32 << 10;

/// No page is longer: there are bounds on what is in it.
const MOST: usize = 64 << 20;

/// Compresses an answer for whoever takes that.
pub(super) async fn compress(request: Request, next: Next) -> Response {
    let wants_gzip = accepts_gzip(request.headers());
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !wants_gzip {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(body) = to_bytes(body, MOST).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    if body.len() < LEAST {
        return Response::from_parts(parts, Body::from(body));
    }
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.remove(header::CONTENT_LENGTH);
    let body = match body.len() {
        ..LONG => gzip(&body),
        _ => tokio::task::spawn_blocking(move || gzip(&body)).await.unwrap_or_default(),
    };
    Response::from_parts(parts, Body::from(body))
}
