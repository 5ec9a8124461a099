//! The calls that a session state machine has beyond those of every [`Machine`].

use crate::{client_machine::ClientMachine, server_machine::ServerMachine};
use rallypoint_machine::Machine;
use std::time::{Duration, Instant};

/// The state machine of a client or a server.
pub(crate) trait SessionMachine: Machine {
    /// Sets the interval at which a game loop polls.
    fn set_poll_interval(&mut self, interval: Duration);

    /// Sets how long the next datagram has waited to be read, if that is known.
    fn set_receive_delay(&mut self, delay: Option<Duration>);

    /// Mixes fresh entropy into the state from which later secrets are drawn (W66).
    fn mix_entropy(&mut self, entropy: &[u8; 32]);

    /// Determines the bytes per second since the last call.
    fn sample_throughput(&mut self, now: Instant);
}

impl SessionMachine for ServerMachine {
    fn set_poll_interval(&mut self, interval: Duration) {
        Self::set_poll_interval(self, interval);
    }

    fn set_receive_delay(&mut self, delay: Option<Duration>) {
        Self::set_receive_delay(self, delay);
    }

    fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        Self::mix_entropy(self, entropy);
    }

    fn sample_throughput(&mut self, now: Instant) {
        Self::sample_throughput(self, now);
    }
}

impl SessionMachine for ClientMachine {
    fn set_poll_interval(&mut self, interval: Duration) {
        Self::set_poll_interval(self, interval);
    }

    fn set_receive_delay(&mut self, delay: Option<Duration>) {
        Self::set_receive_delay(self, delay);
    }

    fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        Self::mix_entropy(self, entropy);
    }

    fn sample_throughput(&mut self, now: Instant) {
        Self::sample_throughput(self, now);
    }
}
