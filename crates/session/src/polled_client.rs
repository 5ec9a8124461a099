//! A client for game loops: one call per frame, no thread, no runtime.

use crate::{ClientOptions, ConnectError, FakeNetwork, SetupError, port::Port, port::Turn, streams::Streams};
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, ClientEvent, ConnectionStats, LoginError, Reason, SendError};
use rallypoint_udp::{UdpSocket, clock, entropy};
use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::{Duration, Instant},
};

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// The server let us in.
    Connected,
    /// A message came: it is in the buffer that was handed in.
    Message,
    /// After [`SendError::WouldBlock`]: there is room again.
    Writable,
    /// A datagram says that the server ends the session. Either [`Disconnected`](Self::Disconnected) follows, or it was
    /// forged and nothing does (S28).
    Closing,
    /// The session is over. If the client was asked to reconnect, another login follows, unless one side wanted the end.
    Disconnected(Reason),
    /// There is no session.
    LoginFailed(LoginError),
}

/// A client for game loops: call [`poll`](Self::poll) once per frame, and nothing happens in between.
///
/// ```no_run
/// use rallypoint_session::{PolledClient, SessionEvent};
/// use rallypoint_session_proto::ClientConfig;
///
/// let mut client = PolledClient::connect("play.example.org:45555", ClientConfig::new("alice", "tag"))?;
/// let mut message = Vec::new();
/// loop {
///     client.poll();
///     while let Some(event) = client.next(&mut message) {
///         match event {
///             SessionEvent::Message => println!("{} bytes came", message.len()),
///             SessionEvent::Disconnected(reason) => return Err(reason.into()),
///             SessionEvent::LoginFailed(error) => return Err(error.into()),
///             _ => {}
///         }
///     }
///     // The game: move, draw, and send what has changed.
///     if client.is_connected() {
///         client.send(b"position")?;
///     }
///     client.flush();
///     std::thread::sleep(std::time::Duration::from_millis(16));
/// }
/// # #[allow(unreachable_code)] Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PolledClient {
    port: Port<Client>,
    /// The longest message of a stream, if there are streams.
    longest: Option<usize>,
    streams: Option<Streams>,
    peeked: Option<SessionEvent>,
    readable: bool,
    /// A session ended while its stream had something to send.
    is_cut: bool,
}

impl PolledClient {
    /// Starts to log in; [`SessionEvent::Connected`] or [`SessionEvent::LoginFailed`] tells what came of it. A name is looked
    /// up before this returns.
    ///
    /// # Errors
    /// If a setting is wrong, there is no socket, or the name has no address.
    pub fn connect(server: impl ToSocketAddrs, options: impl Into<ClientOptions>) -> Result<Self, ConnectError> {
        let found = server.to_socket_addrs().map_err(ConnectError::NotFound)?.next();
        let server = found.ok_or_else(|| ConnectError::NotFound(std::io::ErrorKind::NotFound.into()))?;
        Ok(Self::connect_to(server, options.into())?)
    }

    pub(crate) fn connect_to(server: SocketAddr, options: ClientOptions) -> Result<Self, SetupError> {
        options.validate()?;
        let any = || match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let local = options.local.unwrap_or_else(any);
        let socket = UdpSocket::bind(local, options.receive_buffer)?;
        let client = Client::new(clock::now(), server, options.client, entropy::bytes()?)?;
        let port = Port::new(client, vec![Arc::new(socket)], options.fake);
        Ok(Self { port, longest: options.stream, streams: None, peeked: None, readable: false, is_cut: false })
    }

    /// Receives what is there, lets the time pass that has passed, and sends what there is to send. Once per frame.
    pub fn poll(&mut self) {
        self.turn(clock::now());
    }

    /// Sends what [`send`](Self::send) took since [`poll`](Self::poll): at the end of a frame, so that it leaves now and not
    /// with the next.
    pub fn flush(&mut self) {
        let now = clock::now();
        self.flush_stream(now);
        self.port.transmit(now);
    }

    /// Waits until something has arrived or is to be done, but at most so long; for loops that have no frames.
    pub fn wait(&mut self, at_most: Duration) {
        self.port.wait(at_most);
    }

    /// The next thing that happened. If it is [`SessionEvent::Message`], the message is in `message`.
    pub fn next(&mut self, message: &mut Vec<u8>) -> Option<SessionEvent> {
        if self.has_event() && self.peeked.is_some() {
            return self.peeked.take();
        }
        if self.readable && self.read(message) {
            return Some(SessionEvent::Message);
        }
        None
    }

    /// Sends a message, reliably. It leaves with the next [`flush`](Self::flush) or [`poll`](Self::poll).
    ///
    /// # Errors
    /// If it is too large or empty, there is no session, or the window is full: [`SessionEvent::Writable`] tells when it is no
    /// longer.
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        let (now, client) = (clock::now(), &mut self.port.machine.machine);
        let Some(longest) = self.longest else { return client.send(now, message) };
        let size = client.connection().ok_or(SendError::NotConnected)?.max_message();
        let streams = self.streams.get_or_insert_with(|| Streams::new(longest));
        streams.write(message, size, |part| client.send(now, part))
    }

    /// Delivers what is left, says goodbye, and ends the session. [`poll`](Self::poll) has to be called until
    /// [`is_over`](Self::is_over): it takes a moment.
    pub fn close(&mut self) {
        match &mut self.streams {
            Some(streams) if !streams.is_flushed() => streams.closing = Some(String::new()),
            _ => self.port.machine.machine.close(clock::now()),
        }
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.port.machine.machine.is_connected()
    }

    /// Whether nothing will happen any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.port.machine.machine.is_over()
    }

    /// Whether the server has acknowledged everything that [`send`](Self::send) took, in this session and in those before.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        let is_flushed = self.streams.as_ref().is_none_or(Streams::is_flushed);
        !self.is_cut && is_flushed && self.port.machine.machine.undelivered() == 0
    }

    /// How the connection is doing, while there is one.
    #[must_use]
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.port.machine.machine.connection().map(rallypoint_session_proto::Connection::stats)
    }

    /// The longest message that can be sent, while there is a connection (S33).
    #[must_use]
    pub fn max_message(&self) -> Option<usize> {
        let connection = self.port.machine.machine.connection()?;
        Some(self.longest.unwrap_or(connection.max_message()))
    }

    /// Where the server is.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.port.machine.machine.server()
    }

    /// Where it sends from.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        // There is always one socket.
        self.port.local_addrs().next().unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into())
    }

    /// Makes the network as bad as this from now on, or as it is again.
    pub fn set_fake(&mut self, fake: Option<FakeNetwork>) {
        self.port.machine.set_fake(fake);
    }
}

/// For those who drive it.
impl PolledClient {
    pub(crate) fn sockets(&self) -> &[Arc<UdpSocket>] {
        self.port.sockets()
    }

    pub(crate) fn turn(&mut self, now: Instant) -> Turn {
        self.flush_stream(now);
        self.port.turn(now)
    }

    /// Whether [`next`](Self::next) has something, or, of a stream, may have something.
    pub(crate) fn has_event(&mut self) -> bool {
        while self.peeked.is_none()
            && let Some(event) = self.port.machine.poll_event()
        {
            self.handle_event(event);
        }
        self.peeked.is_some() || self.readable
    }

    /// Whether there is room for a message, or none is ever going to be.
    pub(crate) fn is_settled(&self) -> bool {
        self.port.machine.machine.connection().is_none_or(rallypoint_session_proto::Connection::is_writable)
    }

    fn handle_event(&mut self, event: ClientEvent) {
        let told = match event {
            ClientEvent::Readable => {
                self.readable = true;
                return;
            }
            ClientEvent::Writable => {
                self.flush_stream(clock::now());
                SessionEvent::Writable
            }
            ClientEvent::Connected => SessionEvent::Connected,
            ClientEvent::Closing => SessionEvent::Closing,
            ClientEvent::Disconnected(reason) => SessionEvent::Disconnected(reason),
            ClientEvent::LoginFailed(error) => SessionEvent::LoginFailed(error),
            _ => return,
        };
        if matches!(told, SessionEvent::Connected | SessionEvent::Disconnected(_)) {
            self.is_cut |= self.streams.as_ref().is_some_and(|streams| !streams.is_flushed());
            // A new session is a new stream.
            (self.streams, self.readable) = (None, false);
        }
        self.peeked = Some(told);
    }

    fn read(&mut self, message: &mut Vec<u8>) -> bool {
        let client = &mut self.port.machine.machine;
        let Some(longest) = self.longest else {
            self.readable = take(client.recv(), message);
            return self.readable;
        };
        let streams = self.streams.get_or_insert_with(|| Streams::new(longest));
        match streams.read(message, |reader| client.recv().map(|part| reader.push(part))) {
            Ok(is_whole) => self.readable = is_whole,
            // What follows cannot be understood any more.
            Err(_) => {
                self.readable = false;
                client.close(clock::now());
            }
        }
        self.readable
    }

    fn flush_stream(&mut self, now: Instant) {
        let (Some(streams), client) = (&mut self.streams, &mut self.port.machine.machine) else { return };
        let Some(size) = client.connection().map(rallypoint_session_proto::Connection::max_message) else { return };
        let _ = streams.flush(size, |part| client.send(now, part));
        if streams.is_flushed() && streams.closing.take().is_some() {
            client.close(now);
        }
    }
}

/// Copies what there is.
pub(crate) fn take(received: Option<&[u8]>, message: &mut Vec<u8>) -> bool {
    message.clear();
    message.extend_from_slice(received.unwrap_or_default());
    received.is_some()
}

impl fmt::Debug for PolledClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.port.machine.machine, f)
    }
}
