//! Query protocols by name, and the value of the key `x-query` (E1).
//!
//! The table below is the only list of query protocols: schemes of targets, `x-query`, checks, configuration, command line and
//! documentation follow from it. `rallypoint-query-proto` attaches an implementation to each line through
//! [`query_protocols!`](crate::query_protocols).
//!
//! ```
//! use rallypoint_wire::query::{Protocol, XQuery};
//!
//! let listed = "192.0.2.1:8190".parse()?;
//! let query = XQuery::parse(b"session:45555").expect("a protocol and a port");
//! assert_eq!(query.protocol, Protocol::Session);
//! assert_eq!(query.address(listed), "192.0.2.1:45555".parse()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod a2s;
pub mod armagetron;
pub mod ase;
pub mod assaultcube;
pub mod bedrock;
pub mod bzflag;
pub mod cube2;
pub mod ddnet;
pub mod doom3;
pub mod fivem;
pub mod gamespy1;
pub mod gamespy2;
pub mod gamespy3;
pub mod luanti;
pub mod minecraft;
pub mod minecraft_query;
pub mod mumble;
pub mod openttd;
pub mod openttd_udp;
pub mod quake;
pub mod quake1;
pub mod quake2;
pub mod quake3;
pub mod quakeworld;
pub mod samp;
pub mod teamspeak3;
pub mod teeworlds;
pub mod teeworlds7;
pub mod unreal2;

use core::{fmt, net::SocketAddr, num::NonZeroU16, str::FromStr};

/// The table of query protocols: for each its variant of [`Protocol`](crate::query::Protocol), the module of `rallypoint-wire`
/// with its `SCHEME`, `TITLE` and `PORT`, and the module of `rallypoint-query-proto` that implements it.
///
/// Passes the table to another macro, so that other crates can be generated from it, too.
#[macro_export]
macro_rules! query_protocols {
    ($callback:ident) => {
        $callback! {
            /// Document 002.
            Bloodmasters = bloodmasters, bloodmasters;
            /// Document 003.
            Session = session, session;
            /// Quake 3 and games on its engine.
            Quake3 = query::quake3, quake3;
            /// Valve's protocol of Source, GoldSrc and games on Steam.
            A2s = query::a2s, a2s;
            /// Unreal Engine 2.
            Unreal2 = query::unreal2, unreal2;
            /// The All-Seeing Eye.
            Ase = query::ase, ase;
            /// Teeworlds 0.6.
            Teeworlds = query::teeworlds, teeworlds;
            /// The extended query of DDNet.
            Ddnet = query::ddnet, ddnet;
            /// Teeworlds 0.7.
            Teeworlds7 = query::teeworlds7, teeworlds7;
            /// Mumble.
            Mumble = query::mumble, mumble;
            /// San Andreas Multiplayer and open.mp.
            Samp = query::samp, samp;
            /// OpenTTD before version 12, over UDP.
            OpenttdUdp = query::openttd_udp, openttd_udp;
            /// Armagetron Advanced.
            Armagetron = query::armagetron, armagetron;
            /// Luanti (Minetest).
            Luanti = query::luanti, luanti;
            /// Cube 2: Sauerbraten.
            Cube2 = query::cube2, cube2;
            /// AssaultCube.
            AssaultCube = query::assaultcube, assaultcube;
            /// Minecraft: Java Edition, the ping of its server list.
            Minecraft = query::minecraft, minecraft;
            /// FiveM and RedM: documents over HTTP.
            FiveM = query::fivem, fivem;
            /// Minecraft: Bedrock Edition.
            Bedrock = query::bedrock, bedrock;
            /// Minecraft: Java Edition, the query over UDP.
            MinecraftQuery = query::minecraft_query, minecraft_query;
            /// TeamSpeak 3.
            TeamSpeak3 = query::teamspeak3, teamspeak3;
            /// BZFlag.
            BzFlag = query::bzflag, bzflag;
            /// OpenTTD over TCP.
            OpenTtd = query::openttd, openttd;
            /// QuakeWorld.
            QuakeWorld = query::quakeworld, quakeworld;
            /// Quake 2 and games on its engine.
            Quake2 = query::quake2, quake2;
            /// Quake, also known as NetQuake.
            Quake1 = query::quake1, quake1;
            /// DOOM 3 and games on its engine.
            Doom3 = query::doom3, doom3;
            /// GameSpy 1.
            GameSpy1 = query::gamespy1, gamespy1;
            /// GameSpy 2.
            GameSpy2 = query::gamespy2, gamespy2;
            /// GameSpy 3.
            GameSpy3 = query::gamespy3, gamespy3;
        }
    };
}

macro_rules! define {
    ($($(#[$doc:meta])* $name:ident = $wire:ident $(:: $inner:ident)?, $implementation:ident;)+) => {
        /// A query protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Protocol {
            $($(#[$doc])* $name,)+
        }

        impl Protocol {
            /// All protocols.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Name of the protocol in `x-query` and in URLs.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => crate::$wire $(:: $inner)?::SCHEME,)+
                }
            }

            /// Name of the protocol for people: that of the game that it comes from.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$name => crate::$wire $(:: $inner)?::TITLE,)+
                }
            }

            /// Port of a server that is given without one (B8, S34).
            #[must_use]
            pub const fn default_port(self) -> u16 {
                match self {
                    $(Self::$name => crate::$wire $(:: $inner)?::PORT,)+
                }
            }
        }
    };
}

query_protocols!(define);

/// The protocol to query a server with, and how much to ask for.
///
/// Built from a protocol: [`Protocol::presence`], [`Protocol::info`], [`Protocol::players`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServerQuery {
    /// Protocol that the server speaks.
    pub protocol: Protocol,
    /// Which replies to wait for.
    pub detail: Detail,
}

/// The amount of detail that a query requests. A protocol that has only one query always sends that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Detail {
    /// Any valid reply: whether the server is there.
    Presence,
    /// The description of the server.
    Info,
    /// The description of the server and, if anyone plays there, the list of players.
    Players,
}

/// The value of the key `x-query` of a listed server: how to query it (E1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XQuery {
    /// Protocol that the server speaks.
    pub protocol: Protocol,
    /// Port for queries, if it is not the listed one.
    pub port: Option<NonZeroU16>,
}

/// A name that is not the name of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProtocol;

impl Protocol {
    /// A query that ends with the first valid reply.
    #[must_use]
    pub const fn presence(self) -> ServerQuery {
        ServerQuery { protocol: self, detail: Detail::Presence }
    }

    /// A query for the description of a server.
    #[must_use]
    pub const fn info(self) -> ServerQuery {
        ServerQuery { protocol: self, detail: Detail::Info }
    }

    /// A query for the description of a server and its list of players.
    #[must_use]
    pub const fn players(self) -> ServerQuery {
        ServerQuery { protocol: self, detail: Detail::Players }
    }
}

impl XQuery {
    /// Parses the name of a protocol, optionally with `:port`. `None` for other values, which lobbies and clients ignore.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let value = core::str::from_utf8(value).ok()?;
        let (name, port) = match value.split_once(':') {
            Some((_, port)) if port.starts_with('+') => return None,
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (value, None),
        };
        Some(Self { protocol: name.parse().ok()?, port })
    }

    /// Where to query a server that is listed at this address.
    #[must_use]
    pub fn address(self, listed: SocketAddr) -> SocketAddr {
        SocketAddr::new(listed.ip(), self.port.map_or(listed.port(), NonZeroU16::get))
    }
}

/// The name of the protocol, as in `x-query` and in URLs.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        Self::ALL.iter().copied().find(|protocol| protocol.as_str() == name).ok_or(UnknownProtocol)
    }
}

impl fmt::Display for UnknownProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown protocol: use ")?;
        Protocol::ALL.iter().enumerate().try_for_each(|(index, protocol)| {
            f.write_str(if index == 0 { "" } else { " or " })?;
            f.write_str(protocol.as_str())
        })
    }
}

impl core::error::Error for UnknownProtocol {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e1_x_query_names_a_protocol_and_optionally_a_port() {
        let parse = |value: &str| XQuery::parse(value.as_bytes()).map(|it| (it.protocol, it.port.map(NonZeroU16::get)));
        assert_eq!(parse("bloodmasters"), Some((Protocol::Bloodmasters, None)));
        assert_eq!(parse("session:45555"), Some((Protocol::Session, Some(45555))));
        for other in ["", "session:", "session:0", "session:65536", "session:+1", "nonsense", "session:1:2", "Session"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
        assert_eq!(XQuery::parse(b"session\xff"), None);
    }

    #[test]
    fn names_are_unique_and_can_be_schemes_of_urls() {
        for (index, protocol) in Protocol::ALL.iter().enumerate() {
            let name = protocol.as_str();
            assert_eq!(name.parse(), Ok(*protocol));
            assert_eq!(Protocol::ALL.iter().position(|other| other.as_str() == name), Some(index), "{name}");
            assert!(name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{name}");
            assert_ne!(protocol.default_port(), 0, "{name}");
        }
    }
}
