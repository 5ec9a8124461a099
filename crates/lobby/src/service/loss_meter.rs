//! Whether datagrams get lost because more arrive than the lobby can handle.

use rallypoint_udp::UdpSocket;
use std::sync::Arc;

/// Share of datagrams (1/100) whose loss counts: with a twelfth of them lost, one server in a hundred would miss both refreshes of
/// its lease.
const MIN_LOSS: u64 = 100;

/// Compares the datagrams that were received and lost since the last time.
#[derive(Debug)]
pub(super) struct LossMeter {
    sockets: Vec<Arc<UdpSocket>>,
    last: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    received: u64,
    dropped: u64,
}

impl LossMeter {
    pub fn new(sockets: Vec<Arc<UdpSocket>>) -> Self {
        Self { sockets, last: Counts::default() }
    }

    /// Whether the receive buffers have overflowed since the last call.
    pub fn is_overloaded(&mut self) -> bool {
        let sum = |count: fn(&UdpSocket) -> u64| self.sockets.iter().map(|socket| count(socket)).sum();
        let now = Counts { received: sum(UdpSocket::received), dropped: sum(UdpSocket::dropped) };
        now.is_loss_since(std::mem::replace(&mut self.last, now))
    }
}

impl Counts {
    fn is_loss_since(self, before: Self) -> bool {
        // The system counts in 32 bits, which can overflow.
        let dropped = self.dropped.saturating_sub(before.dropped);
        dropped > 0 && MIN_LOSS * dropped >= self.received - before.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w86_a_percent_is_a_loss() {
        let before = Counts { received: 1_000, dropped: 50 };
        let after = |received: u64, dropped: u64| Counts { received: 1_000 + received, dropped: 50 + dropped };
        assert!(!before.is_loss_since(before));
        assert!(!after(10_000, 0).is_loss_since(before));
        assert!(!after(10_000, 99).is_loss_since(before));
        assert!(after(10_000, 100).is_loss_since(before));
        assert!(after(0, 1).is_loss_since(before));
        assert!(!Counts { received: 2_000, dropped: 0 }.is_loss_since(before), "the system's counter overflowed");
    }

    #[test]
    fn w86_a_full_receive_buffer_is_noticed() {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 4_096).unwrap());
        let mut losses = LossMeter::new(vec![Arc::clone(&socket)]);
        assert!(!losses.is_overloaded());
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..10_000 {
            sender.send_to(&[0; 1_000], socket.local_addr()).unwrap();
        }
        assert_eq!(losses.is_overloaded(), cfg!(target_os = "linux") && socket.dropped() > 0);
        assert!(!losses.is_overloaded());
    }
}
