//! Asks game servers, for whoever in the program wants to know something of them.
//!
//! Every question has a socket of its own, with a port that nobody can guess and that hears nobody but the server: an answer
//! of document 003 repeats nothing of its question, so this is all that keeps strangers from giving it (W41). Whoever stops
//! waiting takes the socket and the place along, so nothing is left of questions that nobody wants to be answered.

mod fit;

use fit::fit;
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Probe, ProbeOutcome, ProbeResult, Prober, ProberConfig, ProberStats};
use rallypoint_udp::entropy;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    io::Interest,
    net::UdpSocket,
    sync::{Semaphore, SemaphorePermit},
    time::sleep_until,
};

/// For how long a server is asked.
const DEADLINE: Duration = Duration::from_secs(3);

/// Longer than any datagram.
const BUFFER: usize = 1 << 16;

/// So many datagrams are taken before somebody else has a turn.
const PER_TURN: usize = 64;

/// Asks servers, each on a socket of its own. Clones are the same.
#[derive(Clone, Debug)]
pub struct Asker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// For servers that the operator has chosen, so that nobody else can be in their way.
    watched: Semaphore,
    /// For all others.
    others: Semaphore,
    sockets: usize,
    stats: Mutex<ProberStats>,
}

/// Who is asked, which says how much it is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// A server that the operator wants to be asked.
    Watched,
    /// One that wants to be asked itself: it has answered before, or said so in a way that cannot be forged.
    Willing,
    /// One of which a datagram says so, and datagrams can be forged.
    Claimed,
}

impl Asker {
    /// How many sockets it has at most, if there are enough.
    pub const SOCKETS: usize = 512;

    /// One that has at most so many sockets at a time. A quarter of them are for servers that the operator has chosen.
    #[must_use]
    pub fn new(sockets: usize) -> Self {
        let sockets = sockets.clamp(2, Self::SOCKETS);
        let watched = (sockets / 4).max(1);
        let (watched, others) = (Semaphore::new(watched), Semaphore::new(sockets - watched));
        Self(Arc::new(Inner { watched, others, sockets, stats: Mutex::default() }))
    }

    /// How many sockets it has at most.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.0.sockets
    }

    /// What it has done.
    #[must_use]
    pub fn stats(&self) -> ProberStats {
        *self.0.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a server, for three seconds at most. Texts of its answer are cut to a length that can be kept. `None` if it was
    /// not asked, because there are too many others or because of trouble of this machine: that says nothing about it.
    pub(crate) async fn ask(&self, target: Probe, whom: Whom) -> Option<ProbeOutcome> {
        let _place = self.place(whom).await?;
        let retries = match whom {
            Whom::Watched | Whom::Willing => 4,
            Whom::Claimed => 1,
        };
        let mut prober = prober(retries).ok()?;
        if prober.enqueue(target).is_err() {
            // No answer could come from such an address.
            return Some(ProbeOutcome::TimedOut);
        }
        let outcome = converse(&mut prober, target).await.ok()?;
        let mut stats = self.0.stats.lock().unwrap_or_else(PoisonError::into_inner);
        *stats += prober.stats();
        // The prober does not know it: the socket ends it.
        stats.refused += u64::from(outcome == ProbeOutcome::Refused);
        Some(match outcome {
            ProbeOutcome::Answered(mut reply) => {
                reply.info = fit(reply.info);
                ProbeOutcome::Answered(reply)
            }
            other => other,
        })
    }

    async fn place(&self, whom: Whom) -> Option<SemaphorePermit<'_>> {
        match whom {
            // Nobody but the operator can make them many, so each has its turn.
            Whom::Watched => self.0.watched.acquire().await.ok(),
            Whom::Willing | Whom::Claimed => self.0.others.try_acquire().ok(),
        }
    }
}

impl Default for Asker {
    fn default() -> Self {
        Self::new(Self::SOCKETS)
    }
}

/// One for one question.
fn prober(retries: u8) -> io::Result<Prober> {
    let config = ProberConfig {
        packets_per_second: 1_000,
        max_in_flight: 1,
        max_targets: 1,
        deadline: DEADLINE,
        retries,
        retry_after: Duration::from_millis(400),
        backoff: 1.2,
    };
    Prober::new(config, entropy::bytes()?).map_err(io::Error::other)
}

/// Lets a prober ask its only target. It is an error if this machine could not even try.
async fn converse(prober: &mut Prober, target: Probe) -> io::Result<ProbeOutcome> {
    let to = target.address;
    let local: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((local, 0)).await?;
    socket.connect(to).await?;
    let mut out = Vec::new();
    loop {
        let now = Instant::now();
        prober.handle_timeout(now);
        while prober.poll_transmit(now, &mut out).is_some() {
            // What is not sent is as good as lost, and asked again.
            if socket.send(&out).await.is_err_and(|error| is_refused(&error)) {
                return Ok(ProbeOutcome::Refused);
            }
            out.clear();
        }
        if let Some(ProbeResult { outcome, .. }) = prober.poll_event() {
            return Ok(outcome);
        }
        let wake = prober.poll_timeout().unwrap_or(now + DEADLINE);
        tokio::select! {
            ready = socket.ready(Interest::READABLE | Interest::ERROR) => {
                ready?;
                if receive(&socket, target, prober) {
                    return Ok(ProbeOutcome::Refused);
                }
            }
            () = sleep_until(wake.into()) => {}
        }
    }
}

/// Takes in what has come. Says whether the server's machine says that nothing listens there: the system makes sure that it
/// speaks of this very socket, whose port nobody can guess.
fn receive(socket: &UdpSocket, target: Probe, prober: &mut Prober) -> bool {
    let next_error = || Err(socket.take_error()?.unwrap_or_else(|| io::ErrorKind::WouldBlock.into()));
    let trouble: io::Result<()> = socket.try_io(Interest::ERROR, next_error);
    if trouble.is_err_and(|error| is_refused(&error)) {
        return true;
    }
    let mut buffer = vec![0; BUFFER];
    for _ in 0..PER_TURN {
        match socket.try_recv(&mut buffer) {
            Ok(length) => prober.handle_datagram(Instant::now(), target.address, &buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if is_refused(&error) => return true,
            Err(error) => tracing::debug!(%error, server = %target.address, "a server cannot be asked"),
        }
    }
    false
}

fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

#[cfg(test)]
mod tests;
