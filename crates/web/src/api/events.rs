//! `GET /api/v1/events`: what changes, as server-sent events.

use crate::{
    book::{Batch, Cursor},
    filter::BadParameter,
    gate::Visitor,
    live::Joined,
    problem::Problem,
    serve::Place,
    shared::Web,
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
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::sync::{broadcast, watch};

/// A line now and then keeps proxies from closing a quiet stream, and shows whether the client is still there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// After a lost connection a browser waits this long, in milliseconds.
const RETRY: u32 = 2_000;

/// `GET /api/v1/events`
pub(crate) async fn listen(
    State(web): State<Web>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Wanted { lobby, after } = Wanted::parse(query.as_deref().unwrap_or_default(), &headers)?;
    let place = web.listeners.take(visitor.ip, web.is_exempt(visitor)).ok_or_else(|| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many connections listen to events already: try again later")
    })?;
    let Joined { cursor, missed, batches } = web.live.join(after, lobby);
    let mut pieces = VecDeque::from(missed.clone().unwrap_or_default());
    let greeting = match (after, missed) {
        (None, _) => Some("hello"),
        (Some(_), None) => Some("reset"),
        (Some(_), Some(_)) => None,
    };
    let greeting = greeting.map(|name| format!("id: {cursor}\nevent: {name}\ndata: {{\"cursor\":\"{cursor}\"}}\n\n"));
    pieces.push_front(format!("retry: {RETRY}\n\n{}", greeting.unwrap_or_default()).into());
    let listener = Listener { lobby, pieces, batches, ending: web.ending.clone(), _place: place };
    let mut response = Response::new(Body::new(Stream(Box::pin(listener.next()))));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would otherwise wait until it has several kilobytes.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// What a listener asks for.
#[derive(Debug, Default)]
struct Wanted {
    lobby: Option<LobbyId>,
    /// The last event that it knows.
    after: Option<Cursor>,
}

impl Wanted {
    fn parse(query: &str, headers: &HeaderMap) -> Result<Self, BadParameter> {
        let mut wanted = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = |expected: &str| BadParameter::new(&name, expected);
            match &*name {
                "lobby" | "after" if value.is_empty() => {}
                "lobby" => wanted.lobby = Some(value.parse().map_err(|_| wrong("expected the UUID of a lobby"))?),
                "after" => wanted.after = Some(value.parse().map_err(|_| wrong("expected the cursor of a list"))?),
                _ => return Err(wrong("there is no such parameter; there are lobby, after")),
            }
        }
        // A browser that reconnects asks for the same address as before, but says what it has seen since.
        if let Some(id) = headers.get("last-event-id").filter(|id| !id.is_empty()) {
            let id = id.to_str().ok().and_then(|id| id.parse().ok());
            // An id that is not ours is as good as one that is too old: the answer is a reset.
            wanted.after = Some(id.unwrap_or(Cursor { epoch: 0, number: u64::MAX }));
        }
        Ok(wanted)
    }
}

/// One who listens.
struct Listener {
    lobby: Option<LobbyId>,
    /// What is to be sent before anything else.
    pieces: VecDeque<Bytes>,
    batches: broadcast::Receiver<Arc<Batch>>,
    ending: watch::Receiver<bool>,
    _place: Place,
}

impl Listener {
    /// The next bytes; `None` ends the stream: when the server ends, and when the client is so slow that events were lost.
    /// It comes back and resumes, as long as the events that it misses are kept.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                return Some((piece, self));
            }
            let batch = tokio::select! {
                batch = tokio::time::timeout(HEARTBEAT, self.batches.recv()) => batch,
                _ = self.ending.wait_for(|ending| *ending) => return None,
            };
            match batch {
                Ok(Ok(batch)) => self.pieces.extend(batch.after(0, self.lobby)),
                Ok(Err(_)) => return None,
                Err(_) => self.pieces.push_back(Bytes::from_static(b":\n\n")),
            }
        }
    }
}

type Next = Pin<Box<dyn Future<Output = Option<(Bytes, Listener)>> + Send>>;

/// The body of the answer. It asks for the next event only when the last one is on its way: what a slow client does not
/// take is not kept for it.
struct Stream(Next);

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some((bytes, listener)) = ready!(self.0.as_mut().poll(context)) else {
            self.0 = Box::pin(std::future::ready(None));
            return Poll::Ready(None);
        };
        self.0 = Box::pin(listener.next());
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}
