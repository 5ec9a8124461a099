//! `GET /api/v1/events`: changes as server-sent events.

use crate::{
    ListNames,
    filter::InvalidParameter,
    live::{Cursor, EventScope, EventSubscription, IdFilter, Live},
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
use rallypoint_limit::EvictingPermit;
use rallypoint_lobby::Totals;
use serde::Serialize;
use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::sync::watch;
use utoipa::ToSchema;

/// Interval between comment lines while nothing changes. They keep proxies from closing the stream, and detect clients that are
/// gone.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Time in milliseconds that a browser waits before it reconnects.
const RECONNECT_DELAY: u32 = 2_000;

/// Minimum interval between two events with the totals of the list, for clients that follow some servers only.
const TOTALS_INTERVAL: Duration = Duration::from_secs(2);

/// One of the events of the stream.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes the stream, which is written by hand")]
struct ServerSentEvent {
    /// Its ID, with which a client resumes; events without one can be missed.
    #[schema(nullable = false)]
    id: Option<String>,
    /// Its name.
    event: EventName,
    /// JSON, according to the name.
    data: String,
    /// Time in milliseconds after which a browser reconnects.
    #[schema(nullable = false)]
    retry: Option<u32>,
}

/// The name of an event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "describes the stream, which is written by hand")]
enum EventName {
    Hello,
    Reset,
    Listed,
    Changed,
    Unlisted,
    Totals,
}

/// Live changes, as server-sent events
///
/// Events that the client has missed since `after` come first.
#[utoipa::path(
    get,
    operation_id = "live_events",
    path = "/api/v1/events",
    params(
        (
            "list" = Option<String>,
            Query,
            description = "Only events of this list: its UUID or its name.",
            example = "1ccf16b1-436d-856f-504d-cc1af306aaa7",
        ),
        (
            "ids" = Option<String>,
            Query,
            description = "Only events of these servers: at most 500 public IDs, or at least their first 8 digits, separated by \
                           commas. The stream then has events `totals`, too.",
            pattern = "^[0-9a-fA-F]{8,32}(,[0-9a-fA-F]{8,32}){0,499}$",
            example = "01234567,89abcdef",
        ),
        (
            "after" = Option<String>,
            Query,
            description = "The last event that the client has received, such as the `cursor` of a list. The header \
                           Last-Event-ID has the same meaning, and takes precedence.",
            pattern = "^[0-9a-fA-F]{8}-[0-9]{1,19}$",
            example = "5f3a09c1-1742",
        ),
    ),
    responses(
        (
            status = 200,
            description = "The data of `listed` is a Server; that of `changed` has its id, its list and the fields that have \
                           changed; that of `unlisted` has id, list, name and why. The data of `hello` and `reset` has the \
                           cursor; after `reset`, fetch the list again. The data of `totals`, which come at most every two \
                           seconds, has the number of servers, players, bots and slots of all lists, and as `listed` the \
                           number of servers that were listed since the lobby started.",
            body = inline(ServerSentEvent),
            content_type = "text/event-stream",
        ),
        (status = 404, description = "There is no such list."),
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
    let EventQuery { scope, after } =
        EventQuery::parse(query.as_deref().unwrap_or_default(), &headers, &state.settings().names)?;
    let streams = &state.quotas.event_streams;
    let permit = streams.take(state.quota_client(client), 1, &connection, Instant::now()).ok_or_else(|| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many event streams are open: try again later")
    })?;
    let totals = scope.ids.is_some().then(|| TotalsEvents { live: Arc::clone(&state.live), sent: None });
    let (subscription, start) = state.live.events().subscribe(after, scope, &connection);
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
    let stream = EventStream { head: Some(head), subscription, totals, shutdown, _permit: permit };
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
    scope: EventScope,
    /// The last event that the client has received.
    after: Option<Cursor>,
}

impl EventQuery {
    fn parse(query: &str, headers: &HeaderMap, names: &ListNames) -> Result<Self, InvalidParameter> {
        let mut parsed = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let invalid = |expected: &str| InvalidParameter::new(&name, expected);
            match &*name {
                "list" => {
                    parsed.scope.list = Some(names.find(&value).ok_or_else(|| InvalidParameter::no_list(&name))?);
                }
                "ids" => {
                    let ids = IdFilter::parse(&value).map_err(|error| invalid(&error.to_string()))?;
                    parsed.scope.ids = Some(ids);
                }
                "after" => parsed.after = Some(value.parse().map_err(|_| invalid("expected the cursor of a list"))?),
                _ => return Err(InvalidParameter::unknown(&name, &["list", "ids", "after"])),
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
    /// For a stream of some servers only.
    totals: Option<TotalsEvents>,
    shutdown: watch::Receiver<bool>,
    _permit: EvictingPermit<Connection>,
}

/// The events with the totals of the list. They have no ID, because a client that reconnects gets the latest anyway.
struct TotalsEvents {
    live: Arc<Live>,
    /// The totals that were sent last, and when.
    sent: Option<((Totals, u64), tokio::time::Instant)>,
}

impl TotalsEvents {
    /// The next event, if the totals have changed and the last one is old enough.
    fn poll(&mut self) -> Option<Bytes> {
        let now = tokio::time::Instant::now();
        let current = self.pending().filter(|_| self.next_at(now) <= now)?;
        self.sent = Some((current, now));
        let (Totals { servers, players, bots, slots }, listed) = current;
        let data = format!(
            "event: totals\ndata: {{\"servers\":{servers},\"players\":{players},\"bots\":{bots},\"slots\":{slots},\
             \"listed\":{listed}}}\n\n"
        );
        Some(data.into())
    }

    /// The current totals, if they differ from those that were sent last.
    fn pending(&self) -> Option<(Totals, u64)> {
        let snapshot = self.live.snapshot();
        let current = (snapshot.totals(), snapshot.listed());
        self.sent.is_none_or(|(sent, _)| sent != current).then_some(current)
    }

    /// The earliest time of the next event: `now` for the first one.
    fn next_at(&self, now: tokio::time::Instant) -> tokio::time::Instant {
        self.sent.map_or(now, |(_, at)| at + TOTALS_INTERVAL)
    }
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
            if let Some(event) = self.totals.as_mut().and_then(TotalsEvents::poll) {
                return Some((event, self));
            }
            let pending = self.totals.as_ref().filter(|totals| totals.pending().is_some());
            let totals_at = pending.map(|totals| totals.next_at(tokio::time::Instant::now()));
            tokio::select! {
                () = self.subscription.changed() => continue,
                () = tokio::time::sleep_until(totals_at.unwrap_or(heartbeat_at)), if totals_at.is_some() => continue,
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
