//! The client with channels, for game loops: one call per frame, no thread, no runtime.

use crate::{
    ChannelMessage, ClientChannels, ClientOptions, ConnectError, SetupError,
    channel_options::check_stream,
    client_methods::polled_client_methods,
    entropy_refresh::secret_bytes,
    polled_client::{bind_client, resolve},
    socket_driver::{DriveState, SocketDriver},
};
use rallypoint_session_proto::{ChannelClient, ChannelClientConfig, ChannelIndex, ClientEvent, MessageId, SendError};
use rallypoint_udp::clock;
use std::{
    fmt,
    net::{SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Instant,
};

/// A [`PolledClient`](crate::PolledClient) whose session has channels: call [`poll`](Self::poll) once per frame; nothing happens
/// in between.
///
/// ```no_run
/// use rallypoint_session::{
///     Channel, ChannelIndex, ChannelMessage, ChannelMode, ChannelTable, ClientConfig, ClientEvent, PolledChannelClient,
///     SendError,
/// };
///
/// const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();
/// const POSITIONS: ChannelIndex = ChannelIndex::new(1).unwrap();
/// let table = ChannelTable::new([
///     Channel::new(ChannelMode::ReliableOrdered, 1_000),
///     Channel::new(ChannelMode::Sequenced, 100),
/// ])?;
/// let mut client = PolledChannelClient::connect("play.example.org:45555", ClientConfig::new("alice", "tag"), table)?;
/// let mut message = ChannelMessage::default();
/// loop {
///     client.poll();
///     while let Some(event) = client.next_event(&mut message) {
///         match event {
///             ClientEvent::Connected => {
///                 if let Err(error) = client.send(CHAT, b"hello") {
///                     println!("not sent: {error}");
///                 }
///             }
///             ClientEvent::Message if message.channel == CHAT => println!("{:?}", message.bytes),
///             ClientEvent::Disconnected(reason) => return Err(reason.into()),
///             ClientEvent::LoginFailed(error) => return Err(error.into()),
///             _ => {}
///         }
///     }
///     if client.is_connected() {
///         match client.send(POSITIONS, b"position") {
///             // The queue is full: this position is skipped.
///             Ok(_) | Err(SendError::WouldBlock) => {}
///             Err(error) => return Err(error.into()),
///         }
///     }
///     client.flush();
///     std::thread::sleep(std::time::Duration::from_millis(16));
/// }
/// # #[allow(unreachable_code)] Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PolledChannelClient {
    driver: SocketDriver<ChannelClient>,
    next_event: Option<ClientEvent>,
    is_readable: bool,
}

impl PolledChannelClient {
    /// Starts to log in; [`ClientEvent::Connected`] or [`ClientEvent::LoginFailed`] follows. A name is resolved before this
    /// returns.
    ///
    /// # Errors
    /// If an option is invalid, no socket can be bound, or the name cannot be resolved.
    pub fn connect(
        server: impl ToSocketAddrs,
        options: impl Into<ClientOptions>,
        channels: impl Into<ClientChannels>,
    ) -> Result<Self, ConnectError> {
        Ok(Self::connect_to(resolve(server)?, options.into(), channels.into())?)
    }

    pub(crate) fn connect_to(
        server: SocketAddr,
        options: ClientOptions,
        channels: ClientChannels,
    ) -> Result<Self, SetupError> {
        check_stream(options.stream)?;
        options.validate()?;
        let socket = bind_client(server, &options)?;
        let config = ChannelClientConfig { client: options.client, channels: channels.table, token: channels.token };
        let client = ChannelClient::new(clock::now(), server, config, *secret_bytes()?)?;
        Ok(Self {
            driver: SocketDriver::new(client, vec![Arc::new(socket)], options.link_conditions),
            next_event: None,
            is_readable: false,
        })
    }

    /// Sends the messages passed to [`send`](Self::send) since [`poll`](Self::poll), as far as the network admits them. Call it
    /// at the end of a frame, so that they are sent now and not with the next frame.
    pub fn flush(&mut self) {
        self.driver.transmit(clock::now());
    }

    /// The next event. With [`ClientEvent::Message`], the message is copied into `message`.
    pub fn next_event(&mut self, message: &mut ChannelMessage) -> Option<ClientEvent> {
        loop {
            let has_event = self.has_event();
            if let Some(event) = self.next_event.take() {
                return Some(event);
            }
            if self.is_readable {
                let now = self.driver.last_driven();
                self.is_readable = message.copy(self.driver.machine_mut().recv(now));
                if self.is_readable {
                    return Some(ClientEvent::Message);
                }
            }
            // Reading the last message may have raised an event.
            if !has_event {
                return None;
            }
        }
    }

    /// Sends a message on a channel. It leaves with the next [`flush`](Self::flush) or [`poll`](Self::poll).
    ///
    /// # Errors
    /// If there is no session or no such channel, the message is too large, or the queue of the channel is full:
    /// [`ClientEvent::Writable`] follows when there is room again.
    pub fn send(&mut self, channel: ChannelIndex, message: &[u8]) -> Result<MessageId, SendError> {
        let now = self.driver.send_time(self.driver.machine().is_expiring(channel));
        self.driver.machine_mut().send(now, channel, message)
    }

    /// Ends the session: sends the messages that are left, then disconnects. Call [`poll`](Self::poll) until
    /// [`is_closed`](Self::is_closed): it takes a moment.
    pub fn close(&mut self) {
        self.driver.machine_mut().close(clock::now());
    }

    /// Whether the server has acknowledged every message passed to [`send`](Self::send), in this session and in earlier ones.
    /// Messages that were replaced or have expired do not count.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        self.client().is_delivered()
    }

    polled_client_methods!();
}

impl PolledChannelClient {
    pub(crate) fn drive(&mut self, now: Instant) -> DriveState {
        self.driver.drive(now)
    }

    /// Whether [`next_event`](Self::next_event) may have something.
    pub(crate) fn has_event(&mut self) -> bool {
        while self.next_event.is_none()
            && let Some(event) = self.driver.poll_event()
        {
            match event {
                // The messages are read one by one, after the other events.
                ClientEvent::Message => self.is_readable = true,
                event => self.next_event = Some(event),
            }
        }
        self.next_event.is_some() || self.is_readable
    }

    fn client(&self) -> &ChannelClient {
        self.driver.machine()
    }
}

/// For the driver task.
#[cfg(feature = "async")]
impl PolledChannelClient {
    pub(crate) fn sockets(&self) -> &[Arc<rallypoint_udp::UdpSocket>] {
        self.driver.sockets()
    }

    pub(crate) fn has_room(&self, channel: ChannelIndex, length: usize) -> bool {
        self.client().has_room(channel, length) || !self.is_connected()
    }

    /// Whether receipts or credits of messages that were read have to be sent.
    pub(crate) fn has_replies(&self) -> bool {
        self.client().has_replies()
    }
}

impl fmt::Debug for PolledChannelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.client(), f)
    }
}
