//! Connections: accepted within bounds, and given up when they take too long.

mod bind;
mod stream;

pub use bind::StartError;
pub(crate) use bind::bind;
pub(crate) use rallypoint_limit::{Quota as Places, QuotaPermit as Place};

use crate::{WebLimits, gate::Gate, shared::Shared};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};
use stream::Stream;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
};

/// How long to wait when the system has no descriptor left: some will be closed by then.
const SHORTAGE: Duration = Duration::from_millis(100);

/// The largest head of a request, and how much is read and written at once.
const BUFFER: usize = 16 << 10;

/// The most headers that a request can have.
const HEADERS: usize = 64;

/// The listeners and connections.
#[derive(Debug)]
pub(crate) struct Server {
    /// Closed when the last connection has ended.
    ended: tokio::sync::Mutex<mpsc::Receiver<Infallible>>,
}

impl Server {
    pub fn start(listeners: Vec<TcpListener>, shared: &Arc<Shared>, gate: &Gate) -> Self {
        let (alive, ended) = mpsc::channel(1);
        for listener in listeners {
            let loops = Loop {
                gate: gate.clone(),
                limits: shared.limits.clone(),
                places: shared.connections.clone(),
                ending: shared.ending.clone(),
                alive: alive.clone(),
            };
            tokio::spawn(loops.accept(listener));
        }
        Self { ended: tokio::sync::Mutex::new(ended) }
    }

    /// Waits until all connections have ended, but not longer than this.
    pub async fn finish(&self, patience: Duration) {
        let mut ended = self.ended.lock().await;
        if tokio::time::timeout(patience, ended.recv()).await.is_err() {
            tracing::warn!("some HTTP answers could not be finished in time");
        }
    }
}

/// What a listener needs.
struct Loop {
    gate: Gate,
    limits: WebLimits,
    places: Places,
    ending: watch::Receiver<bool>,
    alive: mpsc::Sender<Infallible>,
}

impl Loop {
    async fn accept(mut self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = ended_by(&mut self.ending) => return,
            };
            match accepted {
                Ok((tcp, from)) => self.take(tcp, from),
                Err(error) if is_about_the_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept HTTP connections right now");
                    tokio::time::sleep(SHORTAGE).await;
                }
            }
        }
    }

    fn take(&self, tcp: TcpStream, from: SocketAddr) {
        let is_exempt = self.gate.is_exempt(from.ip());
        // Whoever is one too many is dropped without a word: words cost more than connections.
        let Some(place) = self.places.take(from.ip(), is_exempt) else { return };
        let _ = tcp.set_nodelay(true);
        let (gate, limits, mut ending) = (self.gate.clone(), self.limits.clone(), self.ending.clone());
        let alive = self.alive.clone();
        tokio::spawn(async move {
            let service = service_fn(|request: hyper::Request<Incoming>| {
                let gate = gate.clone();
                async move { Ok::<_, Infallible>(gate.answer(request, from.ip()).await) }
            });
            let io = TokioIo::new(Stream::new(tcp, limits.stall_timeout));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.request_timeout)
                .max_buf_size(BUFFER)
                .max_headers(HEADERS)
                .serve_connection(io, service);
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = ended_by(&mut ending) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::trace!(%error, "an HTTP connection ended early");
            }
            drop((place, alive));
        });
    }
}

/// Waits until it is time to end.
async fn ended_by(ending: &mut watch::Receiver<bool>) {
    // The other end is gone only with the whole server.
    let _ = ending.wait_for(|ending| *ending).await;
}

/// Whether only this connection is affected: it was gone before it was accepted.
fn is_about_the_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
