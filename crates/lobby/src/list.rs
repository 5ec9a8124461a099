//! The list service: TCP (L14).
//!
//! A client sends a request of a few bytes and gets a prepared reply. Most of the code handles the other clients: those that
//! send nothing, read slowly or send more than they should, and too many connections of any kind.

mod counters;
mod drain_queue;
mod exchange;
mod held_memory;
mod open_connection;
mod reply;
mod reply_files;

pub use counters::ListStats;
pub(crate) use reply_files::MAX_REPLY_FILES;

use crate::LogThrottle;
use counters::Counters;
use drain_queue::DrainQueue;
use exchange::{Exchange, Phase, Step};
use open_connection::{ConnectionGuard, OpenConnections};
use rallypoint_lobby_proto::{
    PublishedLists,
    doors::{Door, RequestDoor},
};
use rallypoint_udp::{AsyncListener, AsyncSocket, clock, is_shortage};
use reply::ReplySource;
use socket2::{Domain, Socket, Type};
use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{io::Interest, runtime::Handle, task::JoinHandle};

/// Limits of the list service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// Maximum number of connections, at least 1. Default: 16,384, or fewer if the system's limit of open files is low.
    pub connections: usize,
    /// Maximum number of connections of one IPv4 address or IPv6 /64, at least 1. Default: 64.
    pub per_address: usize,
    /// Whether loopback addresses are exempt from [`per_address`](Self::per_address). Default: true.
    pub loopback_exempt: bool,
    /// Maximum time for a client to send its request (L14). Default: 5 s.
    pub request_timeout: Duration,
    /// Maximum time for a client to read the reply (L14), at least 60 s. Default: 2 minutes.
    pub reply_timeout: Duration,
    /// Maximum number of bytes of outdated and current lists that are kept in memory for slow readers. Default: 512 MiB.
    pub held_bytes: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            per_address: 64,
            loopback_exempt: true,
            request_timeout: Duration::from_secs(5),
            reply_timeout: Duration::from_secs(120),
            held_bytes: 512 << 20,
        }
    }
}

/// Maximum number of connections waiting to be accepted. The system may allow fewer.
const BACKLOG: i32 = 4_096;

/// Number of connections accepted in a row before other tasks may run.
const ACCEPT_BURST: usize = 64;

/// Time until the next attempt to accept a connection after the system has run out of descriptors or memory.
const SHORTAGE_DELAY: Duration = Duration::from_millis(100);

/// Time that clients whose replies are sent have to close their connections during a shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The running list service. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct ListService {
    shared: Arc<Shared>,
    listeners: Vec<JoinHandle<()>>,
    drain_task: JoinHandle<()>,
}

/// State shared by all tasks of the service.
#[derive(Debug)]
struct Shared {
    replies: ReplySource,
    limits: ListLimits,
    connections: OpenConnections,
    drain_queue: DrainQueue,
    counters: Counters,
}

/// The connection of one client, and the state of the exchange.
#[derive(Debug)]
struct Connection {
    socket: Arc<Socket>,
    exchange: Exchange,
    guard: ConnectionGuard,
}

/// Opens a listening socket.
pub(crate) fn listen(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    if addr.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    rallypoint_udp::prepare_listener(&socket)?;
    // Accepted sockets inherit this option, so it costs nothing per connection. It holds back the last segment of a reply until
    // the FIN, which follows at once, can be sent with it (L14).
    #[cfg(all(target_os = "linux", not(rallypoint_portable)))]
    socket.set_tcp_cork(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

impl ListService {
    /// Starts serving the lists on listening sockets. Popular replies are kept in files of at most `file_bytes` together.
    pub fn start(
        sockets: Vec<(Socket, &'static Door)>,
        lists: Arc<PublishedLists>,
        limits: ListLimits,
        file_bytes: usize,
        runtime: &Handle,
    ) -> io::Result<Self> {
        let _entered = runtime.enter();
        let sockets = with_request_doors(sockets).map(|(socket, door)| Ok((AsyncListener::new(socket)?, door)));
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        let shared = Arc::new(Shared {
            replies: ReplySource::new(lists, file_bytes),
            connections: OpenConnections::new(&limits),
            limits,
            drain_queue: DrainQueue::default(),
            counters: Counters::default(),
        });
        let accept = |(socket, door)| runtime.spawn(accept(socket, door, shared.clone()));
        let listeners = sockets.into_iter().map(accept).collect();
        let drain_task = runtime.spawn(drain_connections(shared.clone()));
        Ok(Self { shared, listeners, drain_task })
    }

    pub fn stats(&self) -> ListStats {
        self.shared.counters.stats(&self.shared.connections)
    }

    /// Stops listening, and closes connections without a request. Replies in progress continue.
    pub fn stop_listening(&self) {
        self.listeners.iter().for_each(JoinHandle::abort);
        self.shared.connections.close(&[Phase::Request]);
    }

    /// Waits for replies in progress, at most for `timeout`, and then closes all connections.
    pub async fn finish(&self, timeout: Duration) {
        let began = clock::now();
        while self.shared.connections.len() > 0 && began.elapsed() < timeout {
            if began.elapsed() > DRAIN_TIMEOUT {
                self.shared.connections.close(&[Phase::Drain]);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.shared.connections.close(&[Phase::Request, Phase::Reply, Phase::Drain]);
    }
}

impl Drop for ListService {
    fn drop(&mut self) {
        self.stop_listening();
        self.drain_task.abort();
        self.shared.connections.close(&[Phase::Request, Phase::Reply, Phase::Drain]);
    }
}

/// Each socket with what its clients request. The sockets of one door share it.
fn with_request_doors(sockets: Vec<(Socket, &'static Door)>) -> impl Iterator<Item = (Socket, Arc<dyn RequestDoor>)> {
    let mut doors = BTreeMap::<&str, Arc<dyn RequestDoor>>::new();
    sockets.into_iter().filter_map(move |(socket, door)| {
        let start = door.sockets.as_ref()?.requests?;
        Some((socket, Arc::clone(doors.entry(door.name).or_insert_with(|| start().into()))))
    })
}

/// Accepts connections until the task is aborted.
async fn accept(listener: AsyncListener, door: Arc<dyn RequestDoor>, shared: Arc<Shared>) {
    let mut shortage = LogThrottle::default();
    loop {
        for _ in 0..ACCEPT_BURST {
            match listener.accept().await {
                Ok((socket, from)) => shared.handle_connection(socket, from, &door),
                Err(error) if is_shortage(&error) => {
                    if let Some(times) = shortage.record(clock::now()) {
                        tracing::warn!(%error, times, "cannot accept list connections: trying again");
                    }
                    // Frees a descriptor for the next attempt.
                    shared.connections.evict_one(clock::now());
                    tokio::time::sleep(SHORTAGE_DELAY).await;
                }
                // The client disconnected before its connection was accepted, or the runtime shuts down.
                Err(error) => {
                    tracing::debug!(%error, "a list connection failed before it was accepted");
                    tokio::task::yield_now().await;
                }
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Ends connections in the drain queue whose clients have closed. For each that stays open, a task waits.
async fn drain_connections(shared: Arc<Shared>) {
    loop {
        for mut draining in shared.drain_queue.next().await {
            let mut step = Step::Again;
            while step == Step::Again {
                step = shared.advance(&mut draining.connection);
            }
            if step != Step::End
                && let Some(connection) = shared.drain_queue.push_again(draining)
            {
                tokio::spawn(shared.clone().serve(connection, step));
            }
        }
    }
}

/// Makes the socket close with a reset, so that the system discards what the client has not acknowledged. Otherwise it would
/// keep that for minutes outside of all limits here, and clients that never read could fill its memory.
fn reset_on_close(socket: &Socket) {
    // It fails if the peer has closed the connection already.
    let _ = socket.set_linger(Some(Duration::ZERO));
}

impl Shared {
    /// Starts serving a new connection.
    fn handle_connection(self: &Arc<Self>, socket: Socket, from: SocketAddr, door: &Arc<dyn RequestDoor>) {
        self.counters.accepted();
        let socket = Arc::new(socket);
        let now = clock::now();
        let Some(guard) = self.connections.admit(&socket, from.ip(), now) else {
            return self.counters.refused();
        };
        let mut connection = Connection { socket, exchange: Exchange::new(Arc::clone(door), now), guard };
        // Many requests have arrived by now, and most replies fit into the system's send buffer: such a client is served
        // without registering the socket.
        let mut step = Step::Again;
        while step == Step::Again && connection.exchange.phase() != Phase::Drain {
            // The limits have to know each phase before the next one begins: a shutdown closes connections without a request.
            step = self.advance(&mut connection);
        }
        match step {
            Step::Again => self.drain_queue.push(connection),
            Step::Read | Step::Write => {
                tokio::spawn(self.clone().serve(connection, step));
            }
            Step::End => {}
        }
    }

    /// Serves a connection that has to wait for its socket.
    async fn serve(self: Arc<Self>, mut connection: Connection, mut step: Step) {
        let Ok(socket) = AsyncSocket::tcp(&connection.socket) else { return };
        let sleep = tokio::time::sleep_until(self.deadline(&connection.exchange).into());
        tokio::pin!(sleep);
        loop {
            let (interest, blocked) = match step {
                Step::Write => (Interest::WRITABLE, Step::Write),
                _ => (Interest::READABLE, Step::Read),
            };
            tokio::select! {
                ready = socket.ready(interest) => {
                    if ready.is_err() {
                        return;
                    }
                    let _ = socket.try_io(interest, || {
                        step = self.advance(&mut connection);
                        if step == blocked { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
                    });
                    if step == Step::End {
                        return;
                    }
                    sleep.as_mut().reset(self.deadline(&connection.exchange).into());
                }
                () = &mut sleep => {
                    let phase = connection.exchange.phase();
                    if phase != Phase::Request {
                        reset_on_close(&connection.socket);
                    }
                    return self.counters.timed_out(phase);
                }
            }
        }
    }

    /// Continues the exchange without waiting, and updates what the limits know of the connection.
    fn advance(&self, connection: &mut Connection) -> Step {
        let step = connection.exchange.advance(&connection.socket, &self.replies, &self.counters);
        self.record(connection, step);
        step
    }

    /// Updates what the limits know of the connection after a step.
    fn record(&self, Connection { exchange, guard, .. }: &mut Connection, step: Step) {
        guard.set_phase(exchange.phase(), exchange.since());
        match (step, exchange.reply()) {
            (Step::Write, Some(reply)) => guard.hold(reply, clock::now()),
            // An evicted connection ends in the same way as one that its client has closed.
            (Step::End, _) if exchange.phase() != Phase::Drain && guard.is_open() => self.counters.broken(),
            _ => {}
        }
    }

    /// Deadline of the exchange's current phase.
    fn deadline(&self, exchange: &Exchange) -> Instant {
        let timeout = match exchange.phase() {
            Phase::Request => self.limits.request_timeout,
            Phase::Reply => self.limits.reply_timeout,
            Phase::Drain => exchange.linger(),
        };
        exchange.since() + timeout
    }
}
