//! What can be set.

use crate::{FakeNetwork, SetupError};
use rallypoint_session_proto::{ClientConfig, EndpointConfig};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// What a socket keeps for a program that is busy: 255 players' messages of a quarter of a second.
const SERVER_BUFFER: usize = 4 << 20;
const CLIENT_BUFFER: usize = 1 << 20;

/// How a server is set up. An [`EndpointConfig`] alone becomes one that listens at port 45555.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where it listens, at most once for IPv4 and once for IPv6. By default `0.0.0.0:45555` and `[::]:45555` (S34); a family
    /// that the machine does not have is left out.
    pub listen: Vec<SocketAddr>,
    /// Games, players, keys, limits.
    pub endpoint: EndpointConfig,
    /// With it, messages may be as long as this, and small ones share datagrams (S33). Both sides have to set it alike, and
    /// messages have to be delivered in order. From 1 to 2^28 - 1; by default `None`: a message has to fit into a datagram.
    pub stream: Option<usize>,
    /// A bad network, for testing.
    pub fake: Option<FakeNetwork>,
    /// How many bytes the system is asked to keep while the program is busy. By default 4 MB.
    pub receive_buffer: usize,
}

/// How a client is set up. A [`ClientConfig`] alone becomes one.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Name, game, encryption.
    pub client: ClientConfig,
    /// As in [`ServerOptions::stream`].
    pub stream: Option<usize>,
    /// A bad network, for testing.
    pub fake: Option<FakeNetwork>,
    /// Where to send from; by default any address and port. It has to be of the server's family.
    pub local: Option<SocketAddr>,
    /// How many bytes the system is asked to keep while the program is busy. By default 1 MB.
    pub receive_buffer: usize,
}

impl ServerOptions {
    pub(crate) fn validate(&self) -> Result<(), SetupError> {
        self.endpoint.validate()?;
        stream(self.stream, self.endpoint.connection.ordered)?;
        let of = |is_v4: bool| self.listen.iter().filter(|addr| addr.is_ipv4() == is_v4).count();
        if self.listen.is_empty() || of(true) > 1 || of(false) > 1 {
            return Err(SetupError::Listen);
        }
        Ok(())
    }
}

impl ClientOptions {
    pub(crate) fn validate(&self) -> Result<(), SetupError> {
        self.client.validate()?;
        stream(self.stream, self.client.connection.ordered)
    }
}

fn stream(max: Option<usize>, is_ordered: bool) -> Result<(), SetupError> {
    match max {
        Some(length) if !(1..1 << 28).contains(&length) => Err(SetupError::Stream { length }),
        Some(_) if !is_ordered => Err(SetupError::Unordered),
        _ => Ok(()),
    }
}

impl From<EndpointConfig> for ServerOptions {
    fn from(endpoint: EndpointConfig) -> Self {
        let port = rallypoint_wire::session::PORT;
        let listen = vec![(Ipv4Addr::UNSPECIFIED, port).into(), (Ipv6Addr::UNSPECIFIED, port).into()];
        Self { listen, endpoint, stream: None, fake: None, receive_buffer: SERVER_BUFFER }
    }
}

impl From<ClientConfig> for ClientOptions {
    fn from(client: ClientConfig) -> Self {
        Self { client, stream: None, fake: None, local: None, receive_buffer: CLIENT_BUFFER }
    }
}
