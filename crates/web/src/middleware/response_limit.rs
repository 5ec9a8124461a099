//! Limits the bytes of responses that clients have not received yet: they are held in memory.

use super::ClientAddr;
use crate::{problem::Problem, server::Connection, state::AppState};
use axum::{
    Extension,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http_body::Body as _;
use rallypoint_limit::EvictingPermit;
use std::{sync::Arc, time::Instant};

/// Minimum size in bytes of a response that is counted. Shorter ones are bounded by the number of connections.
const MIN_COUNTED: usize = 16 << 10;

/// Value of `Retry-After` in seconds: clients that receive nothing are disconnected after 20 s.
const RETRY_AFTER: u32 = 5;

/// The bytes of a response together with the permit for them.
///
/// The permit belongs to the bytes, not to the body: hyper drops a body as soon as it has queued its last frame, long before
/// the client has received it.
struct CountedBytes {
    bytes: Bytes,
    /// Released with the last reference to the bytes.
    _permit: EvictingPermit<Connection>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The response refused because clients have not received too many bytes of earlier ones.
#[derive(Debug)]
struct TooManyBytes;

impl IntoResponse for TooManyBytes {
    fn into_response(self) -> Response {
        let detail = format!("too many long responses are being sent: wait {RETRY_AFTER} s, or request fewer servers");
        let mut response = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response();
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER.into());
        response
    }
}

/// Counts the responses of the handlers inside, or replaces them by 503 if too many bytes are on their way. Event streams,
/// whose length is not known, are bounded separately.
pub(crate) async fn limit_response_bytes(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    let size = response.body().size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let Some(size) = size.filter(|size| *size >= MIN_COUNTED) else { return response };
    let (parts, body) = response.into_parts();
    // The whole body is in memory already, because its size is known; reading it does not wait.
    let Ok(bytes) = to_bytes(body, size).await else { return TooManyBytes.into_response() };
    count_response(&state, client, &connection, Response::from_parts(parts, bytes))
}

/// Counts a response that was made for one client, until it has received the last byte of it. If there are too many bytes, the
/// connections of slow readers are closed.
pub(crate) fn count_response(
    state: &AppState,
    client: ClientAddr,
    connection: &Arc<Connection>,
    response: Response<Bytes>,
) -> Response {
    let quota = &state.quotas.response_bytes;
    count(response, |size| quota.take(state.quota_client(client), size, connection, Instant::now()))
}

/// Counts a response whose bytes all clients share: there is one copy, but while the list changes, each client can hold on to
/// another version of it. A list that is longer than the limit can still be sent, one at a time.
pub(crate) fn count_shared_response(
    state: &AppState,
    client: ClientAddr,
    connection: &Arc<Connection>,
    response: Response<Bytes>,
) -> Response {
    let quota = &state.quotas.shared_list_bytes;
    count(response, |size| {
        let size = size.min(state.limits.list_bytes_per_address);
        quota.take(state.quota_client(client), size, connection, Instant::now())
    })
}

fn count(response: Response<Bytes>, take: impl FnOnce(usize) -> Option<EvictingPermit<Connection>>) -> Response {
    let size = response.body().len();
    if size < MIN_COUNTED {
        return response.map(Body::from);
    }
    match take(size) {
        Some(permit) => response.map(|bytes| Body::from(Bytes::from_owner(CountedBytes { bytes, _permit: permit }))),
        None => TooManyBytes.into_response(),
    }
}
