//! `GET /api/v1/openapi.json`: the OpenAPI document of the API.

use super::{lobbies::no_parameters, response};
use crate::problem::Problem;
use axum::{body::Body, extract::RawQuery, http::HeaderMap, response::Response};
use bytes::Bytes;

/// Written by hand, and compared with the router in a test.
const DOCUMENT: &str = include_str!("openapi.json");

pub(super) async fn document(RawQuery(query): RawQuery, headers: HeaderMap) -> Result<Response, Problem> {
    no_parameters(query.as_deref())?;
    let document = Bytes::from_static(DOCUMENT.as_bytes());
    Ok(response::with_content_etag(document, response::JSON, &headers).map(Body::from))
}
