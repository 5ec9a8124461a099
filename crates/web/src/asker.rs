//! Asks game servers, for whoever in the program wants to know something of them.

use rallypoint_machine::{Machine, Transmit};
use rallypoint_net::{Driven, Driver, RecvBatch, UdpSocket, Undelivered};
use rallypoint_query::{Outcome, Prober, ProberConfig, ProberStats, Report, Target};
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{Semaphore, oneshot};

/// So many servers are asked at once; whoever comes then waits.
const AT_ONCE: usize = 1_024;

/// How much the system keeps of what arrives while the thread does something else.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A prober on a socket of each family, in a thread of its own. Clones are the same; it ends with the last of them.
#[derive(Clone, Debug)]
pub struct Asker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    driver: Driver<Asking>,
    places: Semaphore,
}

impl Asker {
    /// Opens its sockets. It is an error if the machine has neither family, or no thread and no random bytes to give.
    pub fn start() -> io::Result<Self> {
        let config = ProberConfig {
            // As much as anybody's network takes, beside everything else that a lobby does.
            packets_per_second: 1_000,
            max_in_flight: AT_ONCE,
            max_targets: AT_ONCE,
            deadline: Duration::from_secs(3),
            retries: 4,
            retry_after: Duration::from_millis(400),
            backoff: 1.2,
        };
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let prober = Prober::new(config, seed).map_err(io::Error::other)?;
        let sockets = sockets()?;
        let asking = Asking { prober, sockets: sockets.clone(), asked: HashMap::new(), last: 0 };
        let driver = Driver::start("web-ask", sockets, |_| asking)?;
        Ok(Self(Arc::new(Inner { driver, places: Semaphore::new(AT_ONCE) })))
    }

    /// Asks a server. This takes three seconds at most once it is its turn, and then it did not answer.
    pub async fn ask(&self, target: Target) -> Outcome {
        let Ok(_place) = self.0.places.acquire().await else { return Outcome::TimedOut };
        let (sender, answer) = oneshot::channel();
        self.0.driver.commands().run(move |asking, _| asking.ask(target, sender));
        answer.await.unwrap_or(Outcome::TimedOut)
    }

    /// What it has done; nothing if its thread is gone.
    pub async fn stats(&self) -> Option<ProberStats> {
        self.0.driver.commands().ask(|asking, _| asking.prober.stats()).await
    }
}

/// What the thread has.
#[derive(Debug)]
struct Asking {
    prober: Prober,
    sockets: Vec<Arc<UdpSocket>>,
    /// By the tag of the target.
    asked: HashMap<u64, oneshot::Sender<Outcome>>,
    last: u64,
}

impl Asking {
    fn ask(&mut self, target: Target, sender: oneshot::Sender<Outcome>) {
        self.last += 1;
        // Whom nobody can ask does not answer: the sender goes, and that is noticed.
        if self.prober.ask(Target { tag: self.last, ..target }).is_ok() {
            self.asked.insert(self.last, sender);
        }
    }

    fn take_errors(&mut self) {
        for socket in &self.sockets {
            while let Ok(Some(Undelivered { to, error, quoted })) = socket.next_error() {
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    self.prober.handle_refused(to, &quoted);
                }
            }
        }
    }
}

impl Driven for Asking {
    fn handle_batch(&mut self, now: Instant, _socket: usize, batch: &RecvBatch) {
        for datagram in batch.iter().filter(|datagram| !datagram.is_cut()) {
            self.prober.handle_datagram(now, datagram.from, datagram.bytes);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.prober.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.prober.poll_transmit(now, out)
    }

    fn handle_turn(&mut self, _now: Instant) {
        self.take_errors();
        while let Some(Report { target, outcome, .. }) = self.prober.poll_event() {
            if let Some(sender) = self.asked.remove(&target.tag) {
                // Whoever asked may have stopped waiting.
                let _ = sender.send(outcome);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.prober.poll_timeout()
    }

    fn max_datagram(&self) -> usize {
        rallypoint_wire::bloodmasters::MAX_REPLY
    }
}

/// A socket for each family that this machine has.
fn sockets() -> io::Result<Vec<Arc<UdpSocket>>> {
    let (mut opened, mut trouble) = (Vec::new(), None);
    for ip in [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()] {
        let socket = UdpSocket::bind((ip, 0).into(), RECEIVE_BUFFER);
        match socket.and_then(|socket| socket.keep_errors().map(|()| socket)) {
            Ok(socket) => opened.push(Arc::new(socket)),
            Err(error) => trouble = Some(error),
        }
    }
    match trouble {
        Some(error) if opened.is_empty() => Err(error),
        _ => Ok(opened),
    }
}
