//! The client for game loops: one call per frame, no thread, no runtime.

use crate::{
    ClientOptions, ConnectError, SetupError,
    client_methods::polled_client_methods,
    entropy_refresh::secret_bytes,
    frame_stream::FrameStream,
    socket_driver::{DriveState, SocketDriver},
};
use rallypoint_session_proto::{Client, ClientEvent, Connection, SendError};
use rallypoint_udp::{BindError, UdpSocket, clock};
use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Instant,
};

/// A client for game loops: call [`poll`](Self::poll) once per frame; nothing happens in between.
///
/// ```no_run
/// use rallypoint_session::{ClientConfig, ClientEvent, PolledClient, SendError};
///
/// let mut client = PolledClient::connect("play.example.org:45555", ClientConfig::new("alice", "tag"))?;
/// let mut message = Vec::new();
/// loop {
///     client.poll();
///     while let Some(event) = client.next_event(&mut message) {
///         match event {
///             ClientEvent::Message => println!("received {} bytes", message.len()),
///             ClientEvent::Disconnected(reason) => return Err(reason.into()),
///             ClientEvent::LoginFailed(error) => return Err(error.into()),
///             _ => {}
///         }
///     }
///     // The game: move, draw, and send what has changed.
///     if client.is_connected() {
///         match client.send(b"position") {
///             // The window is full: this position is skipped.
///             Ok(()) | Err(SendError::WouldBlock) => {}
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
    /// Maximum length of a stream message, if streams are used.
    max_stream_message: Option<usize>,
    stream: Option<FrameStream>,
    /// The session that the outgoing half of the stream belongs to, as [`Client::session_count`] counts them. The incoming half
    /// may belong to the session before, until its messages are read.
    stream_session: u64,
    /// The next event, if it is polled already.
    next_event: Option<ClientEvent>,
    is_readable: bool,
    /// A session ended while its stream had something to send.
    has_lost_stream_data: bool,
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

    pub(crate) fn connect_to(server: SocketAddr, mut options: ClientOptions) -> Result<Self, SetupError> {
        options.validate()?;
        let game_suffix = options.game_suffix();
        options.client.game.push_str(game_suffix);
        let socket = bind_client(server, &options)?;
        let client = Client::new(clock::now(), server, options.client, *secret_bytes()?)?;
        Ok(Self {
            driver: SocketDriver::new(client, vec![Arc::new(socket)], options.link_conditions),
            max_stream_message: options.stream,
            stream: None,
            stream_session: 0,
            next_event: None,
            is_readable: false,
            has_lost_stream_data: false,
        })
    }

    /// Sends the messages passed to [`send`](Self::send) since [`poll`](Self::poll). Call it at the end of a frame, so that
    /// they are sent now and not with the next frame.
    pub fn flush(&mut self) {
        let now = clock::now();
        self.flush_stream(now);
        self.driver.transmit(now);
    }

    /// The next event. With [`ClientEvent::Message`], the message is copied into `message`.
    pub fn next_event(&mut self, message: &mut Vec<u8>) -> Option<ClientEvent> {
        loop {
            let has_event = self.has_event();
            let is_message = match &self.next_event {
                None => self.is_readable && self.read(message),
                // Complete messages of a stream come before its end.
                Some(ClientEvent::Disconnected(_)) => {
                    self.stream.as_mut().is_some_and(|stream| stream.read_buffered(message))
                }
                Some(_) => false,
            };
            if is_message {
                return Some(ClientEvent::Message);
            }
            if let Some(event) = self.next_event.take() {
                if matches!(event, ClientEvent::Disconnected(_)) {
                    self.end_stream();
                }
                return Some(event);
            }
            // Reading the last message may have raised an event.
            if !has_event {
                return None;
            }
        }
    }

    /// Sends a message, reliably. It leaves with the next [`flush`](Self::flush) or [`poll`](Self::poll).
    ///
    /// # Errors
    /// If the message is too large or empty, there is no session, or the window is full: [`ClientEvent::Writable`] follows
    /// when there is room again.
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        let now = self.driver.last_driven();
        let client = self.driver.machine_mut();
        let Some(max) = self.max_stream_message else { return client.send(now, message) };
        let size = client.connection().ok_or(SendError::NotConnected)?.max_message();
        let session = client.session_count();
        let stream = self.stream.get_or_insert_with(|| FrameStream::new(max));
        if std::mem::replace(&mut self.stream_session, session) != session {
            self.has_lost_stream_data |= stream.reset_writer(max);
        }
        stream.write(message, size, |part| client.send(now, part))
    }

    /// Ends the session: delivers the messages that are left, then disconnects. Call [`poll`](Self::poll) until
    /// [`is_closed`](Self::is_closed): it takes a little more than 2 s at most.
    pub fn close(&mut self) {
        let now = clock::now();
        let is_current = self.stream_session == self.client().session_count() && self.is_connected();
        let client = self.driver.machine_mut();
        match &mut self.stream {
            Some(stream) if is_current && !stream.is_flushed() => {
                stream.close_reason = Some(String::new());
                client.begin_close(now);
            }
            _ => client.close(now),
        }
    }

    /// Whether the server has acknowledged every message passed to [`send`](Self::send), in this session and in earlier
    /// ones.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        let is_flushed = self.stream.as_ref().is_none_or(FrameStream::is_flushed);
        !self.has_lost_stream_data && is_flushed && self.client().undelivered() == 0
    }

    /// Maximum length of a message in bytes, while there is a connection (S33).
    #[must_use]
    pub fn max_message(&self) -> Option<usize> {
        let connection = self.client().connection()?;
        Some(self.max_stream_message.unwrap_or(connection.max_message()))
    }

    polled_client_methods!();
}

impl PolledClient {
    pub(crate) fn drive(&mut self, now: Instant) -> DriveState {
        self.flush_stream(now);
        self.driver.drive(now)
    }

    /// Whether [`next_event`](Self::next_event) has something. With a stream it may turn out to be an incomplete message.
    pub(crate) fn has_event(&mut self) -> bool {
        while self.next_event.is_none()
            && let Some(event) = self.driver.poll_event()
        {
            self.handle_event(event);
        }
        self.next_event.is_some() || self.is_readable
    }

    fn client(&self) -> &Client {
        self.driver.machine()
    }

    fn handle_event(&mut self, event: ClientEvent) {
        match event {
            // The messages are read one by one, after the other events.
            ClientEvent::Message => {
                self.is_readable = true;
                return;
            }
            ClientEvent::Writable => self.flush_stream(clock::now()),
            _ => {}
        }
        self.next_event = Some(event);
    }

    /// A new session is a new stream.
    fn end_stream(&mut self) {
        // The application may have started the next one already.
        let is_current = self.stream_session == self.client().session_count() && self.client().is_connected();
        match (self.stream.take(), self.max_stream_message) {
            (Some(stream), Some(max)) if is_current => self.stream = Some(stream.into_writer(max)),
            (Some(stream), _) => self.has_lost_stream_data |= !stream.is_flushed(),
            _ => {}
        }
        self.is_readable = false;
    }

    fn read(&mut self, message: &mut Vec<u8>) -> bool {
        let client = self.driver.machine_mut();
        let Some(max) = self.max_stream_message else {
            self.is_readable = copy_message(client.recv(), message);
            return self.is_readable;
        };
        let stream = self.stream.get_or_insert_with(|| FrameStream::new(max));
        match stream.read(message, |reader| client.recv().map(|part| reader.push(part))) {
            Ok(is_complete) => self.is_readable = is_complete,
            // The rest of the stream cannot be read.
            Err(_) => {
                self.is_readable = false;
                client.close(clock::now());
            }
        }
        self.is_readable
    }

    fn flush_stream(&mut self, now: Instant) {
        let Some(stream) = &mut self.stream else { return };
        let client = self.driver.machine_mut();
        if client.session_count() != self.stream_session {
            return;
        }
        let Some(size) = client.connection().map(Connection::max_message) else { return };
        // The bytes that do not fit stay in the stream.
        let _ = stream.flush(size, |part| client.send(now, part));
        if stream.is_flushed() && stream.close_reason.take().is_some() {
            client.close(now);
        }
    }
}

/// For the driver task.
#[cfg(feature = "async")]
impl PolledClient {
    pub(crate) fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.driver.sockets()
    }

    /// Whether there is room for a message, or no connection to wait for.
    pub(crate) fn is_writable_or_closed(&self) -> bool {
        self.client().connection().is_none_or(Connection::is_writable)
    }
}

/// The first address of a server.
pub(crate) fn resolve(server: impl ToSocketAddrs) -> Result<SocketAddr, ConnectError> {
    let addr = server.to_socket_addrs().map_err(ConnectError::Resolve)?.next();
    addr.ok_or_else(|| ConnectError::Resolve(std::io::ErrorKind::NotFound.into()))
}

/// Binds the socket of a client of this server.
pub(crate) fn bind_client(server: SocketAddr, options: &ClientOptions) -> Result<UdpSocket, BindError> {
    let unspecified = || match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    UdpSocket::bind(options.local.unwrap_or_else(unspecified), options.receive_buffer)
}

/// Copies a received message into `message`. Returns false if there is none.
pub(crate) fn copy_message(received: Option<&[u8]>, message: &mut Vec<u8>) -> bool {
    message.clear();
    message.extend_from_slice(received.unwrap_or_default());
    received.is_some()
}

impl fmt::Debug for PolledClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.client(), f)
    }
}
