//! The calls that a session state machine has beyond those of every [`Machine`].

use rallypoint_machine::Machine;
use rallypoint_session_proto::{ChannelClient, ChannelServer, Client, Endpoint};
use std::time::Duration;

/// A client or server state machine, with or without channels.
pub(crate) trait SessionMachine: Machine {
    /// Sets the interval at which a game loop polls.
    fn set_poll_interval(&mut self, interval: Duration);

    /// Sets how long the next datagram has waited to be read, if that is known.
    fn set_receive_delay(&mut self, delay: Option<Duration>);

    /// Mixes fresh entropy into the state from which later secrets are drawn (W66).
    fn mix_entropy(&mut self, entropy: &[u8; 32]);
}

macro_rules! impl_session_machine {
    ($($machine:ty),*) => {$(
        impl SessionMachine for $machine {
            fn set_poll_interval(&mut self, interval: Duration) {
                // The inherent method: it takes precedence over that of the trait.
                <$machine>::set_poll_interval(self, interval);
            }

            fn set_receive_delay(&mut self, delay: Option<Duration>) {
                <$machine>::set_receive_delay(self, delay);
            }

            fn mix_entropy(&mut self, entropy: &[u8; 32]) {
                <$machine>::mix_entropy(self, entropy);
            }
        }
    )*};
}

impl_session_machine!(Client, Endpoint, ChannelClient, ChannelServer);
