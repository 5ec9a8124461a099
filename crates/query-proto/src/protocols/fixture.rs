//! What the tests of protocols have in common: a probe of one server on virtual time, and damage to what the server sends.

use crate::{
    Extension, ExtensionValue, Probe, ProbeOutcome, ProbeResult, Prober, ProberConfig, QueryReply, ServerInfo,
    ServerQuery, StreamAction, StreamExchange,
};
use rallypoint_machine::Machine;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The server's side: the datagrams that answer a query.
pub type Server<'a> = dyn Fn(&[u8]) -> Vec<Vec<u8>> + 'a;

/// A probe of one server over UDP.
pub struct Exchange {
    pub prober: Prober,
    pub now: Instant,
}

/// Address of the server.
pub fn server() -> SocketAddr {
    ([192, 0, 2, 1], 4_000).into()
}

impl Exchange {
    /// A query that is retried, as by default.
    pub fn new(query: ServerQuery) -> Self {
        Self::with_retries(query, ProberConfig::default().retries)
    }

    /// A query that is sent once.
    pub fn without_retries(query: ServerQuery) -> Self {
        Self::with_retries(query, 0)
    }

    fn with_retries(query: ServerQuery, retries: u8) -> Self {
        let config = ProberConfig { packets_per_second: 1_000_000, retries, ..ProberConfig::default() };
        let mut prober = Prober::new(config, [7; 32]).unwrap();
        prober.enqueue(Probe::new(server(), query)).unwrap();
        Self { prober, now: Instant::now() }
    }

    /// What is sent now.
    pub fn queries(&mut self) -> Vec<Vec<u8>> {
        let mut queries = Vec::new();
        let mut out = Vec::new();
        // Later by less than a retry, because of the pace.
        for _ in 0..40 {
            self.now += Duration::from_micros(1);
            while self.prober.poll_transmit(self.now, &mut out).is_some() {
                queries.push(std::mem::take(&mut out));
            }
        }
        queries
    }

    pub fn receive(&mut self, datagram: &[u8]) {
        self.prober.handle_datagram(self.now, server(), datagram);
    }

    /// Receives a datagram; returns what is sent then.
    pub fn deliver(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.receive(datagram);
        self.queries()
    }

    /// Lets time pass until the next retry, or the end.
    pub fn wait(&mut self) {
        self.prober.handle_timeout(self.now);
        while let Some(at) = self.prober.poll_timeout().filter(|at| *at > self.now) {
            self.now = at;
            self.prober.handle_timeout(at);
        }
    }

    /// The queries of the next retry; none at the end.
    pub fn retries(&mut self) -> Vec<Vec<u8>> {
        loop {
            self.wait();
            let queries = self.queries();
            if !queries.is_empty() || !self.is_waiting() {
                return queries;
            }
        }
    }

    /// Answers what is sent, until nothing is sent before the next retry.
    pub fn answer(&mut self, respond: &Server<'_>) {
        self.answer_with(respond, |datagrams| datagrams);
    }

    /// Answers what is sent with datagrams that were changed on their way.
    fn answer_with(&mut self, respond: &Server<'_>, mut change: impl FnMut(Vec<Vec<u8>>) -> Vec<Vec<u8>>) {
        loop {
            let queries = self.queries();
            if queries.is_empty() {
                return;
            }
            let replies = queries.iter().flat_map(|query| respond(query)).collect();
            for datagram in change(replies) {
                self.receive(&datagram);
            }
        }
    }

    pub fn is_waiting(&self) -> bool {
        self.prober.in_flight() + self.prober.queued() > 0
    }

    /// The result when the server sends nothing else.
    pub fn finish(mut self) -> ProbeResult {
        self.queries();
        while self.is_waiting() {
            self.retries();
        }
        self.prober.poll_event().unwrap()
    }

    /// The reply, which has to exist, when the server sends nothing else.
    pub fn reply(self) -> QueryReply {
        reply_of(self.finish())
    }
}

/// A probe of one server over TCP, at its usual port.
pub struct Dialog {
    pub exchange: StreamExchange,
    pub now: Instant,
    /// Number of connections that were made.
    pub connections: usize,
}

impl Dialog {
    /// A dialog of at most 4 s.
    pub fn new(query: ServerQuery) -> Self {
        let server = SocketAddr::new(server().ip(), query.protocol.default_port());
        let exchange = StreamExchange::new(Probe::new(server, query), Duration::from_secs(4), [7; 32]).unwrap();
        Self { exchange, now: Instant::now(), connections: 0 }
    }

    /// Connects, each time within 20 ms, and sends until the exchange waits or ends. Returns what is sent.
    pub fn sent(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            match self.exchange.poll_action(self.now, &mut out) {
                StreamAction::Connect => {
                    self.connections += 1;
                    out.clear();
                    self.now += Duration::from_millis(20);
                    self.exchange.handle_connected(self.now);
                }
                StreamAction::Send => {}
                StreamAction::WaitUntil(_) | StreamAction::End => return out,
            }
        }
    }

    /// Whether the exchange has ended, once everything is [`sent`](Self::sent).
    pub fn has_ended(&mut self) -> bool {
        self.sent();
        self.exchange.poll_action(self.now, &mut Vec::new()) == StreamAction::End
    }

    pub fn receive(&mut self, bytes: &[u8]) {
        self.exchange.handle_received(bytes);
    }

    pub fn close(&mut self) {
        self.exchange.handle_closed();
    }

    /// Lets time pass until the exchange does something.
    pub fn wait(&mut self) {
        if let StreamAction::WaitUntil(at) = self.exchange.poll_action(self.now, &mut Vec::new()) {
            self.now = at;
            self.exchange.handle_timeout(at);
        }
    }

    /// Lets time pass until the end.
    pub fn finish(mut self) -> ProbeResult {
        while !self.has_ended() {
            self.wait();
        }
        self.exchange.into_result()
    }
}

/// The reply, which has to exist.
pub fn reply_of(result: ProbeResult) -> QueryReply {
    let ProbeOutcome::Answered(reply) = result.outcome else { panic!("{result:?}") };
    *reply
}

/// The result for a server that sends these datagrams, whatever it is asked, in this order.
pub fn reply_to<D: AsRef<[u8]>>(query: ServerQuery, datagrams: impl IntoIterator<Item = D>) -> ProbeResult {
    let mut exchange = Exchange::without_retries(query);
    exchange.queries();
    for datagram in datagrams {
        exchange.deliver(datagram.as_ref());
    }
    exchange.finish()
}

/// The result for a server that sends these pieces over TCP, each when there is nothing else to send, and then closes each
/// connection.
pub fn stream_reply_to(query: ServerQuery, pieces: &[&[u8]]) -> ProbeResult {
    let mut dialog = Dialog::new(query);
    for piece in pieces {
        dialog.sent();
        dialog.receive(piece);
    }
    while !dialog.has_ended() {
        dialog.close();
    }
    dialog.exchange.into_result()
}

/// The reply of a server to a probe without losses.
pub fn probe(query: ServerQuery, respond: &Server<'_>) -> QueryReply {
    let result = probe_with(query, respond, |datagrams| datagrams);
    assert_eq!((result.retries, result.malformed), (0, 0), "{result:?}");
    reply_of(result)
}

/// The result of a probe whose datagrams were changed on their way.
fn probe_with(
    query: ServerQuery,
    respond: &Server<'_>,
    change: impl FnMut(Vec<Vec<u8>>) -> Vec<Vec<u8>>,
) -> ProbeResult {
    let mut exchange = Exchange::new(query);
    exchange.answer_with(respond, change);
    exchange.finish()
}

/// The bytes with each of their ends cut off.
pub fn truncations(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..bytes.len()).map(|length| &bytes[..length])
}

/// The bytes with each of them changed: to others of the same kind, and to such as end or escape a text.
pub fn mutations(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    const MARKS: [u8; 11] = [0, 1, b'\n', 0x1b, b' ', b'"', b';', b'\\', b'|', 0x7f, 0xff];
    (0..bytes.len()).flat_map(move |index| {
        let byte = bytes[index];
        let similar = [byte ^ 1, byte ^ 0x20, byte ^ 0x40, byte ^ 0x80, !byte, byte.wrapping_add(1)];
        similar.into_iter().chain(MARKS).filter(move |changed| *changed != byte).map(move |changed| {
            let mut bytes = bytes.to_vec();
            bytes[index] = changed;
            bytes
        })
    })
}

/// Checks that a reply is the same if its datagrams arrive in the opposite order, twice, or both.
pub fn assert_order_is_irrelevant(query: ServerQuery, respond: &Server<'_>) {
    let whole = probe(query, respond);
    let reverse = |datagrams: Vec<Vec<u8>>| datagrams.into_iter().rev().collect();
    let repeat = |datagrams: Vec<Vec<u8>>| datagrams.into_iter().flat_map(|one| [one.clone(), one]).collect();
    let info_with = |change: &dyn Fn(_) -> _| reply_of(probe_with(query, respond, change)).info;
    assert_eq!(info_with(&reverse), whole.info);
    assert_eq!(info_with(&repeat), whole.info);
    assert_eq!(info_with(&|datagrams| repeat(reverse(datagrams))), whole.info);
}

/// Checks that a reply with one of its datagrams cut off at any length, or lost, is a part of the whole one, and names what is
/// missing if anything is.
pub fn assert_cuts_are_harmless(query: ServerQuery, respond: &Server<'_>) {
    let whole = probe(query, respond);
    for (number, datagram) in datagrams_of(query, respond).iter().enumerate() {
        for cut in truncations(datagram) {
            let result = probe_with(query, respond, replace(number, cut));
            assert_is_harmless(&result);
            if let Some(reply) = result.reply() {
                assert_is_part_of(&reply.info, &whole.info);
                assert_players_are_part_of(&reply.info, &whole.info);
                assert!(!reply.missing.is_empty() || reply.info == whole.info, "{}: {reply:?}", cut.escape_ascii());
            }
        }
    }
}

/// Checks that a reply with any changed byte is harmless.
pub fn assert_changes_are_harmless(query: ServerQuery, respond: &Server<'_>) {
    for (number, datagram) in datagrams_of(query, respond).iter().enumerate() {
        for changed in mutations(datagram) {
            assert_is_harmless(&probe_with(query, respond, replace(number, &changed)));
        }
    }
}

/// Checks that a reply over TCP may arrive in any two pieces, that one that ends too early is not taken for complete, and that one
/// with any changed byte is harmless.
pub fn assert_stream_is_robust(query: ServerQuery, bytes: &[u8]) {
    let whole = reply_of(stream_reply_to(query, &[bytes]));
    for cut in truncations(bytes) {
        let both = reply_of(stream_reply_to(query, &[cut, &bytes[cut.len()..]]));
        assert_eq!((&both.info, &both.missing), (&whole.info, &whole.missing), "split at {}", cut.len());
        let result = stream_reply_to(query, &[cut]);
        assert_is_harmless(&result);
        if let Some(reply) = result.reply() {
            assert!(!reply.missing.is_empty() || reply.info == whole.info, "cut at {}: {:?}", cut.len(), reply.info);
        }
    }
    for changed in mutations(bytes) {
        assert_is_harmless(&stream_reply_to(query, &[&changed]));
    }
}

/// All datagrams of the server, in their order.
fn datagrams_of(query: ServerQuery, respond: &Server<'_>) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    probe_with(query, respond, |datagrams| {
        all.extend_from_slice(&datagrams);
        datagrams
    });
    assert!(!all.is_empty());
    all
}

/// Replaces the datagram with this number in an exchange.
fn replace(number: usize, changed: &[u8]) -> impl FnMut(Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut next = 0;
    move |mut datagrams| {
        if let Some(datagram) = number.checked_sub(next).and_then(|index| datagrams.get_mut(index)) {
            *datagram = changed.to_vec();
        }
        next += datagrams.len();
        datagrams
    }
}

fn own_texts(info: &ServerInfo) -> [&Option<String>; 8] {
    [&info.name, &info.description, &info.game, &info.game_name, &info.mode, &info.map, &info.version, &info.website]
}

/// Checks that a result is none, or fit to be shown, and bounded by what was received.
pub fn assert_is_harmless(result: &ProbeResult) {
    let QueryReply { info, raw, .. } = match &result.outcome {
        ProbeOutcome::Answered(reply) => &**reply,
        other => return assert!(matches!(other, ProbeOutcome::TimedOut | ProbeOutcome::Malformed(_)), "{other:?}"),
    };
    let players = info.player_list.as_deref().unwrap_or_default();
    let extensions = info.extensions.values().chain(players.iter().map(|player| &player.extension));
    let extensions = extensions.flat_map(Extension::iter).filter_map(|(_, value)| match value {
        ExtensionValue::Text(text) => Some(text),
        _ => None,
    });
    let texts = own_texts(info).into_iter().flatten().chain(&info.tags).chain(extensions);
    let texts = texts.chain(players.iter().map(|player| &player.name)).chain(info.teams.iter().map(|team| &team.name));
    let texts = texts.chain(info.mods.iter().flat_map(|one| one.id.iter().chain(&one.name)));
    for text in texts.chain(info.rules.iter().flat_map(|(name, value)| [name, value])) {
        assert!(!text.contains(char::is_control), "{text:?}");
    }
    assert!(players.len() <= raw.size() && info.teams.len() <= 256 && info.rules.len() <= raw.size());
}

/// Checks that what a part of a reply says is what the whole one says: nothing is cut off or made up. Without all players, their
/// number and the columns of their table may be incomplete.
pub fn assert_is_part_of(part: &ServerInfo, whole: &ServerInfo) {
    for (one, other) in own_texts(part).into_iter().zip(own_texts(whole)) {
        assert!(one.is_none() || one == other, "{one:?} instead of {other:?}");
    }
    assert!(part.password.is_none() || part.password == whole.password);
    assert!(part.max_players.is_none() || part.max_players == whole.max_players, "{:?}", part.max_players);
    assert!(part.teams.iter().all(|team| whole.teams.contains(team)), "{:?}", part.teams);
    assert!(part.tags.iter().all(|tag| whole.tags.contains(tag)), "{:?}", part.tags);
    for (key, value) in &part.rules {
        assert_eq!(whole.rules.get(key), Some(value), "{key}");
    }
    let players = whole.player_list.as_deref().unwrap_or_default();
    for player in part.player_list.iter().flatten() {
        assert!(players.iter().any(|known| known.name == player.name), "{player:?} is none of {players:?}");
    }
    for (protocol, fields) in &part.extensions {
        for (name, value) in fields.iter() {
            let is_known = whole.extensions.get(protocol).and_then(|all| all.get(name)) == Some(value);
            assert!(is_known || *value == ExtensionValue::Unknown, "{name}: {value:?}");
        }
    }
}

/// Checks that the numbers of players are those of the whole reply, and its players complete.
pub fn assert_players_are_part_of(part: &ServerInfo, whole: &ServerInfo) {
    for (one, other) in [(part.players, whole.players), (part.bots, whole.bots), (part.spectators, whole.spectators)] {
        assert!(one.is_none() || one == other, "{one:?} instead of {other:?}");
    }
    let players = whole.player_list.as_deref().unwrap_or_default();
    for player in part.player_list.iter().flatten() {
        assert!(players.contains(player), "{player:?} is none of {players:?}");
    }
}
