//! The extended query of DDNet: see [`teeworlds`](super::teeworlds), whose datagrams it extends.

/// Name of the query protocol in URLs and in `x-query`.
pub const SCHEME: &str = "ddnet";

/// Name of the query protocol for people.
pub const TITLE: &str = "DDNet and Teeworlds 0.6, more than 16 players";

/// Default UDP port of a server.
pub const PORT: u16 = super::teeworlds::PORT;
