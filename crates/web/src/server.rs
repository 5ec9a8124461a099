//! Accepts connections within limits, and closes those that take too long.

mod bind;
mod client_stream;
mod connection;
mod response_body;

pub use bind::WebStartError;
pub(crate) use bind::bind;
pub(crate) use connection::Connection;

use crate::{
    BasePath,
    middleware::{ClientAddr, add_response_headers},
    state::{AppState, quota_client},
};
use axum::{Router, body::Body};
use client_stream::ClientStream;
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use response_body::ResponseBody;
use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
};
use tower_service::Service;

/// Pause after a failed accept, for example for lack of file descriptors, until some connections may have been closed.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Maximum size in bytes of the head of a request, and size of the read and write buffers.
const BUFFER_SIZE: usize = 16 << 10;

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;

/// The listeners and their connections, each in a task of its own.
#[derive(Debug)]
pub(crate) struct Server {
    /// Closed when the last task has ended.
    tasks: tokio::sync::Mutex<mpsc::Receiver<Infallible>>,
}

impl Server {
    pub fn start(listeners: Vec<TcpListener>, state: &Arc<AppState>, router: &Router) -> Self {
        let (task, tasks) = mpsc::channel(1);
        for listener in listeners {
            let acceptor = Acceptor {
                state: Arc::clone(state),
                router: router.clone(),
                shutdown: state.shutdown.clone(),
                task: task.clone(),
            };
            tokio::spawn(acceptor.run(listener));
        }
        Self { tasks: tokio::sync::Mutex::new(tasks) }
    }

    /// Waits until all connections have ended, at most for this time.
    pub async fn finish(&self, timeout: Duration) {
        let mut tasks = self.tasks.lock().await;
        if tokio::time::timeout(timeout, tasks.recv()).await.is_err() {
            tracing::warn!("some HTTP responses were not finished in time; closing their connections");
        }
    }
}

/// Accepts the connections of a listener.
struct Acceptor {
    state: Arc<AppState>,
    router: Router,
    shutdown: watch::Receiver<bool>,
    /// Every task keeps a clone until it ends.
    task: mpsc::Sender<Infallible>,
}

impl Acceptor {
    async fn run(mut self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = shut_down(&mut self.shutdown) => return,
            };
            match accepted {
                Ok((tcp, peer)) => self.spawn_connection(tcp, peer),
                Err(error) if is_connection_error(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept HTTP connections; retrying");
                    // Frees a descriptor for the next attempt.
                    self.state.quotas.connections.evict_one(Instant::now());
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    fn spawn_connection(&self, tcp: TcpStream, peer: SocketAddr) {
        let client = quota_client(peer.ip(), self.state.is_connection_exempt(peer.ip()));
        let now = Instant::now();
        let shared = Arc::new(Connection::new(now));
        // Connections over the limit are closed without a response: writing one would cost more than the connection.
        let Some(permit) = self.state.quotas.connections.take(client, 1, &shared, now) else { return };
        let state = Arc::clone(&self.state);
        let router = self.router.clone();
        let mut shutdown = self.shutdown.clone();
        let task = self.task.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| respond(&state, &router, request, peer, &shared));
            // Without TCP_NODELAY only latency suffers.
            let _ = tcp.set_nodelay(true);
            let io = TokioIo::new(ClientStream::new(tcp, state.limits.stall_timeout, Arc::clone(&shared)));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(state.limits.request_timeout)
                .max_buf_size(BUFFER_SIZE)
                .max_headers(MAX_HEADERS)
                .serve_connection(io, service);
            let mut connection = std::pin::pin!(connection);
            let serve = async {
                tokio::select! {
                    result = connection.as_mut() => result,
                    () = shut_down(&mut shutdown) => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            };
            let result = tokio::select! {
                result = serve => result,
                () = shared.evicted() => Ok(()),
            };
            if let Err(error) = result {
                tracing::trace!(%error, "an HTTP connection ended with an error");
            }
            drop(permit);
            drop(task);
        });
    }
}

/// Answers one request: resolves the address of the client, and calls the router.
async fn respond(
    state: &AppState,
    router: &Router,
    request: Request<Incoming>,
    peer: SocketAddr,
    connection: &Arc<Connection>,
) -> Result<axum::http::Response<ResponseBody>, Infallible> {
    connection.start_response();
    let mut request = request.map(Body::new);
    strip_base_path(&mut request, state.settings().site.base_path.as_ref());
    let client = ClientAddr::resolve(peer.ip(), request.headers(), &state.settings().trusted_proxies);
    state.record_client(client);
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(Arc::clone(connection));
    let response = router.clone().call(request).await.map(add_response_headers)?;
    Ok(response.map(|body| ResponseBody::new(body, Arc::clone(connection))))
}

/// Removes the base path of a request whose proxy did not. One that did leaves a path that the router knows.
fn strip_base_path(request: &mut Request<Body>, base: Option<&BasePath>) {
    let uri = request.uri();
    let Some(path) = base.and_then(|base| base.strip(uri.path())) else { return };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(stripped) = format!("{path}{query}").parse() {
        *request.uri_mut() = stripped;
    }
}

/// Waits until the server shuts down.
async fn shut_down(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it the whole server.
    let _ = shutdown.wait_for(|shutdown| *shutdown).await;
}

/// Whether a failed accept concerns only one connection, which the client closed before it was accepted.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
