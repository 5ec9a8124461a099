//! What the tests of protocols have in common: a probe of one server on virtual time, and damage to the server's datagrams.

use crate::{
    Extension, ExtensionValue, Probe, ProbeOutcome, ProbeResult, Prober, ProberConfig, QueryReply, ServerInfo,
    ServerQuery,
};
use rallypoint_machine::Machine;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The server's side: the datagrams that answer a query.
pub type Server<'a> = dyn Fn(&[u8]) -> Vec<Vec<u8>> + 'a;

/// A probe of one server.
pub struct Exchange {
    pub prober: Prober,
    pub now: Instant,
}

/// Address of the server.
pub fn server() -> SocketAddr {
    ([192, 0, 2, 1], 4_000).into()
}

impl Exchange {
    pub fn new(query: ServerQuery) -> Self {
        let mut prober = Prober::new(ProberConfig::default(), [7; 32]).unwrap();
        prober.enqueue(Probe::new(server(), query)).unwrap();
        Self { prober, now: Instant::now() }
    }

    /// What is sent before the first retry.
    pub fn queries(&mut self) -> Vec<Vec<u8>> {
        let mut queries = Vec::new();
        let mut out = Vec::new();
        for _ in 0..10 {
            self.now += Duration::from_millis(1);
            while self.prober.poll_transmit(self.now, &mut out).is_some() {
                queries.push(std::mem::take(&mut out));
            }
        }
        queries
    }

    /// Lets time pass until the next retry, or the end.
    pub fn wait(&mut self) {
        while let Some(at) = self.prober.poll_timeout() {
            if at <= self.now {
                return;
            }
            self.now = at;
            self.prober.handle_timeout(self.now);
        }
    }

    pub fn receive(&mut self, datagram: &[u8]) {
        self.prober.handle_datagram(self.now, server(), datagram);
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

    /// The result when the server sends nothing else.
    pub fn finish(mut self) -> ProbeResult {
        while self.prober.in_flight() > 0 || self.prober.queued() > 0 {
            self.queries();
            self.wait();
        }
        self.prober.poll_event().unwrap()
    }
}

/// The reply, which has to exist.
pub fn reply_of(result: ProbeResult) -> QueryReply {
    let ProbeOutcome::Answered(reply) = result.outcome else { panic!("{result:?}") };
    *reply
}

/// The reply of a server to a probe without losses.
pub fn probe(query: ServerQuery, respond: &Server<'_>) -> QueryReply {
    let mut exchange = Exchange::new(query);
    exchange.answer(respond);
    let result = exchange.finish();
    assert_eq!((result.retries, result.malformed), (0, 0), "{result:?}");
    reply_of(result)
}

/// The result of a probe whose datagrams were changed on their way.
fn probe_with(
    query: ServerQuery,
    respond: &Server<'_>,
    change: impl FnMut(Vec<Vec<u8>>) -> Vec<Vec<u8>>,
) -> Option<QueryReply> {
    let mut exchange = Exchange::new(query);
    exchange.answer_with(respond, change);
    match exchange.finish().outcome {
        ProbeOutcome::Answered(reply) => Some(*reply),
        _ => None,
    }
}

/// Checks that a reply is the same if its datagrams arrive in the opposite order, twice, or both.
pub fn assert_order_is_irrelevant(query: ServerQuery, respond: &Server<'_>) {
    let whole = probe(query, respond);
    let reverse = |datagrams: Vec<Vec<u8>>| datagrams.into_iter().rev().collect();
    let repeat = |datagrams: Vec<Vec<u8>>| datagrams.into_iter().flat_map(|one| [one.clone(), one]).collect();
    assert_eq!(probe_with(query, respond, reverse).unwrap().info, whole.info);
    assert_eq!(probe_with(query, respond, repeat).unwrap().info, whole.info);
    assert_eq!(probe_with(query, respond, |datagrams| repeat(reverse(datagrams))).unwrap().info, whole.info);
}

/// Checks that a reply with one of its datagrams cut off at any length, or lost, is a part of the whole one, and names what is
/// missing if anything is.
pub fn assert_cuts_are_harmless(query: ServerQuery, respond: &Server<'_>) {
    let whole = probe(query, respond);
    each_datagram(query, respond, |number, datagram| {
        for length in 0..datagram.len() {
            let cut = |all: &mut Vec<u8>| all.truncate(length);
            let Some(reply) = probe_with(query, respond, at(number, cut)) else { continue };
            assert!(is_part_of(&reply.info, &whole.info), "{length}: {:#?} of {:#?}", reply.info, whole.info);
            assert!(!reply.missing.is_empty() || reply.info == whole.info, "{length}: {reply:?}");
        }
    });
}

/// Checks that a reply with any changed byte is harmless to display.
pub fn assert_changes_are_harmless(query: ServerQuery, respond: &Server<'_>) {
    each_datagram(query, respond, |number, datagram| {
        for offset in 0..datagram.len() {
            for change in [|byte| byte ^ 1, |byte| byte ^ 0x80, |_| 0, |_| 0xff, |byte: u8| byte.wrapping_add(1)] {
                let flip = |all: &mut Vec<u8>| all[offset] = change(all[offset]);
                if let Some(reply) = probe_with(query, respond, at(number, flip)) {
                    assert_is_displayable(&reply.info);
                }
            }
        }
    });
}

/// Calls a function with each datagram of the server, and its number in the exchange.
fn each_datagram(query: ServerQuery, respond: &Server<'_>, mut check: impl FnMut(usize, &[u8])) {
    let mut all = Vec::new();
    probe_with(query, respond, |datagrams| {
        all.extend_from_slice(&datagrams);
        datagrams
    });
    assert!(!all.is_empty());
    for (number, datagram) in all.iter().enumerate() {
        check(number, datagram);
    }
}

/// Changes the datagram with this number in an exchange.
fn at(number: usize, change: impl Fn(&mut Vec<u8>)) -> impl FnMut(Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut next = 0;
    move |mut datagrams| {
        if let Some(datagram) = number.checked_sub(next).and_then(|index| datagrams.get_mut(index)) {
            change(datagram);
        }
        next += datagrams.len();
        datagrams
    }
}

/// Whether each field is one of the whole description, or not there.
fn is_part_of(part: &ServerInfo, whole: &ServerInfo) -> bool {
    fn same<T: PartialEq>(part: &Option<T>, whole: &Option<T>) -> bool {
        part.is_none() || part == whole
    }
    let extension = |part: &Extension, whole: &Extension| {
        part.iter().all(|(name, value)| *value == ExtensionValue::Unknown || whole.get(name) == Some(value))
    };
    let players = |part: &[crate::Player], whole: &[crate::Player]| part.iter().all(|player| whole.contains(player));
    same(&part.name, &whole.name)
        && same(&part.description, &whole.description)
        && same(&part.mode, &whole.mode)
        && same(&part.map, &whole.map)
        && same(&part.version, &whole.version)
        && same(&part.website, &whole.website)
        && same(&part.password, &whole.password)
        && same(&part.players, &whole.players)
        && same(&part.max_players, &whole.max_players)
        && same(&part.bots, &whole.bots)
        && same(&part.spectators, &whole.spectators)
        && part.teams.iter().all(|team| whole.teams.contains(team))
        && part.tags.iter().all(|tag| whole.tags.contains(tag))
        && part.rules.iter().all(|(name, value)| whole.rules.get(name) == Some(value))
        && part.player_list.as_ref().is_none_or(|list| players(list, whole.player_list.as_deref().unwrap_or_default()))
        && part
            .extensions
            .iter()
            .all(|(protocol, fields)| whole.extensions.get(protocol).is_some_and(|all| extension(fields, all)))
}

/// Checks that no text has a control character.
pub fn assert_is_displayable(info: &ServerInfo) {
    let own = [
        &info.name,
        &info.description,
        &info.game,
        &info.game_name,
        &info.mode,
        &info.map,
        &info.version,
        &info.website,
    ];
    let players = info.player_list.iter().flatten();
    let extensions = info.extensions.values().chain(players.clone().map(|player| &player.extension));
    let extensions = extensions.flat_map(Extension::iter).filter_map(|(_, value)| match value {
        ExtensionValue::Text(text) => Some(text),
        _ => None,
    });
    let texts = own.into_iter().flatten().chain(&info.tags).chain(extensions).chain(players.map(|player| &player.name));
    let texts = texts.chain(info.teams.iter().map(|team| &team.name));
    for text in texts.chain(info.rules.iter().flat_map(|(name, value)| [name, value])) {
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}
