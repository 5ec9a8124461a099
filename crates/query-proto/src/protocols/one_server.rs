//! One server whose datagrams a test writes, and a prober that queries it.

use crate::{
    Extension, ExtensionValue, Probe, ProbeOutcome, ProbeResult, Prober, ProberConfig, ProberStats, QueryReply,
    ServerInfo, ServerQuery,
};
use rallypoint_machine::Machine;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

pub fn server() -> SocketAddr {
    ([192, 0, 2, 1], 4_000).into()
}

pub struct OneServer {
    prober: Prober,
    now: Instant,
}

impl OneServer {
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

    pub fn time(&self) -> Instant {
        self.now
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

    /// Lets time pass until something is due: a retry, or the end.
    pub fn wait(&mut self) {
        if let Some(at) = self.prober.poll_timeout() {
            self.now = at.max(self.now);
            self.prober.handle_timeout(self.now);
        }
    }

    /// Lets time pass until something is sent: a retry.
    pub fn retries(&mut self) -> Vec<Vec<u8>> {
        loop {
            self.wait();
            let queries = self.queries();
            if !queries.is_empty() || !self.is_waiting() {
                return queries;
            }
        }
    }

    pub fn is_waiting(&self) -> bool {
        self.prober.in_flight() > 0
    }

    pub fn stats(&self) -> ProberStats {
        self.prober.stats()
    }

    pub fn finish(mut self) -> ProbeResult {
        self.queries();
        while self.is_waiting() {
            self.queries();
            self.wait();
        }
        self.prober.poll_event().unwrap()
    }

    pub fn reply(self) -> QueryReply {
        reply_of(self.finish())
    }
}

pub fn reply_of(result: ProbeResult) -> QueryReply {
    let ProbeOutcome::Answered(reply) = result.outcome else { panic!("{result:?}") };
    *reply
}

/// A server that sends these datagrams, whatever it is asked, in this order.
pub fn reply_to<D: AsRef<[u8]>>(query: ServerQuery, datagrams: impl IntoIterator<Item = D>) -> ProbeResult {
    let mut server = OneServer::without_retries(query);
    server.queries();
    for datagram in datagrams {
        server.receive(datagram.as_ref());
        server.queries();
    }
    server.finish()
}

/// The datagram with each of its ends cut off.
pub fn truncations(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..datagram.len()).map(|length| &datagram[..length])
}

/// The datagram with each of its bytes changed, in several ways.
pub fn mutations(datagram: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    (0..datagram.len()).flat_map(move |index| {
        let byte = datagram[index];
        [byte ^ 1, byte ^ 0x80, !byte, 0, b'\\', byte.wrapping_add(1)].into_iter().map(move |changed| {
            let mut datagram = datagram.to_vec();
            datagram[index] = changed;
            datagram
        })
    })
}

/// Checks that a result is fit to be shown, and bounded by what was received.
pub fn assert_is_harmless(result: &ProbeResult) {
    let ProbeOutcome::Answered(reply) = &result.outcome else { return };
    let info = &reply.info;
    let received = reply.raw.size();
    let extensions = info.extensions.values().flat_map(Extension::iter).filter_map(|(_, value)| match value {
        ExtensionValue::Text(text) => Some(text),
        _ => None,
    });
    let fields = [&info.name, &info.game, &info.game_name, &info.map, &info.mode, &info.version, &info.website];
    let texts = fields.into_iter().flatten().chain(extensions);
    let texts = texts.chain(info.player_list.iter().flatten().map(|player| &player.name));
    let texts = texts.chain(info.teams.iter().map(|team| &team.name));
    for text in texts.chain(info.rules.iter().flat_map(|(key, value)| [key, value])) {
        assert!(!text.contains(char::is_control), "{text:?}");
    }
    assert!(info.player_list.as_ref().is_none_or(|list| list.len() <= received));
    assert!(info.teams.len() <= 256 && info.rules.len() <= received);
}

/// Checks that what a part of a reply says is what the whole one says: nothing is cut off or made up.
pub fn assert_is_part_of(part: &ServerInfo, whole: &ServerInfo) {
    for (one, other) in [
        (&part.name, &whole.name),
        (&part.game, &whole.game),
        (&part.game_name, &whole.game_name),
        (&part.map, &whole.map),
        (&part.mode, &whole.mode),
        (&part.version, &whole.version),
    ] {
        assert!(one.is_none() || one == other, "{one:?} instead of {other:?}");
    }
    assert!(part.password.is_none() || part.password == whole.password);
    assert!(part.max_players.is_none() || part.max_players == whole.max_players, "{:?}", part.max_players);
    for (key, value) in &part.rules {
        assert_eq!(whole.rules.get(key), Some(value), "{key}");
    }
    let players = whole.player_list.as_deref().unwrap_or_default();
    for player in part.player_list.iter().flatten() {
        assert!(players.iter().any(|known| known.name == player.name), "{player:?} is none of {players:?}");
    }
}
