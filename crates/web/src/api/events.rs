//! `GET /api/v1/events`: changes as server-sent events.

use crate::{
    evicting_quota::EvictingPermit,
    filter::InvalidParameter,
    live::{Cursor, EventSubscription},
    middleware::ClientAddr,
    problem::Problem,
    server::Connection,
    state::AppState,
};
use axum::{
    Extension,
    body::{Body, HttpBody},
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use http_body::Frame;
use rallypoint_wire::lobby::LobbyId;
use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Interval between comment lines while nothing changes. They keep proxies from closing the stream, and detect clients that are
/// gone.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Time in milliseconds that a browser waits before it reconnects.
const RECONNECT_DELAY: u32 = 2_000;

/// Live changes, as server-sent events
///
/// Events that the client has missed since `after` come first.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    params(
        (
            "lobby" = Option<String>,
            Query,
            description = "Only events of this lobby.",
            format = "uuid",
            example = "1ccf16b1-436d-856f-504d-cc1af306aaa7",
        ),
        (
            "after" = Option<String>,
            Query,
            description = "The last event that the client has received, such as the `cursor` of a list. The header \
                           Last-Event-ID has the same meaning, and takes precedence.",
            example = "5f3a09c1-1742",
        ),
    ),
    responses(
        (
            status = 200,
            description = "The data of `listed` and `changed` is a Server, that of `unlisted` has id, lobby, name and why. The \
                           data of `hello` and `reset` has the cursor; after `reset`, fetch the list again.",
            body = String,
            content_type = "text/event-stream",
        ),
        (status = 503, description = "Too many event streams are open."),
    )
)]
pub(crate) async fn stream(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<ClientAddr>,
    Extension(connection): Extension<Arc<Connection>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let EventQuery { lobby, after } = EventQuery::parse(query.as_deref().unwrap_or_default(), &headers)?;
    let streams = &state.quotas.event_streams;
    let permit = streams.take(state.quota_client(client), 1, &connection, Instant::now()).ok_or_else(|| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many event streams are open: try again later")
    })?;
    let (subscription, start) = state.live.events().subscribe(after, lobby, &connection);
    let first_event = match (after, start) {
        (None, _) => Some("hello"),
        (Some(_), Err(_)) => Some("reset"),
        (Some(_), Ok(_)) => None,
    };
    let cursor = subscription.cursor();
    let first_event =
        first_event.map(|name| format!("id: {cursor}\nevent: {name}\ndata: {{\"cursor\":\"{cursor}\"}}\n\n"));
    let head = format!("retry: {RECONNECT_DELAY}\n\n{}", first_event.unwrap_or_default()).into();
    let shutdown = state.shutdown.clone();
    let stream = EventStream { head: Some(head), subscription, shutdown, _permit: permit };
    let mut response = Response::new(Body::new(EventBody(Box::pin(stream.next()))));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Otherwise nginx would buffer several kilobytes before it passes anything on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// The parameters of a request.
#[derive(Debug, Default)]
struct EventQuery {
    lobby: Option<LobbyId>,
    /// The last event that the client has received.
    after: Option<Cursor>,
}

impl EventQuery {
    fn parse(query: &str, headers: &HeaderMap) -> Result<Self, InvalidParameter> {
        let mut parsed = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let invalid = |expected: &str| InvalidParameter::new(&name, expected);
            match &*name {
                "lobby" | "after" if value.is_empty() => {}
                "lobby" => parsed.lobby = Some(value.parse().map_err(|_| invalid("expected the UUID of a lobby"))?),
                "after" => parsed.after = Some(value.parse().map_err(|_| invalid("expected the cursor of a list"))?),
                _ => return Err(InvalidParameter::unknown(&name, &["lobby", "after"])),
            }
        }
        // A browser reconnects with the address of its first request, but adds the last event that it has received since.
        if let Some(id) = headers.get("last-event-id").filter(|id| !id.is_empty()) {
            let id = id.to_str().ok().and_then(|id| id.parse().ok());
            // An ID of another server is treated as one that is too old: the first event is a reset.
            parsed.after = Some(id.unwrap_or(Cursor { epoch: 0, number: u64::MAX }));
        }
        Ok(parsed)
    }
}

/// An open event stream.
struct EventStream {
    /// The first bytes of the stream, until they are sent.
    head: Option<Bytes>,
    subscription: EventSubscription,
    shutdown: watch::Receiver<bool>,
    _permit: EvictingPermit,
}

impl EventStream {
    /// The next bytes. `None` ends the stream: when the server shuts down, and when a slow client has lost events. The client
    /// reconnects and resumes, as long as the missed events are kept.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if let Some(head) = self.head.take() {
            return Some((head, self));
        }
        let heartbeat_at = tokio::time::Instant::now() + HEARTBEAT_INTERVAL;
        loop {
            if let Some(events) = self.subscription.poll_events().ok()? {
                return Some((events, self));
            }
            tokio::select! {
                () = self.subscription.changed() => continue,
                () = tokio::time::sleep_until(heartbeat_at) => {}
                _ = self.shutdown.wait_for(|shutdown| *shutdown) => return None,
            }
            return Some((Bytes::from_static(b":\n\n"), self));
        }
    }
}

type NextEvents = Pin<Box<dyn Future<Output = Option<(Bytes, EventStream)>> + Send>>;

/// The body of an event stream. It waits for the next events only after the previous ones were passed to the connection, so
/// nothing is kept for a slow client but its position.
struct EventBody(NextEvents);

impl HttpBody for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some((bytes, stream)) = ready!(self.0.as_mut().poll(context)) else {
            self.0 = Box::pin(std::future::ready(None));
            return Poll::Ready(None);
        };
        self.0 = Box::pin(stream.next());
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}
