//! A slow link between real sockets: a thread that forwards datagrams to a server at a limited rate, from a short queue.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Maximum number of bytes that wait for the link.
const QUEUE: usize = 64_000;

/// A running link. It ends when it is dropped.
pub struct Shaper {
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    bits_per_second: AtomicU64,
    sent: AtomicU64,
    dropped: AtomicU64,
    is_stopped: AtomicBool,
}

/// Datagrams on their way in one direction, with the index of the client that they belong to.
type Delayed = VecDeque<(Instant, usize, Vec<u8>)>;

struct Link {
    shared: Arc<Shared>,
    delay: Duration,
    /// Where clients send to, and one socket for each of them where the server sends to.
    front: UdpSocket,
    backs: Vec<UdpSocket>,
    clients: Vec<SocketAddr>,
    by_addr: HashMap<SocketAddr, usize>,
    server: SocketAddr,
    /// Waiting for the link, the first one being transmitted until `busy_until`.
    queue: VecDeque<(usize, Vec<u8>)>,
    queued: usize,
    busy_until: Option<Instant>,
    to_server: Delayed,
    to_clients: Delayed,
}

impl Shaper {
    /// Starts a link to `server` with this delay in each direction. Only datagrams to the server share its rate.
    pub fn start(server: SocketAddr, bits_per_second: u64, delay: Duration) -> io::Result<Self> {
        let front = bind()?;
        let addr = front.local_addr()?;
        let shared = Arc::new(Shared {
            bits_per_second: bits_per_second.into(),
            sent: 0.into(),
            dropped: 0.into(),
            is_stopped: false.into(),
        });
        let link = Link {
            shared: Arc::clone(&shared),
            delay,
            front,
            backs: Vec::new(),
            clients: Vec::new(),
            by_addr: HashMap::new(),
            server,
            queue: VecDeque::new(),
            queued: 0,
            busy_until: None,
            to_server: VecDeque::new(),
            to_clients: VecDeque::new(),
        };
        let thread = Some(std::thread::spawn(move || link.run()));
        Ok(Self { addr, shared, thread })
    }

    pub fn set_rate(&self, bits_per_second: u64) {
        self.shared.bits_per_second.store(bits_per_second, Ordering::Relaxed);
    }

    /// Number of datagrams to the server that arrived at the link, and how many of them were dropped.
    pub fn counts(&self) -> [u64; 2] {
        [&self.shared.sent, &self.shared.dropped].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Link {
    fn run(mut self) {
        let mut buffer = vec![0; 2_048];
        while !self.shared.is_stopped.load(Ordering::Relaxed) {
            let mut fds: Vec<PollFd> =
                [&self.front].into_iter().chain(&self.backs).map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
            let next = [self.busy_until, due(&self.to_server), due(&self.to_clients)].into_iter().flatten().min();
            let wait = next.map_or(Duration::from_millis(50), |at| at.saturating_duration_since(Instant::now()));
            let wait = wait.min(Duration::from_millis(50));
            let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() }));
            let readable: Vec<bool> = fds.iter().map(|fd| fd.revents().contains(PollFlags::IN)).collect();
            while let Ok((len, from)) = self.front.recv_from(&mut buffer) {
                self.accept(from, &buffer[..len]);
            }
            for (client, (&is_readable, back)) in readable.iter().skip(1).zip(&self.backs).enumerate() {
                while is_readable && let Ok(len) = back.recv(&mut buffer) {
                    self.to_clients.push_back((Instant::now() + self.delay, client, buffer[..len].to_vec()));
                }
            }
            self.forward();
        }
    }

    /// A datagram of a client arrives at the queue.
    fn accept(&mut self, from: SocketAddr, bytes: &[u8]) {
        let client = *self.by_addr.entry(from).or_insert_with(|| {
            let back = bind().and_then(|back| back.connect(self.server).map(|()| back));
            self.backs.push(back.expect("a free port"));
            self.clients.push(from);
            self.clients.len() - 1
        });
        self.shared.sent.fetch_add(1, Ordering::Relaxed);
        if self.queued + bytes.len() > QUEUE {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.queued += bytes.len();
        self.queue.push_back((client, bytes.to_vec()));
        if self.busy_until.is_none() {
            self.transmit(Instant::now());
        }
    }

    /// Starts to transmit the first datagram of the queue.
    fn transmit(&mut self, now: Instant) {
        let rate = self.shared.bits_per_second.load(Ordering::Relaxed) as f64;
        let time = |len: usize| Duration::from_secs_f64(8.0 * len as f64 / rate);
        self.busy_until = self.queue.front().map(|(_, bytes)| now + time(bytes.len()));
    }

    fn forward(&mut self) {
        let now = Instant::now();
        while let Some(end) = self.busy_until.filter(|end| *end <= now)
            && let Some((client, bytes)) = self.queue.pop_front()
        {
            self.queued -= bytes.len();
            self.to_server.push_back((end + self.delay, client, bytes));
            self.transmit(end);
        }
        // A full socket buffer drops a datagram, as a network would.
        while let Some((_, client, bytes)) = self.to_server.pop_front_if(|(at, ..)| *at <= now) {
            let _ = self.backs[client].send(&bytes);
        }
        while let Some((_, client, bytes)) = self.to_clients.pop_front_if(|(at, ..)| *at <= now) {
            let _ = self.front.send_to(&bytes, self.clients[client]);
        }
    }
}

fn bind() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn due(delayed: &Delayed) -> Option<Instant> {
    delayed.front().map(|(at, ..)| *at)
}
