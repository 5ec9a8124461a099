//! Answers that clients have not taken yet: they are in memory, so there is a bound on them.

use super::Visitor;
use crate::{problem::Problem, serve::Place, shared::Web, turns::Turn};
use axum::{
    body::{Body, to_bytes},
    http::{Response, StatusCode, header},
    response::IntoResponse,
};
use bytes::Bytes;
use http_body::Body as _;

/// Marks an answer whose bytes are shared by all who ask for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForAll;

/// What is shorter is not counted: connections are.
const LEAST: u64 = 16 << 10;

/// When to ask again, in seconds: who takes nothing of an answer is cut after 20.
const WAIT: u32 = 5;

/// Bytes, and the place that they take.
struct Held {
    bytes: Bytes,
    /// Given back with the last of the bytes.
    _place: Place,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Counts an answer until it is sent, or refuses it if there are too many already. Streams are bounded by themselves.
pub(super) async fn hold(web: &Web, visitor: Visitor, mut response: Response<Body>) -> Response<Body> {
    let _turn = response.extensions_mut().remove::<Turn>();
    let size = response.body().size_hint().exact().unwrap_or_default();
    if size < LEAST || response.extensions().get::<ForAll>().is_some() {
        return response;
    }
    let count = usize::try_from(size).unwrap_or(usize::MAX);
    let Some(place) = web.answers.take_many(visitor.ip, web.is_exempt(visitor), count) else { return refuse() };
    let (parts, body) = response.into_parts();
    // It is all there: its size is known.
    let Ok(bytes) = to_bytes(body, count).await else { return refuse() };
    Response::from_parts(parts, Body::from(Bytes::from_owner(Held { bytes, _place: place })))
}

fn refuse() -> Response<Body> {
    let detail = format!(
        "too many long answers are under way: wait {WAIT} s, ask for fewer servers, or for the whole list at /api/v1/servers"
    );
    let mut response = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, WAIT.into());
    response
}
