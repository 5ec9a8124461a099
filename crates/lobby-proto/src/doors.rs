//! Doors: how the servers and the clients of one family of games reach the lobby.
//!
//! Every door is one module with the same parts: how an announcement arrives (datagram or HTTP request), what it says (a whole
//! description, or only "I am here", which a query completes), what is answered, and which list in which bytes clients get. Its
//! row in [`DOORS`] is what configuration, command line, sockets, web server, metrics, documentation and fuzzing are made from.
//!
//! The registry knows entries, leases, bans and lists. It knows the door that an entry came through only as a label.

mod bloodmasters;
mod legacy;
mod lobby;
mod quake3;
mod rendered;

pub use bloodmasters::BLOODMASTERS;
pub use legacy::LEGACY;
pub use lobby::LOBBY;
pub use quake3::QUAKE3;

use crate::{HashKeys, ListReply, PublishedLists, RegistrationOutcome, Registry};
use rallypoint_machine::Transmit;
use rallypoint_wire::{
    DecodeError,
    lobby::{ListId, ListRequest},
};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU16,
    ops::AddAssign,
    sync::Arc,
    time::{Duration, Instant},
};

/// All doors, in the order of the configuration.
pub static DOORS: [&Door; 4] = [&LOBBY, &LEGACY, &BLOODMASTERS, &QUAKE3];

/// The row of a door.
#[derive(Debug)]
pub struct Door {
    /// Its name in configuration, command line, metrics and the API.
    pub name: &'static str,
    /// Its number in saved lists and between the nodes of a cluster: 1 to 15. It never changes.
    pub code: u8,
    /// What it is, for pages and documentation.
    pub title: &'static str,
    /// Whether it is open unless the configuration closes it.
    pub is_default: bool,
    /// Its UDP and TCP sockets, if it has any.
    pub sockets: Option<DoorSockets>,
    /// Its path at the lobby's web server, if it has one.
    pub http: Option<HttpDoor>,
    /// How an announcement is completed that says only "I am here".
    pub query: Option<AnnouncedQuery>,
}

/// The UDP and TCP sockets of a door, which have the same port.
#[derive(Debug)]
pub struct DoorSockets {
    /// The setting with their addresses.
    pub setting: &'static str,
    /// The default of that setting.
    pub default: &'static str,
    /// The description of that setting.
    pub about: &'static str,
    /// The documented port.
    pub port: u16,
    /// What arrives over UDP.
    pub datagrams: Option<Datagrams>,
    /// What clients request over TCP. It is called once, at the start.
    pub requests: Option<fn() -> Box<dyn RequestDoor>>,
}

/// What arrives at a door over UDP.
#[derive(Clone, Copy, Debug)]
pub enum Datagrams {
    /// Registrations of document 001, which the registry handles itself: see [`Registry::handle_datagrams`].
    Registrations,
    /// The datagrams of another protocol. It is called once per lobby, at the start.
    Protocol(fn(&HashKeys) -> Box<dyn DatagramDoor>),
}

/// The path of a door at the lobby's web server.
#[derive(Clone, Copy, Debug)]
pub struct HttpDoor {
    /// The path in the URL.
    pub path: &'static str,
    /// The type of its responses.
    pub content_type: &'static str,
    /// It is called once, at the start.
    pub start: fn() -> Box<dyn RequestHandler>,
}

/// How the lobby completes an announcement that says only "I am here".
#[derive(Clone, Copy, Debug)]
pub struct AnnouncedQuery {
    /// The query protocol, as in `x-query`.
    pub protocol: &'static str,
    /// The list of the servers.
    pub list: ListId,
    /// How long an announcement keeps a server listed.
    pub lease: Duration,
}

/// The datagrams of a door, on the thread that owns the registry.
pub trait DatagramDoor: fmt::Debug + Send {
    /// Handles a datagram. Every datagram has exactly one outcome.
    fn handle_datagram(
        &mut self,
        registry: &mut Registry,
        now: Instant,
        from: SocketAddr,
        bytes: &[u8],
    ) -> RegistrationOutcome;

    /// Handles the passing of time.
    fn handle_timeout(&mut self, registry: &mut Registry, now: Instant) {
        let _ = (registry, now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) should be called next.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The next datagram to send, from the socket that received the one it answers, appended to `out`.
    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let _ = (now, out);
        None
    }

    /// Size of the longest datagram that the protocol accepts, in bytes, if it is longer than the longest registration.
    fn max_datagram(&self) -> usize {
        0
    }

    /// Counters since the start; `None` if the door answers nothing.
    fn stats(&self) -> Option<DoorStats> {
        None
    }
}

/// Counters of a door that answers over UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorStats {
    /// Bytes received, with the headers of UDP and IP.
    pub received_bytes: u64,
    /// Bytes sent, with the headers of UDP and IP. They go to addresses that are not proven, or were proven before.
    pub sent_bytes: u64,
    /// Requests for a list.
    pub list_requests: u64,
    /// Lists that were cut because their client's address is not proven.
    pub cut_lists: u64,
}

impl AddAssign for DoorStats {
    fn add_assign(&mut self, other: Self) {
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.list_requests += other.list_requests;
        self.cut_lists += other.cut_lists;
    }
}

/// Maximum length of a request over TCP, in bytes.
pub const MAX_REQUEST: usize = ListRequest::SIZE;

/// The requests of a door's clients over TCP, for all connections.
pub trait RequestDoor: fmt::Debug + Send + Sync {
    /// The reply to a request, of which these bytes have arrived so far, [`MAX_REQUEST`] at most. After the reply the connection
    /// is closed.
    ///
    /// # Errors
    /// [`DecodeErrorKind::Truncated`](rallypoint_wire::DecodeErrorKind::Truncated) if more bytes are needed. After any other
    /// error the connection is closed without a reply.
    fn reply(&self, now: Instant, lists: &PublishedLists, request: &[u8]) -> Result<DoorReply, DecodeError>;
}

/// The reply to a client.
#[derive(Clone, Debug)]
pub enum DoorReply {
    /// A prebuilt list of document 001.
    List(Arc<ListReply>),
    /// A reply in another form.
    Bytes(Arc<[u8]>),
}

/// The requests to a door's path at the web server.
pub trait RequestHandler: fmt::Debug + Send + Sync {
    /// What a request asks for.
    ///
    /// # Errors
    /// If the door's protocol does not have this request.
    fn handle_request(&self, request: &HttpRequest<'_>) -> Result<HttpAction, HttpError>;

    /// The list for clients.
    fn list(&self, now: Instant, lists: &PublishedLists) -> Arc<[u8]>;
}

/// A request to a door's path.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The query string, without its question mark.
    pub query: &'a str,
}

/// What a request to a door's path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpAction {
    /// The list.
    List,
    /// A server at the sender's address and this port announces itself: it is queried, and listed if it replies.
    Announce {
        /// Its port.
        port: NonZeroU16,
        /// The response, if the announcement is accepted.
        reply: Arc<[u8]>,
    },
}

/// Why a request to a door's path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// A parameter is not valid.
    Parameter(DecodeError),
    /// The method is not the one that the door's protocol uses; the text says which.
    Method(&'static str),
}

impl Door {
    /// The door with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        DOORS.into_iter().find(|door| door.name == name)
    }

    /// The door with this number.
    #[must_use]
    pub fn of_code(code: u8) -> Option<&'static Self> {
        DOORS.into_iter().find(|door| door.code == code)
    }
}

impl PartialEq for Door {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Door {}

impl DoorSockets {
    /// All addresses of both families, at the documented port.
    #[must_use]
    pub fn documented_addrs(&self) -> Vec<SocketAddr> {
        vec![(Ipv4Addr::UNSPECIFIED, self.port).into(), (Ipv6Addr::UNSPECIFIED, self.port).into()]
    }

    /// The transports: `udp+tcp`, `udp` or `tcp`.
    #[must_use]
    pub const fn transports(&self) -> &'static str {
        match (&self.datagrams, &self.requests) {
            (Some(_), Some(_)) => "udp+tcp",
            (Some(_), None) => "udp",
            (None, _) => "tcp",
        }
    }
}

/// Size of the headers of UDP and IP, in bytes.
#[must_use]
pub const fn header_bytes(ip: IpAddr) -> usize {
    match ip {
        IpAddr::V4(_) => 20 + 8,
        IpAddr::V6(_) => 40 + 8,
    }
}

/// Maximum bytes that are sent to an address for each byte that has arrived from there, as long as it is not proven that the
/// sender of the request is at that address. The headers of UDP and IP count on both sides.
const REFLECTION: usize = 3;

/// Maximum bytes, with headers, of everything that one datagram of this length may draw to the address that it names as its
/// source. It needs no memory per address, and so cannot be exhausted for others by forged sources.
#[must_use]
pub const fn reflection_budget(source: IpAddr, request: usize) -> usize {
    REFLECTION * (request + header_bytes(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_settings_and_ports_of_doors_are_unique() {
        for (index, door) in DOORS.iter().enumerate() {
            assert!(door.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()), "{}", door.name);
            assert!((1..=15).contains(&door.code), "{}: the number has four bits", door.name);
            for other in &DOORS[..index] {
                assert!(door.name != other.name && door.code != other.code, "{}", door.name);
                if let (Some(sockets), Some(others)) = (&door.sockets, &other.sockets) {
                    assert!(sockets.port != others.port && sockets.setting != others.setting, "{}", door.name);
                }
                if let (Some(http), Some(other)) = (&door.http, &other.http) {
                    assert_ne!(http.path, other.path);
                }
            }
        }
    }
}
