//! Sessions over sockets: login, encryption and reliable messages over UDP, for game loops and for async programs.
//!
//! ```text
//! SessionServer, SessionClient      async: a task of the tokio runtime drives them (feature `async`, on by default)
//!        │
//! PolledServer, PolledClient        for game loops: no thread, no runtime, one call per frame
//!        │
//!    SocketDriver                   sockets, batches, and a simulated bad network for tests
//!        │
//!  Endpoint, Client                 rallypoint-session-proto: the protocol without sockets
//! ```
//!
//! Sessions of [`PolledChannelServer`], [`PolledChannelClient`], [`AsyncChannelServer`] and [`AsyncChannelClient`] have channels:
//! each has its own order, reliability, priority and maximum size, and both sides name the same [`ChannelTable`]. If
//! only one side has channels, the server refuses the login with a reason, so nothing is ever garbled
//! (`ServerChannels::plain_channel` serves clients without channels as well).
//!
//! All eight hand out the same [`ServerEvent`]s and [`ClientEvent`]s, and their methods have the same names. Those of the async
//! forms wait where there is something to wait for (`bind`, `connect`, `accept`, `next_event`, `recv`, `send`, `close`,
//! `shutdown`; `try_send` does not). Those of the polled forms return at once, except for `wait`, `shutdown`, and `connect` with a
//! name, which is resolved first. `with_connection` reads the state of a connection in
//! both. This crate re-exports the types that a game needs: configuration, keys, events and errors.
//!
//! ```
//! use rallypoint_session::{ClientConfig, ClientEvent, EndpointConfig, PolledClient, PolledServer, ServerEvent, ServerOptions};
//! use std::time::Duration;
//!
//! let mut options = ServerOptions::from(EndpointConfig::for_game("tag"));
//! options.listen = vec!["127.0.0.1:0".parse()?];
//! let mut server = PolledServer::bind(options)?;
//! let addr = server.local_addrs().next().ok_or("no address")?;
//! let mut client = PolledClient::connect(addr, ClientConfig::new("alice", "tag"))?;
//!
//! let mut message = Vec::new();
//! let greeting = 'game: loop {
//!     server.poll();
//!     while let Some(event) = server.next_event(&mut message) {
//!         if let ServerEvent::Connected(new) = event {
//!             // One player's failure is not the server's: the player may have left, or its window may be full.
//!             if let Err(error) = server.send(new.player, format!("hello {}", new.username).as_bytes()) {
//!                 println!("{:?}: {error}", new.player);
//!             }
//!         }
//!     }
//!     server.flush();
//!
//!     client.poll();
//!     while let Some(event) = client.next_event(&mut message) {
//!         match event {
//!             ClientEvent::Message => break 'game String::from_utf8_lossy(&message).into_owned(),
//!             ClientEvent::LoginFailed(error) => return Err(error.into()),
//!             _ => {}
//!         }
//!     }
//!     client.wait(Duration::from_millis(1));
//! };
//! assert_eq!(greeting, "hello alice");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "async")]
mod async_channel_client;
#[cfg(feature = "async")]
mod async_channel_server;
#[cfg(feature = "async")]
mod async_client;
#[cfg(feature = "async")]
mod async_server;
mod channel_options;
mod client_methods;
#[cfg(feature = "async")]
mod client_task;
#[cfg(feature = "async")]
mod driver_task;
mod entropy_refresh;
mod error;
mod frame_stream;
mod link_conditioner;
mod local_addrs;
mod options;
mod player_streams;
mod poll_interval;
mod polled_channel_client;
mod polled_channel_server;
mod polled_client;
mod polled_server;
mod server_methods;
#[cfg(feature = "async")]
mod server_task;
mod session_machine;
mod socket_driver;

#[cfg(feature = "async")]
pub use async_channel_client::AsyncChannelClient;
#[cfg(feature = "async")]
pub use async_channel_server::AsyncChannelServer;
#[cfg(feature = "async")]
pub use async_client::SessionClient;
#[cfg(feature = "async")]
pub use async_server::SessionServer;
pub use channel_options::{ChannelMessage, ClientChannels, ServerChannels};
pub use error::{ConnectError, NotAcknowledged, SetupError};
pub use link_conditioner::{LinkConditioner, LinkConditions};
pub use options::{ClientOptions, ServerOptions};
pub use polled_channel_client::PolledChannelClient;
pub use polled_channel_server::PolledChannelServer;
pub use polled_client::PolledClient;
pub use polled_server::PolledServer;

pub use rallypoint_query_proto::{Mod, Player, ServerInfo, Team};
pub use rallypoint_session_proto::{
    Budget, Channel, ChannelFault, ChannelIndex, ChannelMode, ChannelTable, ChannelTableError, Cipher, ClientConfig,
    ClientEvent, ConnectToken, Connection, ConnectionConfig, ConnectionStats, DisconnectReason, Encryption,
    EncryptionPolicy, EndpointConfig, EndpointStats, KeyError, LoginError, LoginRequest, MessageId, NewPlayer,
    PlayerId, PublicKey, Rate, SendError, ServerEvent, SessionConfigError, SlotIndex, StaticKey, TokenClaims,
    TokenError, TokenIssuer, TokenKey,
};
pub use rallypoint_udp::{BindError, EntropyError};

/// Generates a static key for a server. Clients that know its public half recognise the server; store the key where only the
/// server can read it.
///
/// ```
/// use rallypoint_session::{Encryption, generate_static_key};
///
/// let key = generate_static_key()?;
/// // What a client needs to accept no other server:
/// let encryption = Encryption::Pinned(key.public());
/// # let _ = encryption;
/// # Ok::<(), rallypoint_session::EntropyError>(())
/// ```
///
/// # Errors
/// If the operating system gives no random bytes.
pub fn generate_static_key() -> Result<StaticKey, EntropyError> {
    loop {
        // No 32 bytes are rejected today; if some were, others would be drawn.
        if let Ok(key) = StaticKey::from_bytes(*entropy_refresh::secret_bytes()?) {
            return Ok(key);
        }
    }
}
