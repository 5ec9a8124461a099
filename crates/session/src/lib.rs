//! Sessions over sockets: login, encryption and reliable messages over UDP, for game loops and for async programs.
//!
//! ```text
//! Server, Client                    async: a task of the tokio runtime drives them (feature `async`, on by default)
//!        │
//! PolledServer, PolledClient        for game loops: no thread, no runtime, one call per frame
//!        │
//!    SocketDriver                   sockets, batches, and a simulated bad network for tests
//!        │
//!  Endpoint, Client                 rallypoint-session-proto: the protocol without sockets, and what sessions carry
//! ```
//!
//! What a session carries is a setting, the [`Layer`]: messages that fit into a datagram, a stream of longer ones, or channels.
//! Each channel has its own order, reliability, priority and maximum size, and both sides name the same [`ChannelTable`]. A
//! server refuses the login of a client with another layer, with a reason, so nothing is ever garbled
//! ([`EndpointConfig::plain_channel`] serves clients without channels as well). Sessions without channels have
//! [`ONLY_CHANNEL`].
//!
//! All four have the same events, and their methods have the same names. Those of the async types wait where there is something
//! to wait for (`bind`, `connect`, `accept`, `next_event`, `recv`, `send`, `close`, `shutdown`; `try_send` does not), and copy
//! messages into a buffer of the caller. Those of the polled types return at once, except for `wait`, `shutdown`, and `connect`
//! with a name, which is resolved first; they lend messages of their own buffer. This crate re-exports the types that a game
//! needs: configuration, keys, events and errors.
//!
//! ```
//! use rallypoint_session::{ClientEvent, ClientOptions, ONLY_CHANNEL, PolledClient, PolledServer, ServerEvent, ServerOptions};
//! use std::time::Duration;
//!
//! let mut server = PolledServer::bind(ServerOptions::new("tag").listen("127.0.0.1:0".parse()?))?;
//! let mut client = PolledClient::connect(server.local_addrs()[0], ClientOptions::new("alice", "tag"))?;
//!
//! let greeting = 'game: loop {
//!     server.poll();
//!     while let Some(event) = server.next_event() {
//!         if let ServerEvent::Connected(new) = event {
//!             // One player's failure is not the server's: the player may have left, or its window may be full.
//!             if let Err(error) = server.send(new.player, ONLY_CHANNEL, format!("hello {}", new.username).as_bytes()) {
//!                 println!("{:?}: {error}", new.player);
//!             }
//!         }
//!     }
//!     server.flush();
//!
//!     client.poll();
//!     while let Some(event) = client.next_event() {
//!         match event {
//!             ClientEvent::Message { bytes, .. } => break 'game String::from_utf8_lossy(bytes).into_owned(),
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
mod client;
#[cfg(feature = "async")]
mod driver_task;
mod entropy_refresh;
mod error;
mod event;
mod link_conditioner;
mod local_addrs;
mod local_link;
mod options;
mod player_data;
mod poll_interval;
mod polled_client;
mod polled_server;
#[cfg(feature = "async")]
mod server;
mod socket_driver;

#[cfg(feature = "async")]
pub use client::Client;
pub use error::{ConnectError, DriverPanicked, NotAcknowledged, SetupError};
pub use event::{ClientEvent, ServerEvent};
pub use link_conditioner::{LinkConditioner, LinkConditions};
pub use options::{ClientOptions, ServerOptions};
pub use polled_client::PolledClient;
pub use polled_server::PolledServer;
#[cfg(feature = "async")]
pub use server::Server;

pub use rallypoint_query_proto::{Mod, Player, ServerInfo, Team};
pub use rallypoint_session_proto::{
    Budget, Channel, ChannelFault, ChannelIndex, ChannelMode, ChannelTable, ChannelTableError, Cipher, ClientConfig,
    ConnectToken, Connection, ConnectionConfig, ConnectionStats, DisconnectReason, Encryption, EncryptionPolicy,
    EndpointConfig, EndpointStats, KeyError, Layer, LoginError, LoginRequest, MessageId, NewPlayer, ONLY_CHANNEL,
    PlayerId, PublicKey, Rate, SendError, SessionConfigError, SlotIndex, StaticKey, TokenClaims, TokenError,
    TokenIssuer, TokenKey,
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
