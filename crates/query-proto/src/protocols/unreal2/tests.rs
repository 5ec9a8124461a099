//! The Unreal Engine 2 through a prober.

use crate::{
    MissingPart, Player, Probe, ProbeOutcome, ProbeResult, Prober, ProberConfig, Protocol, QueryReply, ServerQuery,
};
use rallypoint_machine::Machine;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// A server of Killing Floor with two players, rules in two datagrams.
const INFO: &[u8] =
    b"\x80\0\0\0\0\0\0\0\0\0\x1f\x1e\0\0\0\0\0\0\x13\x1b\xfe@@Bacon \x1b@\xfe\xfeTown\0\x0eKF-BioticsLab\0\
    \x0bKFGameType\0\x02\0\0\0\x06\0\0\0\x01\0\0\0\x0a\0\0\0\0\0\0\0\x20\0\0\0\x044.0\0";
const RULES: [&[u8]; 2] = [
    b"\x80\0\0\0\x01\x0bServerMode\0\x0adedicated\0\x0eServerVersion\0\x051065\0\x08Mutator\0\x10KillingFloorMut\0",
    b"\x80\0\0\0\x01\x08Mutator\0\x0eMutLoginCheck\0\x0dGamePassword\0\x05True\0\x09MaxLives\0\x020\0",
];
const PLAYERS: [&[u8]; 2] = [
    b"\x80\0\0\0\x02\x07\0\0\0\x08\x1b@\xf8@Ada\0\x28\0\0\0\xfd\xff\xff\xff\0\0\0\x20",
    b"\x80\0\0\0\x02\x08\0\0\0\x8c\x43\0\x61\0\x66\0\xe9\0\x20\0\xac\x20\x20\0\x1b\0\x01\0\x01\0\x01\0\0\0\
        \0\0\0\0\x05\0\0\0\0\0\0\x40",
];

fn server() -> SocketAddr {
    ([192, 0, 2, 1], 7_778).into()
}

struct Exchange {
    prober: Prober,
    now: Instant,
}

impl Exchange {
    fn new(query: ServerQuery) -> Self {
        let mut prober = Prober::new(ProberConfig::default(), [7; 32]).unwrap();
        prober.enqueue(Probe::new(server(), query)).unwrap();
        Self { prober, now: Instant::now() }
    }

    /// The types of the queries that are sent now.
    fn queries(&mut self) -> Vec<u8> {
        let mut queries = Vec::new();
        let mut out = Vec::new();
        for _ in 0..10 {
            self.now += Duration::from_millis(1);
            while self.prober.poll_transmit(self.now, &mut out).is_some() {
                let query = std::mem::take(&mut out);
                assert_eq!((query.len(), &query[..4]), (5, &[0x79, 0, 0, 0][..]));
                queries.push(query[4]);
            }
        }
        queries
    }

    fn receive(&mut self, reply: &[u8]) -> Vec<u8> {
        self.prober.handle_datagram(self.now, server(), reply);
        self.queries()
    }

    /// Waits for the next queries, or for the end.
    fn retry(&mut self) -> Vec<u8> {
        while self.prober.in_flight() > 0 {
            self.now = self.prober.poll_timeout().unwrap().max(self.now);
            self.prober.handle_timeout(self.now);
            let queries = self.queries();
            if !queries.is_empty() {
                return queries;
            }
        }
        Vec::new()
    }

    fn finish(mut self) -> ProbeResult {
        while self.prober.in_flight() > 0 {
            self.retry();
        }
        self.prober.poll_event().unwrap()
    }
}

fn reply_of(result: ProbeResult) -> QueryReply {
    let ProbeOutcome::Answered(reply) = result.outcome else { panic!("{result:?}") };
    *reply
}

fn reply_with(query: ServerQuery, datagrams: &[&[u8]]) -> QueryReply {
    let mut exchange = Exchange::new(query);
    exchange.queries();
    for datagram in datagrams {
        exchange.receive(datagram);
    }
    reply_of(exchange.finish())
}

#[test]
fn rules_and_players_arrive_in_any_number_of_datagrams() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let mut exchange = Exchange::new(Protocol::Unreal2.players());
        assert_eq!(exchange.queries(), [0]);
        assert_eq!(exchange.receive(INFO), [1, 2]);
        let start = exchange.now;
        for index in order {
            let datagram = [RULES[0], RULES[1], PLAYERS[0], PLAYERS[1]][index];
            assert_eq!(exchange.receive(datagram), [0; 0]);
            assert_eq!(exchange.receive(datagram), [0; 0], "repeated");
        }
        assert_eq!(exchange.retry(), [0; 0], "nothing is missing");
        assert!(exchange.now - start < Duration::from_millis(250));
        let reply = reply_of(exchange.finish());
        assert!(reply.is_complete(), "{:?}", reply.missing);
        assert_eq!(reply.raw.datagrams().count(), 5);
        let info = reply.info;
        assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Bacon Town"), Some("KF-BioticsLab")));
        assert_eq!((info.mode.as_deref(), info.version.as_deref()), (Some("KFGameType"), Some("1065")));
        assert_eq!((info.players, info.max_players, info.password), (Some(2), Some(6), Some(true)));
        assert_eq!(info.rules["ServerMode"], "dedicated");
        let mut mods: Vec<_> = info.mods.into_iter().flat_map(|one| one.id).collect();
        mods.sort();
        assert_eq!(mods, ["KillingFloorMut", "MutLoginCheck"]);
        let player = |name: &str, team, score, ping_ms| Player {
            name: name.into(),
            team: Some(team),
            score: Some(score),
            ping_ms: Some(ping_ms),
            ..Player::default()
        };
        assert_eq!(info.player_list.unwrap(), [player("Ada", 0, -3, 40), player("Café € ", 1, 5, 0)]);
        let own = &info.extensions[&Protocol::Unreal2];
        assert_eq!((own.number("port"), own.number("wave"), own.number("waves")), (Some(7_711), Some(1), Some(10)));
        assert_eq!(own.text("skill"), Some("4.0"));
    }
}

#[test]
fn lost_players_are_requested_again_and_then_named() {
    let mut exchange = Exchange::new(Protocol::Unreal2.players());
    exchange.queries();
    exchange.receive(INFO);
    exchange.receive(RULES[0]);
    exchange.receive(PLAYERS[0]);
    assert_eq!(exchange.retry(), [2]);
    exchange.receive(PLAYERS[0]);
    assert_eq!(exchange.retry(), [2]);
    assert_eq!(exchange.retry(), [0; 0]);
    let reply = reply_of(exchange.finish());
    assert_eq!(reply.missing, [MissingPart::Players { received: 1, expected: Some(2) }]);
    let reply = reply_with(Protocol::Unreal2.players(), &[INFO]);
    assert_eq!(reply.missing.len(), 2);
    assert_eq!(reply.info.player_list, None);
}

#[test]
fn an_empty_server_has_no_list_to_wait_for() {
    let mut empty = INFO.to_vec();
    let at = empty.windows(4).position(|bytes| bytes == [2, 0, 0, 0]).unwrap();
    empty[at] = 0;
    let mut exchange = Exchange::new(Protocol::Unreal2.players());
    exchange.queries();
    assert_eq!(exchange.receive(&empty), [1]);
    exchange.receive(RULES[0]);
    let reply = reply_of(exchange.finish());
    assert!(reply.is_complete());
    assert_eq!((reply.info.players, reply.info.player_list), (Some(0), Some(Vec::new())));
}

#[test]
fn one_datagram_is_enough_for_a_description() {
    for query in [Protocol::Unreal2.info(), Protocol::Unreal2.presence()] {
        let mut exchange = Exchange::new(query);
        exchange.queries();
        assert_eq!(exchange.receive(RULES[0]), [0; 0], "not requested");
        assert_eq!(exchange.receive(INFO), [0; 0]);
        let result = exchange.finish();
        assert_eq!(result.retries, 0);
        let reply = reply_of(result);
        assert!(reply.is_complete());
        assert!(reply.info.rules.is_empty());
    }
}

#[test]
fn every_truncation_and_change_is_harmless() {
    let all = [INFO, RULES[0], RULES[1], PLAYERS[0], PLAYERS[1]];
    let whole = reply_with(Protocol::Unreal2.players(), &all).info;
    for (index, datagram) in all.iter().enumerate() {
        for at in 0..datagram.len() {
            let mut datagrams = all;
            datagrams[index] = &datagram[..at];
            let mut exchange = Exchange::new(Protocol::Unreal2.players());
            exchange.queries();
            datagrams.iter().for_each(|datagram| drop(exchange.receive(datagram)));
            if let ProbeOutcome::Answered(reply) = exchange.finish().outcome {
                let info = reply.info;
                assert!(info.name.is_none() || info.name == whole.name);
                assert!(info.rules.iter().all(|(name, value)| whole.rules.get(name) == Some(value)));
                let known = whole.player_list.as_ref().unwrap();
                assert!(info.player_list.iter().flatten().all(|player| known.contains(player)));
            }
            for change in [0x01, 0x40, 0x80, 0xff] {
                let mut changed = datagram.to_vec();
                changed[at] ^= change;
                let mut datagrams = all;
                datagrams[index] = &changed;
                let mut exchange = Exchange::new(Protocol::Unreal2.players());
                exchange.queries();
                datagrams.iter().for_each(|datagram| drop(exchange.receive(datagram)));
                if let ProbeOutcome::Answered(reply) = exchange.finish().outcome {
                    assert!(reply.info.player_list.is_none_or(|list| list.len() <= 4));
                }
            }
        }
    }
}

#[test]
fn endless_parts_are_not_kept() {
    let mut exchange = Exchange::new(Protocol::Unreal2.players());
    exchange.queries();
    exchange.receive(INFO);
    for number in 0..2_000_u32 {
        let rule = format!("{number:04}");
        exchange.prober.handle_datagram(
            exchange.now,
            server(),
            &[b"\x80\0\0\0\x01\x05", rule.as_bytes(), b"\0\x02x\0"].concat(),
        );
    }
    assert_eq!(exchange.prober.stats().redundant, 2_000 - 128);
    assert_eq!(reply_of(exchange.finish()).info.rules.len(), 128);
}
