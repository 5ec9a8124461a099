//! `--metrics`: what a room counts, for Prometheus.

use crate::error::CommandError;
use rallypoint_session::EndpointStats;
use rallypoint_udp::{BindError, SocketKind};
use rallypoint_web::metrics::{self, Exposition, MetricKind};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// How long a client has for its request, and for taking the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// No request is longer, in bytes.
const LONGEST_REQUEST: usize = 8 << 10;

/// How many clients are answered at once. Prometheus is one.
const CLIENTS: usize = 16;

/// Where the numbers can be had.
pub struct Metrics {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

/// Somebody who asks.
pub struct Client {
    tcp: TcpStream,
    place: OwnedSemaphorePermit,
}

impl Metrics {
    pub async fn bind(addr: SocketAddr) -> Result<Self, CommandError> {
        let fail = |error| CommandError::bind(&BindError::new(SocketKind::Tcp, addr, error), "--metrics");
        metrics::set_process_start();
        let listener = TcpListener::bind(addr).await.map_err(fail)?;
        Ok(Self { listener, places: Arc::new(Semaphore::new(CLIENTS)) })
    }

    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// The next who asks. Who is one too many is dropped.
    pub async fn next(&self) -> Client {
        loop {
            match (self.listener.accept().await, self.places.clone().try_acquire_owned()) {
                (Ok((tcp, _)), Ok(place)) => return Client { tcp, place },
                (Ok(_), Err(_)) => {}
                // No descriptors, most likely: some will be closed by then.
                (Err(_), _) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

impl Client {
    /// Answers, beside everything else.
    pub fn answer(self, stats: EndpointStats) {
        tokio::spawn(async move {
            // Whoever was too slow will ask again.
            let _ = timeout(PATIENCE, exchange(self.tcp, &stats)).await;
            drop(self.place);
        });
    }
}

async fn exchange(mut tcp: TcpStream, stats: &EndpointStats) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = tcp.read_buf(&mut request).await?;
        if read == 0 || request.len() > LONGEST_REQUEST {
            return Ok(());
        }
    }
    let is_known = request.starts_with(b"GET /metrics ") || request.starts_with(b"GET /metrics?");
    let (status, body) = if is_known { ("200 OK", tell(stats)) } else { ("404 Not Found", "see /metrics\n".into()) };
    let (kind, length) = (Exposition::CONTENT_TYPE, body.len());
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    tcp.write_all((head + &body).as_bytes()).await?;
    tcp.shutdown().await
}

fn tell(stats: &EndpointStats) -> String {
    let mut out = Exposition::default();
    metrics::export_process(&mut out, env!("CARGO_PKG_VERSION"));
    out.gauge("rallypoint_session_players", "Players.", stats.players);
    out.gauge("rallypoint_session_half_open", "Logins that wait for their first message.", stats.half_open);
    out.counter("rallypoint_session_datagrams_total", "Datagrams that came.", stats.datagrams);
    let help = "Those of them that are of no use: not of this protocol, or of no session.";
    let mut family = out.family("rallypoint_session_useless_total", MetricKind::Counter, help);
    for (kind, count) in [("malformed", stats.malformed), ("stray", stats.strays)] {
        family.sample(&[("kind", kind)], count);
    }
    let help = "Logins, by what became of them; evicted before their first message because too many others came.";
    let mut family = out.family("rallypoint_session_logins_total", MetricKind::Counter, help);
    let logins =
        [("granted", stats.logins_granted), ("refused", stats.logins_refused), ("evicted", stats.logins_evicted)];
    for (result, count) in logins {
        family.sample(&[("result", result)], count);
    }
    let help = "Queries that were not answered because of the budget.";
    out.counter("rallypoint_session_queries_refused_total", help, stats.queries_refused);
    let help = "Bytes that were sent to addresses that had not shown that they want them: what somebody who forges \
                addresses can have sent to others.";
    out.counter("rallypoint_unproven_bytes_total", help, stats.unvalidated_bytes);
    out.gauge("rallypoint_session_memory_bytes", "Bytes of messages that are kept.", stats.memory);
    out.finish()
}
