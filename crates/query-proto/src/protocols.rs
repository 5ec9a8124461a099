//! The query protocols: one file each, attached to the table in `rallypoint_wire::query`.

mod a2s;
mod armagetron;
mod ase;
mod assaultcube;
mod bedrock;
mod bloodmasters;
mod bzflag;
mod cube2;
mod ddnet;
mod doom3;
mod fivem;
#[cfg(test)]
mod fixture;
mod gamespy;
mod gamespy1;
mod gamespy2;
mod gamespy3;
mod json;
mod luanti;
mod minecraft;
mod minecraft_query;
mod mumble;
mod openttd;
mod openttd_udp;
mod quake1;
mod quake2;
mod quake3;
mod quakeworld;
mod samp;
mod session;
mod teamspeak3;
mod teeworlds;
mod teeworlds7;
mod unreal2;

pub use session::SessionReplies;

use crate::{
    MissingPart, RawReply, ServerInfo,
    exchange::{self, Context, Query, QueryProtocol, Received, Request, Requests, Token, Transport},
    responder::{Client, Datagrams},
};
use rallypoint_wire::{
    DecodeError,
    query::{Detail, Protocol},
};
use std::net::SocketAddr;

macro_rules! dispatch {
    ($($(#[$doc:meta])* $name:ident = $wire:ident $(:: $inner:ident)?, $module:ident;)+) => {
        /// What has been received of a reply so far.
        #[derive(Debug)]
        pub(crate) enum State {
            $($name(<$module::$name as QueryProtocol>::State),)+
        }

        /// Length of the longest datagram of any server, in bytes.
        pub(crate) const MAX_DATAGRAM: usize = max(&[$(match <$module::$name>::TRANSPORT {
            Transport::Udp => <$module::$name>::MAX_DATAGRAM,
            Transport::Tcp | Transport::Http => 0,
        }),+]);

        /// Length of the longest datagram or message of a server, in bytes.
        pub(crate) const fn max_message(protocol: Protocol) -> usize {
            match protocol {
                $(Protocol::$name => <$module::$name>::MAX_DATAGRAM,)+
            }
        }

        /// How the queries and replies of a protocol are carried.
        #[must_use]
        pub const fn transport(protocol: Protocol) -> Transport {
            match protocol {
                $(Protocol::$name => <$module::$name>::TRANSPORT,)+
            }
        }

        pub(crate) const fn has_token(protocol: Protocol) -> bool {
            match protocol {
                $(Protocol::$name => <$module::$name>::HAS_TOKEN,)+
            }
        }

        pub(crate) const fn has_responder(protocol: Protocol) -> bool {
            match protocol {
                $(Protocol::$name => <$module::$name>::HAS_RESPONDER,)+
            }
        }

        /// Whether a server at this port (`None`: not given) is queried with a protocol although none was named.
        pub(crate) const fn is_candidate(protocol: Protocol, port: Option<u16>) -> bool {
            match protocol {
                $(Protocol::$name => exchange::is_candidate(protocol, port, <$module::$name>::IS_TRIED_UNASKED),)+
            }
        }

        /// The requests of the first attempt.
        pub(crate) fn first_attempt(protocol: Protocol, detail: Detail) -> Requests {
            match protocol {
                $(Protocol::$name => <$module::$name>::attempt(&Default::default(), detail),)+
            }
        }

        /// Further requests of every retry to a server that has not sent anything of use.
        pub(crate) const fn fallback(protocol: Protocol) -> Requests {
            match protocol {
                $(Protocol::$name => <$module::$name>::FALLBACK,)+
            }
        }

        pub(crate) const fn max_follow_ups(protocol: Protocol) -> u8 {
            match protocol {
                $(Protocol::$name => <$module::$name>::MAX_FOLLOW_UPS,)+
            }
        }

        /// Appends the datagram for a request of a server that has not sent anything yet.
        pub(crate) fn emit_first(
            protocol: Protocol,
            request: Request,
            token: impl FnOnce() -> Token,
            out: &mut Vec<u8>,
        ) {
            match protocol {
                $(Protocol::$name => <$module::$name>::emit(None, request, token, out),)+
            }
        }

        pub(crate) fn insert_address(protocol: Protocol, datagram: &mut [u8], server: SocketAddr) {
            match protocol {
                $(Protocol::$name => <$module::$name>::insert_address(datagram, server),)+
            }
        }

        pub(crate) fn is_query(protocol: Protocol, quoted: &[u8]) -> bool {
            match protocol {
                $(Protocol::$name => <$module::$name>::is_query(quoted),)+
            }
        }

        pub(crate) fn replies(protocol: Protocol, info: &ServerInfo) -> Vec<Datagrams> {
            match protocol {
                $(Protocol::$name => <$module::$name>::replies(info),)+
            }
        }

        pub(crate) fn queries(
            protocol: Protocol,
            client: Client,
            datagram: &[u8],
            answer: impl FnMut(Query) -> bool,
        ) -> bool {
            match protocol {
                $(Protocol::$name => <$module::$name>::queries_from(client, datagram, answer),)+
            }
        }

        pub(crate) fn needs_challenge(protocol: Protocol, kind: u8) -> bool {
            match protocol {
                $(Protocol::$name => <$module::$name>::needs_challenge(kind),)+
            }
        }

        pub(crate) fn insert_token(protocol: Protocol, token: &[u8], start: usize, out: &mut Vec<u8>) {
            match protocol {
                $(Protocol::$name => <$module::$name>::insert_token(token, start, out),)+
            }
        }

        impl State {
            pub fn new(protocol: Protocol) -> Self {
                match protocol {
                    $(Protocol::$name => Self::$name(Default::default()),)+
                }
            }

            pub fn outstanding(&self, detail: Detail) -> Requests {
                match self {
                    $(Self::$name(state) => <$module::$name>::outstanding(state, detail),)+
                }
            }

            pub fn attempt(&self, detail: Detail) -> Requests {
                match self {
                    $(Self::$name(state) => <$module::$name>::attempt(state, detail),)+
                }
            }

            pub fn set_server(&mut self, server: SocketAddr) {
                match self {
                    $(Self::$name(state) => <$module::$name>::set_server(state, server),)+
                }
            }

            pub fn frame(&self, received: &[u8]) -> Result<Option<usize>, DecodeError> {
                match self {
                    $(Self::$name(state) => <$module::$name>::frame(state, received),)+
                }
            }

            pub fn reconnect(&self, detail: Detail, connection: u8) -> Requests {
                match self {
                    $(Self::$name(state) => <$module::$name>::reconnect(state, detail, connection),)+
                }
            }

            pub fn emit(&mut self, request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name(state) => <$module::$name>::emit(Some(state), request, token, out),)+
                }
            }

            pub fn handle(
                &mut self,
                datagram: &[u8],
                detail: Detail,
                context: &Context<'_>,
            ) -> Result<Received, DecodeError> {
                match self {
                    $(Self::$name(state) => <$module::$name>::handle(state, datagram, detail, context),)+
                }
            }

            pub fn finish(&self, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>) {
                match self {
                    $(Self::$name(state) => <$module::$name>::finish(state, detail, raw),)+
                }
            }
        }
    };
}

rallypoint_wire::query_protocols!(dispatch);

const fn max(numbers: &[usize]) -> usize {
    match numbers {
        [] => 0,
        [first, rest @ ..] => {
            let other = max(rest);
            if *first > other { *first } else { other }
        }
    }
}

/// A number for a field of one byte.
fn byte(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
