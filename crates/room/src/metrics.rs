//! `--metrics`: the statistics of a room for Prometheus, over HTTP.

use axum::{
    body::Body,
    http::{HeaderValue, header::CONTENT_TYPE},
};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rallypoint_session::EndpointStats;
use rallypoint_udp::{BindError, SocketKind};
use rallypoint_web::metrics::{self, Exposition, MetricKind};
use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

/// Time limit for one request and its response.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of connections at once; Prometheus needs one.
const MAX_CONNECTIONS: usize = 16;

/// A request for the current statistics.
pub type StatsRequest = oneshot::Sender<EndpointStats>;

/// The metrics endpoint, which runs until it is dropped.
pub struct Metrics {
    addr: SocketAddr,
    requests: mpsc::Receiver<StatsRequest>,
    task: JoinHandle<()>,
}

impl Metrics {
    pub async fn bind(addr: SocketAddr) -> Result<Self, BindError> {
        let bind_error = |error| BindError::new(SocketKind::Tcp, addr, error);
        metrics::set_process_start();
        let listener = TcpListener::bind(addr).await.map_err(bind_error)?;
        let addr = listener.local_addr().map_err(bind_error)?;
        let (sender, requests) = mpsc::channel(MAX_CONNECTIONS);
        let task = tokio::spawn(accept(listener, sender));
        Ok(Self { addr, requests, task })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// The next request, to be answered with the statistics of the room. Cancel-safe.
    pub async fn next_request(&mut self) -> StatsRequest {
        match self.requests.recv().await {
            Some(request) => request,
            // The accepting task has the sender, and ends with this.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, requests: mpsc::Sender<StatsRequest>) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        match (listener.accept().await, connections.clone().try_acquire_owned()) {
            (Ok((tcp, _)), Ok(permit)) => {
                let requests = requests.clone();
                tokio::spawn(async move {
                    // A client that is too slow is disconnected, and can try again.
                    let _ = timeout(TIMEOUT, serve(tcp, &requests)).await;
                    drop(permit);
                });
            }
            // Too many connections: this one is closed.
            (Ok(_), Err(_)) => {}
            // Most likely out of file descriptors, until some are closed.
            (Err(_), _) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve(tcp: TcpStream, requests: &mpsc::Sender<StatsRequest>) -> Result<(), hyper::Error> {
    let service = service_fn(|request| async move { Ok::<_, Infallible>(respond(&request, requests).await) });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).keep_alive(false).serve_connection(TokioIo::new(tcp), service).await
}

async fn respond(request: &Request<Incoming>, requests: &mpsc::Sender<StatsRequest>) -> Response<Body> {
    let (sender, stats) = oneshot::channel();
    let is_known = request.method() == Method::GET && request.uri().path() == "/metrics";
    let (status, text) = if !is_known {
        (StatusCode::NOT_FOUND, "see /metrics\n".to_owned())
    } else if requests.send(sender).await.is_ok()
        && let Ok(stats) = stats.await
    {
        (StatusCode::OK, exposition(&stats))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the room is closing\n".to_owned())
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(Exposition::CONTENT_TYPE));
    response
}

fn exposition(stats: &EndpointStats) -> String {
    let mut out = Exposition::default();
    metrics::export_process(&mut out, env!("CARGO_PKG_VERSION"));
    out.gauge("rallypoint_session_players", "Connected players.", stats.players);
    out.gauge("rallypoint_session_half_open", "Logins waiting for their first message.", stats.half_open);
    out.counter("rallypoint_session_datagrams_total", "Received datagrams.", stats.datagrams);
    let help = "Received datagrams that are malformed or belong to no session.";
    let mut family = out.family("rallypoint_session_discarded_total", MetricKind::Counter, help);
    for (kind, count) in [("malformed", stats.malformed), ("stray", stats.strays)] {
        family.sample(&[("kind", kind)], count);
    }
    let help = "Logins by result; deferred ones came in a flood and were answered with a cookie, evicted ones were displaced by \
                others before their first message.";
    let mut family = out.family("rallypoint_session_logins_total", MetricKind::Counter, help);
    let logins = [
        ("granted", stats.logins_granted),
        ("refused", stats.logins_refused),
        ("deferred", stats.logins_deferred),
        ("evicted", stats.logins_evicted),
    ];
    for (result, count) in logins {
        family.sample(&[("result", result)], count);
    }
    let help = "Sessions with channels that ended because of the player: another table of channels, a token that is not valid, or \
                bytes that are no messages.";
    let mut family = out.family("rallypoint_session_channel_errors_total", MetricKind::Counter, help);
    let errors = [("table", stats.tables_refused), ("token", stats.tokens_refused), ("fault", stats.channel_faults)];
    for (kind, count) in errors {
        family.sample(&[("kind", kind)], count);
    }
    let help = "Queries not answered because of the byte budget.";
    out.counter("rallypoint_session_queries_refused_total", help, stats.queries_refused);
    let help = "Bytes sent to addresses that are not validated: an upper bound of what forged source addresses can cause \
                to be sent to others.";
    out.counter("rallypoint_unproven_bytes_total", help, stats.unvalidated_bytes);
    out.gauge("rallypoint_session_memory_bytes", "Bytes of buffered messages.", stats.memory);
    out.finish()
}
