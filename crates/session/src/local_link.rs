//! Links between a server and clients in the same process, in place of sockets.

use rallypoint_machine::Transmit;
use std::{
    collections::VecDeque,
    fmt,
    net::{Ipv6Addr, SocketAddr},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Maximum number of datagrams that wait in one direction. Beyond it they are lost, as in the buffer of a socket.
const MAX_WAITING: usize = 8_192;

/// A function that wakes the task which drives the receiver.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// One end of a link.
pub(crate) struct LocalLink {
    /// The address of the other end, from the discard prefix 100::/64 (RFC 6666), which no network delivers to.
    peer: SocketAddr,
    incoming: Arc<Queue>,
    outgoing: Arc<Queue>,
}

/// The datagrams of one direction.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    datagrams: VecDeque<Vec<u8>>,
    /// Buffers of datagrams that were handled.
    free: Vec<Vec<u8>>,
    wake: Option<Wake>,
}

impl LocalLink {
    /// The two ends of a link: that of the server, and that of its client with this number.
    pub fn pair(client: u16) -> (Self, Self) {
        let addr = |port| SocketAddr::from((Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 1), port));
        let to_server = Arc::new(Queue::default());
        let to_client = Arc::new(Queue::default());
        let server = Self { peer: addr(client.max(1)), incoming: to_server.clone(), outgoing: to_client.clone() };
        (server, Self { peer: addr(0), incoming: to_client, outgoing: to_server })
    }

    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether the other end was dropped.
    pub fn is_closed(&self) -> bool {
        Arc::strong_count(&self.outgoing) == 1 && self.incoming.lock().datagrams.is_empty()
    }

    /// Sets the function that wakes the task of this end when a datagram arrives.
    pub fn set_wake(&self, wake: Wake) {
        self.incoming.lock().wake = Some(wake);
    }

    /// Hands the datagrams over to the other end.
    pub fn send(&self, transmit: &Transmit, bytes: &[u8]) {
        let mut state = self.outgoing.lock();
        for datagram in transmit.datagrams(bytes) {
            if state.datagrams.len() < MAX_WAITING {
                let mut buffer = state.free.pop().unwrap_or_default();
                buffer.extend_from_slice(datagram);
                state.datagrams.push_back(buffer);
            }
        }
        if let Some(wake) = &state.wake {
            wake();
        }
        self.outgoing.arrived.notify_one();
    }

    /// Calls a function with each datagram that has arrived.
    pub fn receive(&self, mut handle: impl FnMut(&[u8])) {
        let mut datagrams = std::mem::take(&mut self.incoming.lock().datagrams);
        for datagram in &datagrams {
            handle(datagram);
        }
        let mut state = self.incoming.lock();
        for mut buffer in datagrams.drain(..) {
            buffer.clear();
            state.free.push(buffer);
        }
        if state.datagrams.is_empty() {
            state.datagrams = datagrams;
        }
    }

    /// Waits until a datagram has arrived, or for this time.
    pub fn wait(&self, timeout: Duration) {
        let state = self.incoming.lock();
        let is_empty = |state: &mut State| state.datagrams.is_empty();
        drop(self.incoming.arrived.wait_timeout_while(state, timeout, is_empty));
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves whole datagrams.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LocalLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalLink").field("peer", &self.peer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_arrive_in_order_and_memory_is_bounded() {
        let (server, client) = LocalLink::pair(7);
        let transmit = Transmit { to: client.peer(), len: 5, segment: Some(2), from: None };
        client.send(&transmit, b"abcde");
        let mut received = Vec::new();
        server.receive(|datagram| received.push(datagram.to_vec()));
        assert_eq!(received, [b"ab".to_vec(), b"cd".to_vec(), b"e".to_vec()]);
        for _ in 0..MAX_WAITING + 5 {
            client.send(&Transmit::one(client.peer(), 1), b"x");
        }
        let mut count = 0;
        server.receive(|_| count += 1);
        assert_eq!(count, MAX_WAITING);
        drop(client);
        assert!(server.is_closed());
    }
}
