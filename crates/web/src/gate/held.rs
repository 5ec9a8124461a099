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
    if size < LEAST {
        return response;
    }
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let (places, count) = match response.extensions().get::<ForAll>() {
        None => (&web.answers, size),
        // However long the list is, everybody can have it.
        Some(ForAll) => (&web.lists, size.min(web.limits.list_bytes_per_address)),
    };
    let Some(place) = places.take_many(visitor.ip, web.is_exempt(visitor), count) else { return refuse() };
    let (parts, body) = response.into_parts();
    // It is all there: its size is known.
    let Ok(bytes) = to_bytes(body, size).await else { return refuse() };
    Response::from_parts(parts, Body::from(Bytes::from_owner(Held { bytes, _place: place })))
}

fn refuse() -> Response<Body> {
    let detail = format!("too many long answers are under way: wait {WAIT} s, or ask for fewer servers");
    let mut response = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, WAIT.into());
    response
}
