//! Options of servers and clients.

#[cfg(feature = "async")]
use crate::{Client, Server};
use crate::{ConnectError, LinkConditions, PolledClient, PolledServer, SetupError};
use rallypoint_session_proto::{
    ChannelIndex, ChannelTable, ClientConfig, ConnectToken, Encryption, EndpointConfig, Layer, PublicKey,
    SessionConfigError, StaticKey, TokenKey, TokenVerifier, WallClock,
};
use rallypoint_udp::clock;
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// How long the async `send` waits for room in the window: much longer than any outage that a game survives.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Size of the receive buffer that is requested for a server: messages of 255 players for a quarter of a second.
const SERVER_RECEIVE_BUFFER: usize = 4 << 20;

/// Size of the receive buffer that is requested for a client.
const CLIENT_RECEIVE_BUFFER: usize = 1 << 20;

/// Options of a server: a builder, whose fields can be set as well.
///
/// ```
/// use rallypoint_session::ServerOptions;
///
/// let mut options = ServerOptions::new("tag").listen("127.0.0.1:0".parse()?).stream(1 << 20);
/// options.endpoint.max_players = 8;
/// let server = options.bind_polled()?;
/// assert_eq!(server.local_addrs().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Addresses to listen on, at most one IPv4 and one IPv6 address. By default `0.0.0.0:45555` and `[::]:45555` (S34); a
    /// family that the machine does not support is left out.
    pub listen: Vec<SocketAddr>,
    /// Whether the server has no sockets, but only clients in the same process
    /// ([`PolledServer::connect_local`]), for single player. Off by default.
    pub local_only: bool,
    /// Games, players, keys, limits, and what the sessions carry.
    pub endpoint: EndpointConfig,
    /// How long [`Server::send`](crate::Server::send) waits while there is no room. From 1 ms to an hour; 10 s by default.
    pub send_timeout: Duration,
    /// A simulated bad network, for tests.
    pub link_conditions: Option<LinkConditions>,
    /// Size of the socket's receive buffer in bytes, which holds datagrams while the program is busy. 4 MiB by default.
    pub receive_buffer: usize,
}

/// Options of a client: a builder, whose fields can be set as well.
///
/// ```
/// use rallypoint_session::{ClientOptions, Encryption};
///
/// let options = ClientOptions::new("alice", "tag").stream(1 << 20);
/// assert_eq!(options.client.encryption, Encryption::Encrypted);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Name, game, encryption, and what the session carries.
    pub client: ClientConfig,
    /// How long [`Client::send`](crate::Client::send) waits while there is no room. From 1 ms to an hour; 10 s by default.
    pub send_timeout: Duration,
    /// A simulated bad network, for tests.
    pub link_conditions: Option<LinkConditions>,
    /// Address to send from, of the same family as the server's. Any address and port by default.
    pub local: Option<SocketAddr>,
    /// Size of the socket's receive buffer in bytes, which holds datagrams while the program is busy. 1 MiB by default.
    pub receive_buffer: usize,
}

impl ServerOptions {
    /// The default options of a server for one game.
    #[must_use]
    pub fn new(game: &str) -> Self {
        EndpointConfig::for_game(game).into()
    }

    /// Listens on this address, instead of the default ones. Called twice, on an IPv4 and an IPv6 address.
    #[must_use]
    pub fn listen(mut self, addr: SocketAddr) -> Self {
        if self.listen == default_addrs() {
            self.listen.clear();
        }
        self.listen.push(addr);
        self
    }

    /// Opens no socket, for single player: clients are in the same process.
    #[must_use]
    pub fn local_only(self) -> Self {
        Self { local_only: true, ..self }
    }

    /// Sets the key by which clients recognise the server.
    #[must_use]
    pub fn key(mut self, key: StaticKey) -> Self {
        self.endpoint.static_key = Some(key);
        self
    }

    /// Sets the maximum number of players: 1 to 255.
    #[must_use]
    pub fn max_players(mut self, max_players: usize) -> Self {
        self.endpoint.max_players = max_players;
        self
    }

    /// The sessions have these channels, the same as the clients'.
    #[must_use]
    pub fn channels(self, table: ChannelTable) -> Self {
        Self { endpoint: self.endpoint.channels(table), ..self }
    }

    /// The sessions are streams of messages of at most this length.
    #[must_use]
    pub fn stream(mut self, max_message: usize) -> Self {
        self.endpoint.layer = Layer::Stream { max_message, is_named: true };
        self
    }

    /// Only players with a valid token of this issuer may join.
    #[must_use]
    pub fn tokens(mut self, issuer: TokenKey) -> Self {
        // With a clock before 1970 the expiry of tokens cannot be judged anyway.
        let unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
        self.endpoint.tokens = Some(TokenVerifier { issuer, clock: WallClock { at: clock::now(), unix_seconds } });
        self
    }

    /// The application decides who may join.
    #[must_use]
    pub fn decides_logins(mut self) -> Self {
        self.endpoint.decides_logins = true;
        self
    }

    /// Players whose client has no channels have this one.
    #[must_use]
    pub fn plain_channel(mut self, channel: ChannelIndex) -> Self {
        self.endpoint.plain_channel = Some(channel);
        self
    }

    /// Binds the sockets of an async server: [`Server::bind`].
    ///
    /// # Errors
    /// If an option is invalid, or a socket cannot be bound.
    #[cfg(feature = "async")]
    pub async fn bind(self) -> Result<Server, SetupError> {
        Server::bind(self).await
    }

    /// Binds the sockets of a server for game loops: [`PolledServer::bind`].
    ///
    /// # Errors
    /// If an option is invalid, or a socket cannot be bound.
    pub fn bind_polled(self) -> Result<PolledServer, SetupError> {
        PolledServer::bind(self)
    }

    pub(crate) fn validate(&self) -> Result<(), SetupError> {
        self.endpoint.validate()?;
        validate_send_timeout(self.send_timeout)?;
        let count = |is_v4: bool| self.listen.iter().filter(|addr| addr.is_ipv4() == is_v4).count();
        if self.local_only {
            return Ok(());
        }
        if self.listen.is_empty() || count(true) > 1 || count(false) > 1 {
            return Err(SetupError::ListenAddrs);
        }
        Ok(())
    }
}

impl ClientOptions {
    /// The default options of a client with this name, for this game.
    #[must_use]
    pub fn new(username: &str, game: &str) -> Self {
        ClientConfig::new(username, game).into()
    }

    /// Accepts no server but the one with this key.
    #[must_use]
    pub fn pinned(mut self, server: PublicKey) -> Self {
        self.client.encryption = Encryption::Pinned(server);
        self
    }

    /// Sets how the session is protected.
    #[must_use]
    pub fn encryption(mut self, encryption: Encryption) -> Self {
        self.client.encryption = encryption;
        self
    }

    /// Logs in again when the session ends without either side having closed it.
    #[must_use]
    pub fn reconnect(mut self) -> Self {
        self.client.reconnect = true;
        self
    }

    /// The session has these channels, the same as the server's.
    #[must_use]
    pub fn channels(self, table: ChannelTable) -> Self {
        Self { client: self.client.channels(table), ..self }
    }

    /// The session is a stream of messages of at most this length.
    #[must_use]
    pub fn stream(mut self, max_message: usize) -> Self {
        self.client.layer = Layer::Stream { max_message, is_named: true };
        self
    }

    /// Shows the server a token of the game's account service.
    #[must_use]
    pub fn token(mut self, token: ConnectToken) -> Self {
        self.client.token = Some(token);
        self
    }

    /// Connects an async client: [`Client::connect`].
    ///
    /// # Errors
    /// As [`Client::connect`].
    #[cfg(feature = "async")]
    pub async fn connect(self, server: impl tokio::net::ToSocketAddrs) -> Result<Client, ConnectError> {
        Client::connect(server, self).await
    }

    /// Starts the login of a client for game loops: [`PolledClient::connect`].
    ///
    /// # Errors
    /// As [`PolledClient::connect`].
    pub fn connect_polled(self, server: impl ToSocketAddrs) -> Result<PolledClient, ConnectError> {
        PolledClient::connect(server, self)
    }

    pub(crate) fn validate(&self) -> Result<(), SetupError> {
        self.client.validate()?;
        Ok(validate_send_timeout(self.send_timeout)?)
    }
}

fn validate_send_timeout(value: Duration) -> Result<(), SessionConfigError> {
    let min = Duration::from_millis(1);
    let max = Duration::from_hours(1);
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(SessionConfigError::Duration { field: "send_timeout", value, min, max })
}

fn default_addrs() -> [SocketAddr; 2] {
    let port = rallypoint_wire::session::PORT;
    [(Ipv4Addr::UNSPECIFIED, port).into(), (Ipv6Addr::UNSPECIFIED, port).into()]
}

impl From<EndpointConfig> for ServerOptions {
    fn from(endpoint: EndpointConfig) -> Self {
        Self {
            listen: default_addrs().to_vec(),
            local_only: false,
            endpoint,
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
            send_timeout: SEND_TIMEOUT,
            link_conditions: None,
            local: None,
            receive_buffer: CLIENT_RECEIVE_BUFFER,
        }
    }
}
