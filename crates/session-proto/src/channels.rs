//! Channels: a message layer above document 003 that both sides opt into (W110 to W114).
//!
//! Each channel is reliable and ordered, reliable and unordered, sequenced (the newest message wins) or expiring, and carries
//! messages of any size. Messages wait in the queues of their channels, and are handed to the connection when it can send
//! them: a position overtakes a download.
//!
//! *Droppable* messages are those of sequenced and expiring channels, which are called droppable channels.
//!
//! ```text
//! ChannelClient, ChannelServer      wrap a Client and an Endpoint, and have the same five calls
//!        │
//!   ChannelSession                  one session: the agreement on the table, a sender and a receiver
//!     │        │
//!  Sender   Receiver                queues, priorities, packing │ reassembly, order, newest wins
//! ```

mod client;
mod droppable_limit;
mod droppable_traffic;
mod fault;
mod message_store;
mod newest_payloads;
mod payload_source;
mod plain_session;
mod player_session;
mod priority_group;
mod rate_limit;
mod reassembly;
mod receive_channel;
mod receiver;
mod reliable_limit;
mod replies;
mod send_channel;
mod sender;
mod server;
mod session;
mod session_table;
mod table;
mod token;

pub use client::{ChannelClient, ChannelClientConfig};
pub use fault::ChannelFault;
pub use send_channel::MessageId;
pub use server::{ChannelServer, ChannelServerConfig, LoginRequest};
pub use table::{Channel, ChannelMode, ChannelTable, ChannelTableError};
pub use token::{ConnectToken, TokenClaims, TokenError, TokenIssuer, TokenKey, TokenVerifier, WallClock};

pub use rallypoint_wire::session::channels::ChannelIndex;
