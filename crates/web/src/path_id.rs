//! The `{id}` segment of a path.

use crate::problem::Problem;
use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};

/// The `{id}` segment of a path, percent-decoded. Bytes that are not UTF-8 are a [`Problem`], like any other invalid parameter.
#[derive(Debug)]
pub(crate) struct PathId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(id)| Self(id)).map_err(|_| Problem::parameter("id", "id: it is not UTF-8 text"))
    }
}
