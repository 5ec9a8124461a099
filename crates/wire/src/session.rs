//! The session protocol: document 003, rulings S1 to S8, S17, S21, S23, S30 and S33. Little-endian.
//!
//! A client sends a [`ClientDatagram`], a server sends a [`ServerDatagram`]; the meaning of the first byte depends on the
//! direction. Both send [`Control`] messages. A datagram is one message of exactly the length that its fields imply, and
//! never longer than 508 bytes (S1).
//!
//! ```
//! use rallypoint_wire::session::{ClientDatagram, Login, Name, ServerDatagram, Text};
//!
//! let login = Login { revision: 0, key: None, username: Name::new(b"alice")?, game: Text::new(b"tag-arena")? };
//! let mut sent = Vec::new();
//! ClientDatagram::Login(login).emit(&mut sent);
//!
//! let ClientDatagram::Login(received) = ClientDatagram::parse(&sent)? else { panic!("not a login") };
//! let answer = match received.check() {
//!     Ok((username, _game)) => format!("no room for {username}"),
//!     Err(error) => error.to_string(),
//! };
//! sent.clear();
//! ServerDatagram::BadLogin(Text::cut(&answer)).emit(&mut sent);
//! assert_eq!(sent, b"\xc0no room for alice");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod channels;
mod control;
mod data;
mod datagram;
mod field;
mod handshake;
mod id;
mod info;
mod list;
mod login;
mod number;
mod seal;

pub use control::Control;
pub use data::{ClientData, ClientSealed, Payload, PayloadParts, ServerData, ServerSealed};
pub use datagram::{ClientDatagram, ServerDatagram};
pub use field::{FieldError, Name, Text};
pub use handshake::{CookieReply, KEY_FIELD, KeyOffer, LoginCookie, hpke_info};
pub use id::{Rand, SlotIndex, Uid};
pub use info::{Info, Ping, Player, Summary, Team, Title};
pub use list::{TextList, TextListBuf};
pub use login::{Grant, Login, LoginSuccess};
pub use number::{MAX_NUMBERS, MessageNumber, NumberList, NumberListBuf};
pub use seal::{SealInput, TAG};

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "session";

/// Name of the query protocol for people.
pub const TITLE: &str = "sessions (document 003)";

/// UDP port of a server (S34).
pub const PORT: u16 = 45_555;

/// Revision of the protocol that this module implements.
pub const REVISION: u8 = 0;

/// Maximum size of a datagram in bytes: what every network delivers without fragmentation (S1).
pub const MAX_DATAGRAM: usize = 508;

/// Maximum length of a text in bytes, where the document has no lower limit.
pub const MAX_TEXT: usize = 507;

/// Maximum length in bytes of the username and of the game of a login.
pub const MAX_LOGIN_TEXT: usize = 127;

/// Ends the game of a login whose session is a stream of frames in each direction (W118): a server without one refuses such a
/// login (S18).
pub const STREAM_SUFFIX: &str = "+s1";

/// Maximum size of a client's message in bytes (S33).
pub const MAX_TO_SERVER: usize = 484;

/// Maximum size of a server's message in bytes (S33).
pub const MAX_TO_CLIENT: usize = 497;

/// Maximum size in bytes of the encrypted field of a client's message: ciphertext and tag.
pub const MAX_SEALED_TO_SERVER: usize = 480;

/// Maximum size in bytes of the encrypted field of a server's message: ciphertext and tag.
pub const MAX_SEALED_TO_CLIENT: usize = 496;

/// Maximum size of a client's encrypted message in bytes (S33).
pub const MAX_ENCRYPTED_TO_SERVER: usize = MAX_SEALED_TO_SERVER - TAG;

/// Maximum size of a server's encrypted message in bytes (S33).
pub const MAX_ENCRYPTED_TO_CLIENT: usize = MAX_SEALED_TO_CLIENT - TAG;

/// First byte of every message except the client's disconnect (S8), in the notation of the document.
mod kind {
    // Client to server.
    pub const QUERY: u8 = 0b1000_0000;
    pub const QUERY_PLAYERS: u8 = 0b1000_1000;

    // Server to client.
    pub const INFO_1: u8 = 0b1000_0000;
    pub const INFO_2: u8 = 0b1000_0001;
    pub const INFO_3: u8 = 0b1000_0010;
    pub const INFO_4: u8 = 0b1000_0011;
    pub const INFO_5: u8 = 0b1000_0100;
    pub const INFO_6: u8 = 0b1000_0101;
    pub const INFO_7: u8 = 0b1000_0110;
    pub const PLAYER_INFO_1: u8 = 0b1000_1000;
    pub const PLAYER_INFO_2: u8 = 0b1000_1001;
    pub const BAD_LOGIN: u8 = 0b1100_0000;
    pub const DISCONNECT: u8 = 0b0000_0000;

    // In both directions, with different fields.
    pub const LOGIN: u8 = 0b0000_0011;
    pub const LOGIN_ENCRYPTED: u8 = 0b0000_1111;
    pub const DATA: u8 = 0b0000_0101;
    pub const DATA_ENCRYPTED: u8 = 0b0101_0101;

    // In both directions.
    pub const ACK: u8 = 0b1111_1111;
    pub const RESEND: u8 = 0b1010_1010;
    pub const KEEPALIVE: u8 = 0b0011_0011;
    pub const KEEPALIVE_ACK: u8 = 0b1100_1100;
}
