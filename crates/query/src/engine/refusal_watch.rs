//! Refusals on systems that do not report them to a socket that is used for many servers.
//!
//! Linux queues the network's reports for such a socket; every system reports them to a socket that is connected to one
//! address. So a server that is silent for a moment is queried once more from a socket of its own. The answer to that query is
//! ignored: it serves only to find out that nothing listens there.

use crate::Direction;
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

/// How long a server is silent before it is queried again. Most servers have answered by then, and never see that query.
const SILENCE: Duration = Duration::from_millis(150);

/// How long a refusal may take.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(1);

/// Interval at which the sockets are polled. They are few and short-lived, so registering them with the event loop does not pay.
const INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of servers watched at a time, because each takes a socket. In a scan of thousands the others time out.
const MAX_WATCHED: usize = 64;

/// Longer than any reply, in bytes.
const BUFFER_SIZE: usize = 1 << 16;

/// Finds out which of a few silent servers refuse queries.
pub(super) struct RefusalWatch {
    /// Local address to query from.
    source: Option<IpAddr>,
    watched: HashMap<SocketAddr, Watched>,
    buffer: Vec<u8>,
}

struct Watched {
    query: Vec<u8>,
    /// Connected to the server, once it was silent for too long.
    socket: Option<UdpSocket>,
    /// When there is something to do.
    next: Instant,
    /// When a refusal is no longer expected.
    end: Instant,
}

impl RefusalWatch {
    pub fn new(source: Option<IpAddr>) -> Self {
        Self { source, watched: HashMap::new(), buffer: Vec::new() }
    }

    /// Notes that a query was sent to a server.
    pub fn handle_query(&mut self, now: Instant, to: SocketAddr, query: &[u8]) {
        if self.watched.len() < MAX_WATCHED {
            let new = || Watched {
                query: query.to_vec(),
                socket: None,
                next: now + SILENCE,
                end: now + SILENCE + MAX_ROUND_TRIP,
            };
            self.watched.entry(to).or_insert_with(new);
        }
    }

    /// Notes that a server has sent something.
    pub fn handle_reply(&mut self, from: &SocketAddr) {
        self.watched.remove(from);
    }

    /// Stops watching all servers.
    pub fn clear(&mut self) {
        self.watched.clear();
    }

    /// When [`handle_timeout`](Self::handle_timeout) has to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.watched.values().map(|watched| watched.next).min()
    }

    /// Queries servers that are silent, and returns those that refuse, with the refused query. `on_packet` is given what is
    /// sent and received, with the local address.
    pub fn handle_timeout(
        &mut self,
        now: Instant,
        mut on_packet: impl FnMut(Direction, SocketAddr, SocketAddr, &[u8]),
    ) -> Vec<(SocketAddr, Vec<u8>)> {
        let Self { source, watched, buffer } = self;
        buffer.resize(BUFFER_SIZE, 0);
        let mut refused = Vec::new();
        watched.retain(|to, server| {
            if server.next > now {
                return true;
            }
            server.next = now + INTERVAL;
            let result = match &server.socket {
                None => connect(*source, *to).and_then(|socket| {
                    let socket = server.socket.insert(socket);
                    on_packet(Direction::Sent, socket.local_addr()?, *to, &server.query);
                    socket.send(&server.query).map(drop)
                }),
                // Not every system reports the error of a socket to its receiver (Wine).
                Some(socket) => socket.take_error().and_then(|error| error.map_or(Ok(()), Err)).and_then(|()| {
                    let length = socket.recv(buffer)?;
                    on_packet(Direction::Received, socket.local_addr()?, *to, &buffer[..length]);
                    Ok(())
                }),
            };
            match result {
                Err(error) if is_refusal(&error) => {
                    refused.push((*to, std::mem::take(&mut server.query)));
                    false
                }
                // Of a reply, further datagrams may follow: they are not refused, because that makes some servers deaf.
                Ok(()) => now < server.end,
                Err(error) => error.kind() == io::ErrorKind::WouldBlock && now < server.end,
            }
        });
        refused
    }
}

/// Whether an error of a connected socket means that nothing listens at the other address. Windows calls it a reset connection.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset)
}

fn connect(source: Option<IpAddr>, to: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((source.unwrap_or(any), 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(to)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets time pass in steps until the watch has ended. Returns the refused queries.
    fn run(watch: &mut RefusalWatch, mut on_packet: impl FnMut(Direction, &[u8])) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut refused = Vec::new();
        while let Some(next) = watch.poll_timeout() {
            refused.extend(watch.handle_timeout(next, |direction, _, _, bytes| on_packet(direction, bytes)));
        }
        refused
    }

    #[test]
    fn a_closed_port_is_refused() {
        for ip in ["127.0.0.1", "::1"] {
            let Ok(closed) = UdpSocket::bind((ip, 0)) else { continue };
            let to = closed.local_addr().unwrap();
            drop(closed);
            let mut watch = RefusalWatch::new(None);
            let started = Instant::now();
            let mut refused = Vec::new();
            // The watch is given times that have not come yet, so a report can be later than its end.
            while refused.is_empty() && started.elapsed() < Duration::from_secs(30) {
                watch.handle_query(Instant::now(), to, b"query");
                refused = run(&mut watch, |_, _| {});
            }
            assert_eq!(refused, [(to, b"query".to_vec())]);
        }
    }

    #[test]
    fn a_silent_server_is_queried_once_more_and_given_up() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = server.local_addr().unwrap();
        let mut watch = RefusalWatch::new(Some(to.ip()));
        for _ in 0..3 {
            watch.handle_query(Instant::now(), to, b"query");
        }
        let mut sent = Vec::new();
        let refused = run(&mut watch, |direction, bytes| sent.push((direction, bytes.to_vec())));
        assert_eq!((refused.len(), sent), (0, vec![(Direction::Sent, b"query".to_vec())]));
        server.set_nonblocking(true).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(server.recv(&mut buffer).unwrap(), 5);
        assert_eq!(server.recv(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_server_that_answers_is_not_queried() {
        let mut watch = RefusalWatch::new(None);
        let to = "127.0.0.1:9".parse().unwrap();
        watch.handle_query(Instant::now(), to, b"query");
        watch.handle_reply(&to);
        assert_eq!(watch.poll_timeout(), None);
    }

    #[test]
    fn few_servers_are_watched() {
        let mut watch = RefusalWatch::new(None);
        for port in 1..1_000 {
            watch.handle_query(Instant::now(), (Ipv4Addr::LOCALHOST, port).into(), b"query");
        }
        assert_eq!(watch.watched.len(), MAX_WATCHED);
        watch.clear();
        assert_eq!(watch.poll_timeout(), None);
    }
}
