//! The client for game loops: one call per frame, no thread, no runtime.

use crate::{
    ClientEvent, ClientOptions, ConnectError, LinkConditions, SetupError, entropy_refresh::secret_bytes,
    local_link::LocalLink, socket_driver::SocketDriver,
};
use rallypoint_session_proto::{
    ChannelIndex, Client, ClientEvent as ClientNotice, Connection, ConnectionStats, MessageId, SendError,
};
use rallypoint_udp::{BindError, UdpSocket, clock};
use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

/// A client for game loops: call [`poll`](Self::poll) once per frame; nothing happens in between.
///
/// ```no_run
/// use rallypoint_session::{
///     Channel, ChannelIndex, ChannelMode, ChannelTable, ClientEvent, ClientOptions, PolledClient, SendError,
/// };
///
/// const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();
/// const POSITIONS: ChannelIndex = ChannelIndex::new(1).unwrap();
/// let table = ChannelTable::new([
///     Channel::new(ChannelMode::ReliableOrdered, 1_000),
///     Channel::new(ChannelMode::Sequenced, 100),
/// ])?;
/// let mut client = PolledClient::connect("play.example.org:45555", ClientOptions::new("alice", "tag").channels(table))?;
/// loop {
///     client.poll();
///     while let Some(event) = client.next_event() {
///         match event {
///             ClientEvent::Connected => println!("in the game"),
///             ClientEvent::Message { channel: CHAT, bytes } => println!("{bytes:?}"),
///             ClientEvent::Disconnected(reason) => return Err(reason.into()),
///             ClientEvent::LoginFailed(error) => return Err(error.into()),
///             _ => {}
///         }
///     }
///     // The game: move, draw, and send what has changed.
///     if client.is_connected() {
///         match client.send(POSITIONS, b"position") {
///             // There is no room: this position is skipped.
///             Ok(_) | Err(SendError::WouldBlock) => {}
///             Err(error) => return Err(error.into()),
///         }
///     }
///     client.flush();
///     std::thread::sleep(std::time::Duration::from_millis(16));
/// }
/// # #[allow(unreachable_code)] Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PolledClient {
    driver: SocketDriver<Client>,
    /// The message that was handed out last.
    buffer: Vec<u8>,
}

impl PolledClient {
    /// Starts to log in; [`ClientEvent::Connected`] or [`ClientEvent::LoginFailed`] follows. A name is resolved before this
    /// returns.
    ///
    /// # Errors
    /// If an option is invalid, no socket can be bound, or the name cannot be resolved.
    pub fn connect(server: impl ToSocketAddrs, options: impl Into<ClientOptions>) -> Result<Self, ConnectError> {
        Ok(Self::connect_to(resolve(server)?, options.into())?)
    }

    pub(crate) fn connect_to(server: SocketAddr, options: ClientOptions) -> Result<Self, SetupError> {
        options.validate()?;
        let socket = bind_socket(server, &options)?;
        Self::start(server, options, vec![Arc::new(socket)])
    }

    /// A client of a server in this process.
    pub(crate) fn connect_link(link: LocalLink, options: ClientOptions) -> Result<Self, SetupError> {
        options.validate()?;
        let mut client = Self::start(link.peer(), options, Vec::new())?;
        client.driver.add_link(link);
        Ok(client)
    }

    fn start(server: SocketAddr, options: ClientOptions, sockets: Vec<Arc<UdpSocket>>) -> Result<Self, SetupError> {
        let client = Client::new(clock::now(), server, options.client, *secret_bytes()?)?;
        let driver = SocketDriver::new(client, sockets, options.link_conditions);
        Ok(Self { driver, buffer: Vec::new() })
    }

    /// Receives datagrams, handles expired timers, and sends what is due. Call it once per frame.
    pub fn poll(&mut self) {
        let now = self.driver.begin_frame();
        self.driver.drive(now);
    }

    /// Sends the messages passed to [`send`](Self::send) since [`poll`](Self::poll), as far as the network admits them. Call it
    /// at the end of a frame, so that they are sent now and not with the next frame.
    pub fn flush(&mut self) {
        self.driver.transmit(clock::now());
    }

    /// Waits until a datagram arrives, a timer expires, or `timeout` has passed. For loops without frames.
    pub fn wait(&mut self, timeout: Duration) {
        self.driver.wait(timeout);
    }

    /// The next event. A message is lent until the next call.
    pub fn next_event(&mut self) -> Option<ClientEvent<'_>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let next = self.take_event(&mut buffer);
        self.buffer = buffer;
        let (notice, channel) = next?;
        Some(ClientEvent::new(notice, channel, &self.buffer))
    }

    /// Sends a message on a channel: [`ONLY_CHANNEL`](crate::ONLY_CHANNEL) if the session has no others. It leaves with the next
    /// [`flush`](Self::flush) or [`poll`](Self::poll). The ID is for receipts, which only channels can have.
    ///
    /// # Errors
    /// If there is no session or no such channel, the message is too large, or there is no room: [`ClientEvent::Writable`]
    /// follows when there is room again.
    pub fn send(&mut self, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        let now = self.driver.send_time(self.machine().is_expiring(channel));
        self.driver.machine_mut().send(now, channel, message)
    }

    /// Ends the session: sends the messages that are left, then disconnects. Call [`poll`](Self::poll) until
    /// [`is_closed`](Self::is_closed): it takes a moment.
    pub fn close(&mut self) {
        self.driver.machine_mut().close(clock::now());
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.machine().is_connected()
    }

    /// Whether the client is closed for good: once the pending events are polled, no others follow.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.machine().is_closed()
    }

    /// Whether the server has acknowledged every message passed to [`send`](Self::send), in this session and in earlier ones.
    /// Messages of channels that were replaced or have expired do not count.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        self.machine().is_delivered()
    }

    /// Maximum length of a message in bytes, while there is a connection (S33); with channels, whose table limits it, of a
    /// message that fits into a datagram.
    #[must_use]
    pub fn max_message(&self) -> Option<usize> {
        self.machine().max_message()
    }

    /// Current round-trip time, loss and throughput of the connection, while there is one.
    #[must_use]
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.connection().map(Connection::stats)
    }

    /// The connection, while there is one: address, encryption, statistics.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        self.machine().connection()
    }

    /// Calls a function with the connection, if there is one. The async client has the same call.
    pub fn with_connection<R>(&self, read: impl FnOnce(&Connection) -> R) -> Option<R> {
        self.connection().map(read)
    }

    /// Whether messages are encrypted, while there is a connection.
    #[must_use]
    pub fn is_encrypted(&self) -> Option<bool> {
        self.connection().map(Connection::is_encrypted)
    }

    /// The server's address.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.machine().server()
    }

    /// The local address of the socket. That of a client in the server's process is unspecified.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.driver.local_addrs().next().unwrap_or_else(|| ([0, 0, 0, 0], 0).into())
    }

    /// Starts to simulate a bad network, or stops.
    pub fn set_link_conditions(&mut self, conditions: Option<LinkConditions>) {
        self.driver.set_link_conditions(conditions);
    }

    /// Takes the next event; a message is copied into `buffer`, and was received on this channel.
    pub(crate) fn take_event(&mut self, buffer: &mut Vec<u8>) -> Option<(ClientNotice, ChannelIndex)> {
        self.driver.machine_mut().next_event(buffer)
    }

    fn machine(&self) -> &Client {
        self.driver.machine()
    }
}

/// For the driver task.
#[cfg(feature = "async")]
impl PolledClient {
    pub(crate) fn driver(&mut self) -> &mut SocketDriver<Client> {
        &mut self.driver
    }
}

/// A client that is dropped before its session has ended tells the server: otherwise its player would be there until it times
/// out. Messages that are left are lost: [`close`](PolledClient::close) delivers them.
impl Drop for PolledClient {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let now = clock::now();
            self.driver.machine_mut().leave(now);
            self.driver.transmit(now);
        }
    }
}

/// The first address of a server.
fn resolve(server: impl ToSocketAddrs) -> Result<SocketAddr, ConnectError> {
    let addr = server.to_socket_addrs().map_err(ConnectError::Resolve)?.next();
    addr.ok_or_else(|| ConnectError::Resolve(std::io::ErrorKind::NotFound.into()))
}

/// Binds the socket of a client of this server.
fn bind_socket(server: SocketAddr, options: &ClientOptions) -> Result<UdpSocket, BindError> {
    let unspecified = || match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    UdpSocket::bind(options.local.unwrap_or_else(unspecified), options.receive_buffer)
}

impl fmt::Debug for PolledClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.machine(), f)
    }
}
