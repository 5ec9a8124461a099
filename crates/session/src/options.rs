//! Options of servers and clients.

use crate::{LinkConditions, SetupError};
use rallypoint_session_proto::{ClientConfig, EndpointConfig, SessionConfigError};
use rallypoint_wire::session::STREAM_SUFFIX;
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

/// How long the async `send` waits for room in the window: much longer than any outage that a game survives.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Size of the receive buffer that is requested for a server: messages of 255 players for a quarter of a second.
const SERVER_RECEIVE_BUFFER: usize = 4 << 20;

/// Size of the receive buffer that is requested for a client.
const CLIENT_RECEIVE_BUFFER: usize = 1 << 20;

/// Options of a server. An [`EndpointConfig`] alone becomes a server that listens on port 45555.
///
/// ```
/// use rallypoint_session::{EndpointConfig, ServerOptions};
///
/// let options = ServerOptions { listen: vec!["127.0.0.1:0".parse()?], ..EndpointConfig::for_game("tag").into() };
/// assert_eq!(options.endpoint.max_players, 64);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Addresses to listen on, at most one IPv4 and one IPv6 address. By default `0.0.0.0:45555` and `[::]:45555` (S34); a
    /// family that the machine does not support is left out.
    pub listen: Vec<SocketAddr>,
    /// Games, players, keys, limits.
    pub endpoint: EndpointConfig,
    /// Maximum length of a message in bytes, with streams: messages may be longer than a datagram, and small ones share
    /// datagrams (S33). Both sides have to set the same value and deliver messages in order. From 1 to 2^28 - 1; `None` by
    /// default: a message has to fit into a datagram.
    pub stream: Option<usize>,
    /// Whether logins name the stream, if there is one, so that a peer without one is refused (W118). True by default; false for
    /// a game whose protocol says that its sessions are streams, as the one of rooms does.
    pub names_stream: bool,
    /// How long [`SessionServer::send`](crate::SessionServer::send) waits while the window of a player is full. From 1 ms to an
    /// hour; 10 s by default.
    pub send_timeout: Duration,
    /// A simulated bad network, for tests.
    pub link_conditions: Option<LinkConditions>,
    /// Size of the socket's receive buffer in bytes, which holds datagrams while the program is busy. 4 MiB by default.
    pub receive_buffer: usize,
}

/// Options of a client. A [`ClientConfig`] alone becomes a client with default options.
///
/// ```
/// use rallypoint_session::{ClientConfig, ClientOptions};
///
/// let options = ClientOptions { stream: Some(1 << 20), ..ClientConfig::new("alice", "tag").into() };
/// assert_eq!(options.client.username, "alice");
/// ```
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Name, game, encryption.
    pub client: ClientConfig,
    /// As [`ServerOptions::stream`].
    pub stream: Option<usize>,
    /// As [`ServerOptions::names_stream`].
    pub names_stream: bool,
    /// How long [`SessionClient::send`](crate::SessionClient::send) waits while the window is full. From 1 ms to an hour; 10 s by
    /// default.
    pub send_timeout: Duration,
    /// A simulated bad network, for tests.
    pub link_conditions: Option<LinkConditions>,
    /// Address to send from, of the same family as the server's. Any address and port by default.
    pub local: Option<SocketAddr>,
    /// Size of the socket's receive buffer in bytes, which holds datagrams while the program is busy. 1 MiB by default.
    pub receive_buffer: usize,
}

impl ServerOptions {
    /// What ends the game of a login (W118).
    pub(crate) fn game_suffix(&self) -> &'static str {
        game_suffix(self.stream, self.names_stream)
    }

    pub(crate) fn validate(&self) -> Result<(), SetupError> {
        self.endpoint.validate()?;
        validate_send_timeout(self.send_timeout)?;
        validate_stream(self.stream, self.endpoint.connection.ordered)?;
        let count = |is_v4: bool| self.listen.iter().filter(|addr| addr.is_ipv4() == is_v4).count();
        if self.listen.is_empty() || count(true) > 1 || count(false) > 1 {
            return Err(SetupError::ListenAddrs);
        }
        Ok(())
    }
}

impl ClientOptions {
    /// What ends the game of the login (W118).
    pub(crate) fn game_suffix(&self) -> &'static str {
        game_suffix(self.stream, self.names_stream)
    }

    pub(crate) fn validate(&self) -> Result<(), SetupError> {
        self.client.validate()?;
        validate_send_timeout(self.send_timeout)?;
        validate_stream(self.stream, self.client.connection.ordered)
    }
}

fn game_suffix(stream: Option<usize>, names_stream: bool) -> &'static str {
    if stream.is_some() && names_stream { STREAM_SUFFIX } else { "" }
}

fn validate_send_timeout(value: Duration) -> Result<(), SessionConfigError> {
    let min = Duration::from_millis(1);
    let max = Duration::from_hours(1);
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(SessionConfigError::Duration { field: "send_timeout", value, min, max })
}

fn validate_stream(max_length: Option<usize>, is_ordered: bool) -> Result<(), SetupError> {
    match max_length {
        Some(length) if !(1..1 << 28).contains(&length) => Err(SetupError::StreamLength { length }),
        Some(_) if !is_ordered => Err(SetupError::UnorderedStream),
        _ => Ok(()),
    }
}

impl From<EndpointConfig> for ServerOptions {
    fn from(endpoint: EndpointConfig) -> Self {
        let port = rallypoint_wire::session::PORT;
        let listen = vec![(Ipv4Addr::UNSPECIFIED, port).into(), (Ipv6Addr::UNSPECIFIED, port).into()];
        Self {
            listen,
            endpoint,
            stream: None,
            names_stream: true,
            send_timeout: SEND_TIMEOUT,
            link_conditions: None,
            receive_buffer: SERVER_RECEIVE_BUFFER,
        }
    }
}

impl From<ClientConfig> for ClientOptions {
    fn from(client: ClientConfig) -> Self {
        Self {
            client,
            stream: None,
            names_stream: true,
            send_timeout: SEND_TIMEOUT,
            link_conditions: None,
            local: None,
            receive_buffer: CLIENT_RECEIVE_BUFFER,
        }
    }
}
