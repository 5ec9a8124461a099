//! A chat room over the session protocol, and the world of `rallypoint demo`: a lobby with pretend servers.
//!
//! [`RoomServer`] is a room, [`RoomConnection`] is the connection of a guest; docs/room.md has the messages between them.
//! Arguments and output are the caller's: a room prints through a [`Console`].
#![forbid(unsafe_code)]

mod channels;
mod chat;
mod connection;
mod demo;
mod line_limiter;
mod metrics;
mod presence;
pub mod reachability;
mod server;

pub use chat::{GREETING, RATE_LIMITED, RECEIPT, RECEIPT_REQUEST};
pub use connection::{RoomConnection, RoomEvent};
pub use demo::{Demo, DemoConfig, DemoStartError, MAX_CROWD};
pub use line_limiter::LineLimiter;
pub use presence::Presence;
pub use server::{Console, RoomConfig, RoomServer, RoomStartError, X_QUERY};

/// Name of the game in logins.
pub const GAME: &str = "rallypoint-room";

/// Name of the game as shown to users.
pub const GAME_NAME: &str = "Rallypoint room";

/// Maximum size of a line in bytes, in both directions: its text and the name of its author.
const MAX_MESSAGE: usize = 8_192;

/// Maximum length of a line in characters.
pub const MAX_LINE: usize = 500;

/// Command that shows statistics of the connection; handled by the client.
pub const STATS: &str = "/stats";

/// Command that leaves the room; handled by the client.
pub const QUIT: &str = "/quit";

/// A line, or the number of its characters if that exceeds [`MAX_LINE`].
pub type Line = Result<String, usize>;

/// The message about a line that exceeds [`MAX_LINE`].
pub fn too_long_message(characters: usize) -> String {
    format!("a line of {characters} characters was not sent: the maximum is {MAX_LINE}")
}
