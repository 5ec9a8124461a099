//! The session protocol on sockets, with and without async.
//!
//! ```text
//! SessionServer, SessionClient      async: a task of the runtime drives them
//!        │
//! PolledServer, PolledClient        for game loops: no thread, no runtime, one call per frame
//!        │
//!      Port                         sockets, batches, and a network that is bad on purpose if asked for
//!        │
//!  Endpoint, Client                 rallypoint-session-proto: knows no sockets
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "async")]
mod client;
#[cfg(feature = "async")]
mod drive;
mod error;
mod fake;
mod locals;
mod options;
mod polled_client;
mod polled_server;
mod port;
#[cfg(feature = "async")]
mod server;
mod streams;

#[cfg(feature = "async")]
pub use client::SessionClient;
pub use error::{ConnectError, NotAcknowledged, SetupError};
pub use fake::{FakeNetwork, Faked};
pub use options::{ClientOptions, ServerOptions};
pub use polled_client::{PolledClient, SessionEvent};
pub use polled_server::{PolledServer, ServerEvent};
#[cfg(feature = "async")]
pub use server::{Joined, SessionServer};

pub use rallypoint_udp::{BindError, EntropyError};

use rallypoint_session_proto::StaticKey;
use rallypoint_udp::entropy;

/// A new key for a server, to be kept where nobody else can read it: clients that know its public half recognise the server.
///
/// # Errors
/// If the system gives no random bytes.
pub fn new_static_key() -> Result<StaticKey, EntropyError> {
    loop {
        // No 32 bytes are refused today; if some were, others would do.
        if let Ok(key) = StaticKey::from_bytes(entropy::bytes()?) {
            return Ok(key);
        }
    }
}
