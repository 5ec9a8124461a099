//! The calls that both sides of sessions have beyond those of every state machine.

use rallypoint_machine::Machine;
use std::time::{Duration, Instant};

/// A [`Client`](crate::Client) or an [`Endpoint`](crate::Endpoint), for what drives it on sockets.
pub trait SessionMachine: Machine {
    /// Sets the interval at which the application reads datagrams, as a game loop does: a wait of up to one interval does not
    /// indicate a queue on the path. Zero by default: every datagram is read when it arrives.
    fn set_poll_interval(&mut self, interval: Duration);

    /// Sets how long the datagrams that are handled next have waited to be read, so that the round-trip time in the statistics is
    /// that of the path (W82). `None`, the default, if that is not known: then half the interval of
    /// [`set_poll_interval`](Self::set_poll_interval) is assumed.
    fn set_receive_delay(&mut self, delay: Option<Duration>);

    /// Mixes fresh entropy into the state from which secrets are drawn: a copy of an earlier state does not reveal what is
    /// drawn from then on (W66). `rallypoint-session` calls it now and then.
    fn mix_entropy(&mut self, entropy: &[u8; 32]);

    /// Determines the bytes per second of the statistics, from what was sent and received since the last call. It is called about
    /// once per second.
    fn sample_throughput(&mut self, now: Instant);
}
