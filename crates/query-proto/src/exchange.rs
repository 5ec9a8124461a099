//! What a query protocol implements. Each file in `protocols` does so once, for both sides of the exchange.

use crate::{
    MissingPart, RawReply, ServerInfo,
    responder::{Client, Datagrams},
    secret::Secrets,
};
use rallypoint_wire::{
    DecodeError,
    query::{Detail, Protocol},
};
use std::{fmt, net::SocketAddr};

/// A query protocol. The methods are called through the functions in `protocols`, which are generated from the table of
/// protocols, so that the hot path has no dynamic dispatch.
///
/// An exchange consists of *requests*, which the protocol numbers. An attempt sends all requests that make sense at that time;
/// what arrives may add others at once: the same request with the challenge that was received, or one for players that are now
/// known to exist. [`Prober`](crate::Prober) provides everything else: pace, retries, deadlines, memory limits.
///
/// Over TCP and HTTP the steps are the same, and [`StreamExchange`](crate::StreamExchange) provides the rest. What
/// [`handle`](Self::handle) gets is then a message rather than a datagram: of a stream, what [`frame`](Self::frame) separates; of
/// HTTP, the body of a response. What [`emit`](Self::emit) appends is the bytes to send; for HTTP, the path of a document.
pub(crate) trait QueryProtocol {
    /// How queries and replies are carried.
    const TRANSPORT: Transport = Transport::Udp;
    /// Length of the longest datagram of a server, in bytes; over TCP and HTTP, of its longest message.
    const MAX_DATAGRAM: usize;
    /// Whether each query has a token that cannot be guessed, and that replies repeat.
    const HAS_TOKEN: bool;
    /// Whether a server that is named without a protocol is queried with this one, whatever its port.
    const IS_TRIED_UNASKED: bool = false;
    /// Requests that every retry adds while the server has sent nothing of use: for variants that do not answer the usual ones.
    const FALLBACK: Requests = Requests::NONE;
    /// Number of times in one attempt that a datagram of the server can cause requests.
    const MAX_FOLLOW_UPS: u8 = 8;

    /// What has been received of a reply so far. It exists from the first datagram on.
    type State: fmt::Debug + Default;

    /// The requests that still have to be answered completely to satisfy a query of this detail; none if it is satisfied.
    /// A last one without a reply (a disconnect) is outstanding until it has been emitted.
    fn outstanding(state: &Self::State, detail: Detail) -> Requests;

    /// The requests of an attempt. None if the rest of the reply is not worth another one: the probe ends.
    fn attempt(state: &Self::State, detail: Detail) -> Requests {
        Self::outstanding(state, detail)
    }

    /// Over TCP and HTTP, tells the server's address before the first request, because some requests contain it.
    fn set_server(_state: &mut Self::State, _server: SocketAddr) {}

    /// Over TCP, the length of the first message in what has been received; `None` if it is not complete.
    ///
    /// # Errors
    /// If what has been received is no beginning of a message.
    fn frame(_state: &Self::State, _received: &[u8]) -> Result<Option<usize>, DecodeError> {
        Ok(None)
    }

    /// Over TCP, the requests to begin another connection with, if one that was made before has ended without a complete reply:
    /// for servers that have to be asked in another way. `connection` counts from 1. None if there is no other way.
    fn reconnect(_state: &Self::State, _detail: Detail, _connection: u8) -> Requests {
        Requests::NONE
    }

    /// Appends the datagram for a request. `token` is computed only if it is called.
    fn emit(state: Option<&mut Self::State>, request: Request, token: impl FnOnce() -> Token, out: &mut Vec<u8>);

    /// Writes the server's address into a datagram that was just emitted, for protocols whose queries name it.
    fn insert_address(_datagram: &mut [u8], _server: SocketAddr) {}

    /// Takes in a datagram from the server's address. `state` changes only if the datagram is accepted.
    ///
    /// # Errors
    /// If the datagram cannot be parsed.
    fn handle(
        state: &mut Self::State,
        datagram: &[u8],
        detail: Detail,
        context: &Context<'_>,
    ) -> Result<Received, DecodeError>;

    /// Whether a datagram quoted in an ICMP error could be a query without a token.
    fn is_query(_quoted: &[u8]) -> bool {
        false
    }

    /// Maps the reply to the common view, and names the parts that are missing. Texts must be safe to display.
    fn finish(state: &Self::State, detail: Detail, raw: &RawReply) -> (ServerInfo, Vec<MissingPart>);

    /// Whether a [`Responder`](crate::Responder) can answer queries of this protocol.
    const HAS_RESPONDER: bool = false;

    /// Encodes the replies to all kinds of queries, which the protocol numbers from 0.
    fn replies(_info: &ServerInfo) -> Vec<Datagrams> {
        Vec::new()
    }

    /// Passes on the queries in a datagram from a client, until `answer` returns false. Returns whether there were any.
    fn queries(_datagram: &[u8], _answer: impl FnMut(Query) -> bool) -> bool {
        false
    }

    /// Like [`queries`](Self::queries), for protocols that answer only clients with a challenge.
    fn queries_from(_client: Client, datagram: &[u8], answer: impl FnMut(Query) -> bool) -> bool {
        Self::queries(datagram, answer)
    }

    /// Whether replies of this kind are sent only to clients that have sent the challenge for their address.
    fn needs_challenge(_kind: u8) -> bool {
        false
    }

    /// Inserts the token of a query into a datagram of its reply, which is at the end of `out` from `start` on.
    fn insert_token(_token: &[u8], _start: usize, _out: &mut Vec<u8>) {}
}

/// How the queries and replies of a protocol are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams, through a [`Prober`](crate::Prober).
    Udp,
    /// A TCP connection, through a [`StreamExchange`](crate::StreamExchange).
    Tcp,
    /// Documents read over HTTP, through a [`StreamExchange`](crate::StreamExchange).
    Http,
}

/// One request of a protocol, by a number of the protocol's own, from 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request(pub u8);

/// A set of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests(u8);

/// A value that cannot be guessed, different for every attempt of every probe (B7). A protocol uses as much of it as it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(pub [u8; 8]);

/// An attempt of a probe, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt(pub u8);

/// What a protocol may use to judge a datagram.
pub(crate) struct Context<'a> {
    pub secrets: &'a Secrets,
    /// Number of the probe.
    pub serial: u64,
    /// Number of attempts made; over TCP and HTTP, of connections.
    pub attempts: u8,
    /// The request that is answered, which only HTTP tells.
    pub request: Option<Request>,
}

/// What a datagram is to the probe at whose address it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// A datagram of another protocol: for another probe, or for none.
    Foreign,
    /// A reply with a token that was not sent.
    WrongToken,
    /// A reply that adds nothing, or a message that is not a reply.
    Redundant,
    /// A part of the reply.
    Accepted(Accepted),
}

/// A datagram that is part of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The attempt that the datagram answers, if it repeats the token of a request that was sent at the beginning of one.
    pub attempt: Option<Attempt>,
    /// Requests to send at once.
    pub next: Requests,
    /// Whether the datagram is of no use later: a challenge, for example. It is not in the [`RawReply`].
    pub is_transient: bool,
}

/// A query that a responder has received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query {
    /// Index of the reply in [`QueryProtocol::replies`].
    pub kind: u8,
    /// What the reply has to repeat.
    pub token: QueryToken,
    /// Number of bytes by which the token makes the reply longer.
    pub growth: usize,
}

/// A value of a query that its reply repeats.
#[derive(Clone, Copy)]
pub(crate) struct QueryToken {
    bytes: [u8; Self::MAX],
    length: u8,
}

impl Requests {
    pub const NONE: Self = Self(0);

    pub const fn of(request: Request) -> Self {
        Self(1 << request.0)
    }

    /// The request, if it is needed.
    pub const fn only_if(request: Request, is_needed: bool) -> Self {
        if is_needed { Self::of(request) } else { Self::NONE }
    }

    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Removes and returns the request with the lowest number; the first one of all if there is none.
    pub fn pop(&mut self) -> Request {
        let request = Request(self.0.trailing_zeros().min(7) as u8 * u8::from(self.0 != 0));
        self.0 &= self.0.wrapping_sub(1);
        request
    }
}

impl Token {
    /// The first four bytes, for protocols with little room.
    pub fn short(self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.0;
        [a, b, c, d]
    }
}

impl Context<'_> {
    /// The latest attempt whose token passes this test.
    pub fn attempt_with(&self, is_it: impl Fn(Token) -> bool) -> Option<Attempt> {
        (0..self.attempts).rev().find(|attempt| is_it(self.secrets.token(self.serial, *attempt))).map(Attempt)
    }

    /// The token of an attempt.
    pub fn token(&self, Attempt(attempt): Attempt) -> Token {
        self.secrets.token(self.serial, attempt)
    }

    /// A hash that servers cannot predict.
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        self.secrets.tables.hash(bytes)
    }
}

impl Received {
    pub const fn accepted(next: Requests) -> Self {
        Self::Accepted(Accepted { attempt: None, next, is_transient: false })
    }
}

impl QueryToken {
    /// Maximum length, in bytes. Queries with a longer one are not answered.
    pub const MAX: usize = 64;

    pub const EMPTY: Self = Self { bytes: [0; Self::MAX], length: 0 };

    pub fn new(token: &[u8]) -> Option<Self> {
        let mut new = Self::EMPTY;
        new.bytes.get_mut(..token.len())?.copy_from_slice(token);
        new.length = token.len() as u8;
        Some(new)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for QueryToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().escape_ascii().fmt(f)
    }
}

/// Whether a server at this port (`None`: not given) is queried with a protocol although none was named.
pub(crate) const fn is_candidate(protocol: Protocol, port: Option<u16>, is_tried_unasked: bool) -> bool {
    let is_usual = matches!(port, Some(port) if port == protocol.default_port());
    is_tried_unasked || is_usual
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_in_order() {
        let mut requests = Requests::of(Request(7)).with(Requests::of(Request(2))).with(Requests::NONE);
        assert_eq!([requests.pop(), requests.pop()], [Request(2), Request(7)]);
        assert!(requests.is_empty());
    }

    #[test]
    fn a_token_has_a_maximum_length() {
        assert_eq!(QueryToken::new(&[7; 64]).unwrap().as_bytes(), [7; 64]);
        assert!(QueryToken::new(&[7; 65]).is_none());
    }
}
