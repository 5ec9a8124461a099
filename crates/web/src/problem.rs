//! Errors of requests as problem documents, `application/problem+json` (RFC 9457).

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

/// An error response: a problem document (RFC 9457).
///
/// ```
/// use axum::{http::StatusCode, response::IntoResponse};
/// use rallypoint_web::Problem;
///
/// let problem = Problem::parameter("limit", "limit: expected a number from 1 to 1000");
/// assert_eq!(problem.status(), StatusCode::BAD_REQUEST);
/// assert_eq!(problem.into_response().headers()["content-type"], "application/problem+json");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(description = "What is wrong with a request (RFC 9457).")]
pub struct Problem {
    /// Always `about:blank`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The reason phrase of the status.
    title: &'static str,
    /// The status code.
    #[serde(serialize_with = "as_number")]
    #[schema(value_type = u16)]
    status: StatusCode,
    /// What is wrong, and what to do about it.
    pub detail: String,
    /// The name of the invalid parameter; null if there is none.
    #[schema(required)]
    pub parameter: Option<String>,
}

impl Problem {
    /// A problem with this status.
    #[must_use]
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { kind: "about:blank", title, status, detail: detail.into(), parameter: None }
    }

    /// An invalid parameter: status 400.
    #[must_use]
    pub fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail).with_parameter(name)
    }

    /// Names the parameter that the problem is about.
    #[must_use]
    pub fn with_parameter(self, parameter: impl Into<String>) -> Self {
        Self { parameter: Some(parameter.into()), ..self }
    }

    /// Nothing exists at this address: status 404.
    #[must_use]
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Only maps with keys that are not strings would fail.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        // For the middleware that shows errors as pages to browsers.
        response.extensions_mut().insert(self);
        let json = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

fn as_number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}
