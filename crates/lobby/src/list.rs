//! The list service: TCP (L14, L16).
//!
//! A client sends a few bytes and gets a reply that is already there. What needs care is everything else: clients that
//! send nothing, that read slowly, that send more than they should, and too many of all of them.

mod copies;
mod counters;
mod exchange;
mod leaving;
mod places;
mod reply;

pub(crate) use copies::MAX_COPIES;
pub use counters::ListStats;
pub(crate) use exchange::Protocol;

use crate::LogThrottle;
use counters::Counters;
use exchange::{Exchange, Phase, Step};
use leaving::Leaving;
use places::{Place, Places};
use rallypoint_lobby_proto::PublishedLists;
use rallypoint_udp::{clock, register_socket};
use reply::Replies;
use socket2::{Domain, Socket, Type};
use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{Interest, Ready, unix::AsyncFd},
    runtime::Handle,
    task::JoinHandle,
};

/// How much the list service takes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// How many connections there can be. At least 1; 16,384. (The system's limit of open files can lower it.)
    pub connections: usize,
    /// How many connections an IPv4 address or an IPv6 /64 can have. At least 1; 64.
    pub per_address: usize,
    /// Whether loopback may have as many as it likes. Yes.
    pub loopback_exempt: bool,
    /// How long a client has for its request (L14). 5 s.
    pub request_timeout: Duration,
    /// How long a client has for taking the reply (L14). At least 60 s; 2 minutes.
    pub reply_timeout: Duration,
    /// How many bytes of lists may be kept for readers that are slow, in all. 512 MiB.
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

/// How many clients may wait to be accepted. The system may allow fewer.
const BACKLOG: i32 = 4_096;

/// After so many connections in a row the others get a turn.
const ACCEPT_BURST: usize = 64;

/// When the system has no more descriptors or memory, this passes before the next try.
const PAUSE: Duration = Duration::from_millis(100);

/// When the service ends, a client whose reply is all handed over has this long to close its side.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A service that runs.
#[derive(Debug)]
pub(crate) struct ListService {
    shared: Arc<Shared>,
    listeners: Vec<JoinHandle<()>>,
    farewell: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    replies: Replies,
    limits: ListLimits,
    places: Arc<Places>,
    leaving: Leaving,
    counters: Counters,
}

/// A client, and how far it is.
#[derive(Debug)]
struct Connection {
    socket: Arc<Socket>,
    exchange: Exchange,
    place: Place,
}

/// Opens a socket that listens.
pub(crate) fn listen(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    if addr.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Connections of a lobby that ran here before do not keep a new one from starting.
    socket.set_reuse_address(true)?;
    // What is accepted inherits this, so it costs nothing per connection. It holds the last segment of a reply back until the
    // end of the stream goes with it (L14): that follows at once.
    socket.set_tcp_cork(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

impl ListService {
    /// Starts to serve the lists on sockets that listen.
    pub fn start(
        sockets: Vec<(Socket, Protocol)>,
        lists: Arc<PublishedLists>,
        limits: ListLimits,
        runtime: &Handle,
    ) -> io::Result<Self> {
        let _entered = runtime.enter();
        let sockets = sockets.into_iter().map(|(socket, protocol)| Ok((register_socket(Arc::new(socket))?, protocol)));
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        let places = Arc::new(Places::new(&limits));
        let (replies, counters) = (Replies::new(lists), Counters::default());
        let shared = Arc::new(Shared { replies, limits, places, leaving: Leaving::default(), counters });
        let accept = |(socket, protocol)| runtime.spawn(accept(socket, protocol, shared.clone()));
        let listeners = sockets.into_iter().map(accept).collect();
        let farewell = runtime.spawn(see_off(shared.clone()));
        Ok(Self { shared, listeners, farewell })
    }

    pub fn stats(&self) -> ListStats {
        self.shared.counters.stats(&self.shared.places)
    }

    /// Stops to listen; whoever has not asked yet is sent away. Replies that are under way go on.
    pub fn stop_listening(&self) {
        self.listeners.iter().for_each(JoinHandle::abort);
        self.shared.places.close(&[Phase::Request]);
    }

    /// Waits for replies that are under way, but not for long: then the connections are cut.
    pub async fn finish(&self, patience: Duration) {
        let began = clock::now();
        while self.shared.places.open() > 0 && began.elapsed() < patience {
            if began.elapsed() > LAST_WORDS {
                self.shared.places.close(&[Phase::Drain]);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.shared.places.close(&[Phase::Request, Phase::Reply, Phase::Drain]);
    }
}

impl Drop for ListService {
    fn drop(&mut self) {
        self.stop_listening();
        self.farewell.abort();
        self.shared.places.close(&[Phase::Request, Phase::Reply, Phase::Drain]);
    }
}

/// Takes connections, for good.
async fn accept(listener: AsyncFd<Arc<Socket>>, protocol: Protocol, shared: Arc<Shared>) {
    let mut shortage = LogThrottle::default();
    loop {
        for _ in 0..ACCEPT_BURST {
            // It is an error if the runtime ends.
            let Ok(mut ready) = listener.readable().await else { return };
            let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            match ready.try_io(|listener| listener.get_ref().accept4(flags)) {
                Err(_would_block) => {}
                Ok(Ok((socket, from))) => {
                    if let Some(from) = from.as_socket() {
                        shared.take(socket, from, protocol);
                    }
                }
                Ok(Err(error)) if is_shortage(&error) => {
                    if let Some(times) = shortage.record(clock::now()) {
                        tracing::warn!(%error, times, "cannot take list connections: trying again");
                    }
                    // What nobody needs any more is given up, for whoever comes next.
                    shared.places.make_room(clock::now());
                    tokio::time::sleep(PAUSE).await;
                }
                // The client went away before it was its turn.
                Ok(Err(error)) => tracing::debug!(%error, "a list connection was lost"),
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Ends the connections of those who have their reply and have closed, for good. The others are waited for.
async fn see_off(shared: Arc<Shared>) {
    loop {
        for mut connection in shared.leaving.next().await {
            let mut step = Step::Again;
            while step == Step::Again {
                step = shared.advance(&mut connection);
            }
            if step != Step::End {
                tokio::spawn(shared.clone().serve(connection, step));
            }
        }
    }
}

/// Makes the end of a connection a reset, with which the system forgets what the client has not taken. Otherwise it would keep
/// that for minutes, uncounted: clients that never read could fill its memory beyond all limits.
fn end_by_reset(socket: &Socket) {
    // It may be closed already, by the other side.
    let _ = socket.set_linger(Some(Duration::ZERO));
}

/// Whether it is the system that cannot, rather than this client.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

impl Shared {
    fn take(self: &Arc<Self>, socket: Socket, from: SocketAddr, protocol: Protocol) {
        self.counters.accepted();
        let (socket, now) = (Arc::new(socket), clock::now());
        let Ok(place) = self.places.admit(&socket, from.ip(), now) else {
            return self.counters.refused();
        };
        let mut connection = Connection { socket, exchange: Exchange::new(protocol, now), place };
        // Many requests are there by now, and most replies fit into the system's buffer: such a client is served without
        // waiting for anything.
        let mut step = Step::Again;
        while step == Step::Again && connection.exchange.phase() != Phase::Drain {
            step = self.advance(&mut connection);
        }
        match step {
            Step::Again => self.leaving.push(connection),
            Step::Read | Step::Write => {
                tokio::spawn(self.clone().serve(connection, step));
            }
            Step::End => {}
        }
    }

    /// Serves one client that has to be waited for.
    async fn serve(self: Arc<Self>, mut connection: Connection, mut step: Step) {
        let Ok(socket) = register_socket(connection.socket.clone()) else { return };
        let sleep = tokio::time::sleep_until(self.deadline(&connection.exchange).into());
        tokio::pin!(sleep);
        loop {
            let interest = if step == Step::Write { Interest::WRITABLE } else { Interest::READABLE };
            tokio::select! {
                ready = socket.ready(interest) => {
                    let Ok(mut ready) = ready else { return };
                    step = self.advance(&mut connection);
                    match step {
                        Step::Read => ready.clear_ready_matching(Ready::READABLE),
                        Step::Write => ready.clear_ready_matching(Ready::WRITABLE),
                        Step::Again => {}
                        Step::End => return,
                    }
                    sleep.as_mut().reset(self.deadline(&connection.exchange).into());
                }
                () = &mut sleep => {
                    let phase = connection.exchange.phase();
                    if phase != Phase::Request {
                        end_by_reset(&connection.socket);
                    }
                    return self.counters.timed_out(phase);
                }
            }
        }
    }

    /// Goes on without waiting, and notes how far the exchange is.
    fn advance(&self, connection: &mut Connection) -> Step {
        let Connection { socket, exchange, place } = connection;
        let step = exchange.advance(socket, &self.replies, &self.counters);
        place.enter(exchange.phase(), exchange.since());
        match (step, exchange.reply()) {
            (Step::Write, Some(reply)) => place.hold(reply, clock::now()),
            // A connection that was cut to make room looks as if its client had gone.
            (Step::End, _) if exchange.phase() != Phase::Drain && place.is_there() => self.counters.broken(),
            _ => {}
        }
        step
    }

    /// Until when the exchange may be where it is.
    fn deadline(&self, exchange: &Exchange) -> Instant {
        let patience = match exchange.phase() {
            Phase::Request => self.limits.request_timeout,
            Phase::Reply => self.limits.reply_timeout,
            Phase::Drain => exchange.linger(),
        };
        exchange.since() + patience
    }
}
