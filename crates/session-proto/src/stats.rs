//! What is counted.

use std::time::Duration;

/// How a connection is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// The smoothed time to an answer, if one was measured.
    pub rtt: Option<Duration>,
    /// How much it varies.
    pub rtt_variation: Duration,
    /// The shortest time to an answer lately.
    pub rtt_min: Duration,
    /// The share of messages that got lost on their first way, lately.
    pub loss: f64,
    /// What the path is believed to carry, in bytes per second.
    pub rate: u64,
    /// How many bytes may be under way.
    pub window: u64,
    /// How many bytes are under way.
    pub in_flight: u64,
    /// How many messages are not acknowledged, those that were not sent yet included.
    pub unacked: usize,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes of all datagrams sent.
    pub bytes_sent: u64,
    /// Bytes of all datagrams received.
    pub bytes_received: u64,
    /// Messages sent again because they were lost, or believed to be.
    pub resends: u64,
    /// Messages sent twice because the network is bad.
    pub copies: u64,
    /// Resends that turned out to be needless.
    pub spurious: u64,
    /// Messages that arrived more than once.
    pub duplicates: u64,
    /// Messages that did not open, or had no room in the window.
    pub dropped: u64,
}
