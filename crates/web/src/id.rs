//! What an address names.

use crate::problem::Problem;
use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};

/// The `{id}` of an address, as it is written there. What cannot be read is a [`Problem`], as anything else that is wrong
/// with a request.
#[derive(Debug)]
pub(crate) struct Id(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(id)| Self(id)).map_err(|_| Problem::parameter("id", "id: it is not UTF-8 text"))
    }
}
