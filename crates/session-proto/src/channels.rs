//! Channels: a message layer above document 003 that both sides opt into (W110 to W114).
//!
//! Each channel is reliable and ordered, reliable and unordered, sequenced (the newest message wins) or expiring, and carries
//! messages of any size. Messages wait in the queues of their channels, and are handed to the connection when it can send
//! them: a position overtakes a download.
//!
//! *Droppable* messages are those of sequenced and expiring channels, which are called droppable channels.
//!
//! ```text
//!   Session                         what a client or a player's slot has beside its connection
//!     │
//!   ChannelSession                  both directions of one session, and the agreement on the table
//!     │        │
//!  Sender   Receiver                queues, priorities, packing │ reassembly, order, newest wins
//! ```

mod droppable_limit;
mod droppable_traffic;
mod fault;
mod message_store;
mod newest_payloads;
mod payload_source;
mod priority_group;
mod rate_limit;
mod reassembly;
mod receive_channel;
mod receiver;
mod reliable_limit;
mod replies;
mod send_channel;
mod sender;
mod session;
mod table;
mod token;

pub use fault::ChannelFault;
pub use send_channel::MessageId;
pub use table::{Channel, ChannelMode, ChannelTable, ChannelTableError};
pub use token::{ConnectToken, TokenClaims, TokenError, TokenIssuer, TokenKey, TokenVerifier, WallClock};

pub(crate) use message_store::OutgoingMessage;
pub(crate) use payload_source::PayloadSource;
pub(crate) use receiver::Next;
pub(crate) use send_channel::ENTRY as QUEUE_ENTRY;
pub(crate) use session::{ChannelSession, parse_hello, send_hello};

pub use rallypoint_wire::session::channels::ChannelIndex;
