//! Every query protocol against arbitrary replies and arbitrary queries.
//!
//! A reply ends in one result, takes a bounded number of requests, and is safe to display, whatever it consists of; an answer to
//! a query is bounded.

use rallypoint_limit::Rate;
use rallypoint_machine::Machine;
use rallypoint_query_proto::{
    Detail, Extension, ExtensionValue, Probe, ProbeOutcome, ProbeResult, Prober, ProberConfig, Protocol, Responder,
    ResponderConfig, ServerInfo, ServerQuery,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Maximum length of a datagram of a responder, in bytes: what fits into one over IPv4.
const MAX_ANSWER: usize = 65_507;

/// Maximum number of requests: those of sixteen attempts, and eight more that are caused by replies to each; in Quake 1, also
/// one for each player and each rule.
const MAX_REQUESTS: usize = 16 * (8 + 8) + 255 + 128;

/// The beginning selects the protocol and the detail of the query: the scheme of the protocol and a byte after its colon,
/// which does not depend on the order of protocols, or one byte. Then datagrams of the server, each after its length (two
/// bytes, little-endian) and three bytes (`at`, `from`, `count`): `count` bytes of the latest request, from offset `from` on,
/// replace those of the reply at offset `at`, which is how a reply repeats a token. A length of 0 lets time pass.
pub fn run(data: &[u8]) {
    let Some((&first, mut script)) = data.split_first() else { return };
    let number = usize::from(first);
    let mut protocol = Protocol::ALL[number % Protocol::ALL.len()];
    let mut detail = [Detail::Players, Detail::Info, Detail::Presence][number / Protocol::ALL.len() % 3];
    let named = Protocol::ALL.iter().find_map(|known| {
        let rest = data.strip_prefix(known.as_str().as_bytes())?.strip_prefix(b":")?;
        Some((*known, rest.split_first()?))
    });
    if let Some((known, (letter, rest))) = named {
        protocol = known;
        detail = match letter {
            b'p' | 0 => Detail::Players,
            b'i' | 1 => Detail::Info,
            _ => Detail::Presence,
        };
        script = rest;
    }
    let mut exchange = Exchange::new(ServerQuery { protocol, detail });
    while let Some((&[low, high, at, from, count], rest)) = script.split_first_chunk() {
        let (datagram, rest) = rest.split_at(usize::from(u16::from_le_bytes([low, high])).min(rest.len()));
        script = rest;
        exchange.send();
        if datagram.is_empty() {
            exchange.wait();
            continue;
        }
        exchange.receive(datagram, [at, from, count].map(usize::from));
        answer(protocol, datagram);
    }
    exchange.finish();
}

struct Exchange {
    prober: Prober,
    now: Instant,
    latest: Vec<u8>,
    sent: usize,
    results: Vec<ProbeResult>,
}

fn server() -> SocketAddr {
    ([192, 0, 2, 1], 4000).into()
}

impl Exchange {
    fn new(query: ServerQuery) -> Self {
        let config = ProberConfig { packets_per_second: 1_000_000, ..ProberConfig::default() };
        let mut prober = Prober::new(config, [7; 32]).expect("the configuration is in range");
        prober.enqueue(Probe::new(server(), query)).expect("there is room");
        Self { prober, now: Instant::now(), latest: Vec::new(), sent: 0, results: Vec::new() }
    }

    fn send(&mut self) {
        self.now += Duration::from_millis(1);
        let mut out = Vec::new();
        while self.prober.poll_transmit(self.now, &mut out).is_some() {
            assert!(!out.is_empty(), "an empty datagram makes servers deaf");
            self.sent += 1;
            self.latest = std::mem::take(&mut out);
            self.now += Duration::from_micros(10);
        }
        self.results.extend(std::iter::from_fn(|| self.prober.poll_event()));
    }

    fn receive(&mut self, datagram: &[u8], [at, from, count]: [usize; 3]) {
        let mut datagram = datagram.to_vec();
        for offset in 0..count {
            if let (Some(to), Some(byte)) = (datagram.get_mut(at + offset), self.latest.get(from + offset)) {
                *to = *byte;
            }
        }
        self.prober.handle_datagram(self.now, server(), &datagram);
        self.results.extend(std::iter::from_fn(|| self.prober.poll_event()));
    }

    fn wait(&mut self) {
        if let Some(at) = self.prober.poll_timeout() {
            self.now = self.now.max(at);
            self.prober.handle_timeout(self.now);
        }
    }

    fn finish(mut self) {
        for _ in 0..1_000 {
            self.send();
            if self.prober.is_idle() {
                break;
            }
            self.wait();
        }
        assert!(self.prober.is_idle(), "it comes to an end");
        assert!(self.sent <= MAX_REQUESTS, "{} requests", self.sent);
        assert_eq!(self.results.len(), 1, "one result");
        if let ProbeOutcome::Answered(reply) = &self.results[0].outcome {
            assert_is_displayable(&reply.info);
        }
    }
}

fn assert_is_displayable(info: &ServerInfo) {
    let texts = [
        &info.name,
        &info.description,
        &info.game,
        &info.game_name,
        &info.mode,
        &info.map,
        &info.version,
        &info.website,
    ];
    let extensions = info.extensions.values().flat_map(Extension::iter).filter_map(|(_, value)| match value {
        ExtensionValue::Text(text) => Some(text),
        _ => None,
    });
    let texts = texts.into_iter().flatten().chain(&info.tags).chain(extensions);
    let texts = texts.chain(info.player_list.iter().flatten().map(|player| &player.name));
    let texts = texts.chain(info.teams.iter().map(|team| &team.name));
    let texts = texts.chain(info.mods.iter().flat_map(|one| one.id.iter().chain(&one.name)));
    for text in texts.chain(info.rules.iter().flat_map(|(name, value)| [name, value])) {
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}

/// The datagram as a query to a responder.
fn answer(protocol: Protocol, datagram: &[u8]) {
    let rate = Rate::per_second(1 << 20, 1 << 20);
    let config = ResponderConfig {
        protocols: vec![protocol],
        per_address: rate,
        per_network: rate,
        per_site: rate,
        total: rate,
        max_addresses: 8,
    };
    let info = ServerInfo { name: Some("server".into()), ..ServerInfo::default() };
    let mut responder = Responder::new(config, 7, &info).expect("the configuration is in range");
    let now = Instant::now();
    responder.handle_datagram(now, server(), datagram);
    let mut out = Vec::new();
    while responder.poll_transmit(now, &mut out).is_some() {
        assert!(!out.is_empty() && out.len() <= MAX_ANSWER);
        out.clear();
    }
}
