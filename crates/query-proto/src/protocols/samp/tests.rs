//! San Andreas Multiplayer through a prober, with replies as the documentation of open.mp describes them.

use crate::{
    ExtensionValue, MissingPart, ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{
        self, Exchange, Server, assert_changes_are_harmless, assert_cuts_are_harmless, assert_order_is_irrelevant,
        probe, reply_of,
    },
};

fn long(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text].concat()
}

fn short(text: &[u8]) -> Vec<u8> {
    [&[text.len() as u8], text].concat()
}

/// What follows the query in a reply of a server with this number of players.
fn body(opcode: u8, players: u16) -> Vec<u8> {
    let count = players.to_le_bytes();
    match opcode {
        b'i' => [&[1][..], &count, &200_u16.to_le_bytes(), &long(b"Town \xc4"), &long(b"Freeroam"), &long(b"English")]
            .concat(),
        b'r' => {
            let rules =
                [("lagcomp", "On"), ("mapname", "San Andreas"), ("version", "0.3.7-R2"), ("weburl", "www.sa-mp.com")];
            let rules = rules.iter().flat_map(|(name, value)| [short(name.as_bytes()), short(value.as_bytes())]);
            [&4_u16.to_le_bytes()[..], &rules.flatten().collect::<Vec<u8>>()].concat()
        }
        b'c' => {
            let player = |index| [short(&[b'A' + index as u8]), (i32::from(index) - 1).to_le_bytes().to_vec()].concat();
            [&count[..], &(0..players).flat_map(player).collect::<Vec<u8>>()].concat()
        }
        b'd' => {
            let player = |index| {
                let score = i32::from(index) - 1;
                [&[index as u8][..], &short(&[b'A' + index as u8]), &score.to_le_bytes(), &40_u32.to_le_bytes()]
                    .concat()
            };
            [&count[..], &(0..players).flat_map(player).collect::<Vec<u8>>()].concat()
        }
        b'o' => [long(b"discord.gg/x"), long(b""), long(b"https://example.org/dark.png"), long(b"")].concat(),
        _ => Vec::new(),
    }
}

/// A server that answers these opcodes.
fn server(opcodes: &'static [u8], players: u16) -> Box<Server<'static>> {
    Box::new(move |query| {
        assert_eq!(query[..10], *b"SAMP\xc0\0\x02\x01\xa0\x0f", "the address of the server");
        let opcode = query[10];
        if opcodes.contains(&opcode) { vec![[query, &body(opcode, players)].concat()] } else { Vec::new() }
    })
}

const SAMP: &[u8] = b"ircdp";
const OPEN_MP: &[u8] = b"ircop";

#[test]
fn a_server_is_described_completely() {
    let mut exchange = Exchange::new(Protocol::Samp.players());
    let opcodes: Vec<u8> = exchange.queries().iter().map(|query| query[10]).collect();
    assert_eq!(opcodes, b"irdo");
    let reply = probe(Protocol::Samp.players(), &*server(SAMP, 2));
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.mode.as_deref()), (Some("Town Ä"), Some("Freeroam")));
    assert_eq!((info.map.as_deref(), info.version.as_deref()), (Some("San Andreas"), Some("0.3.7-R2")));
    assert_eq!((info.website.as_deref(), info.password), (Some("www.sa-mp.com"), Some(true)));
    assert_eq!((info.players, info.max_players), (Some(2), Some(200)));
    let list: Vec<_> = info.player_list.iter().flatten().map(|it| (&*it.name, it.score, it.ping_ms)).collect();
    assert_eq!(list, [("A", Some(-1), Some(40)), ("B", Some(0), Some(40))]);
    assert_eq!(info.rules["lagcomp"], "On");
    let own = &info.extensions[&Protocol::Samp];
    assert_eq!(own.get("language"), Some(&ExtensionValue::Text("English".into())));
    assert_eq!(own.get("open_mp"), Some(&ExtensionValue::Unknown));
}

#[test]
fn open_mp_is_recognized_and_lists_its_players_in_the_other_way() {
    let reply = probe(Protocol::Samp.players(), &*server(OPEN_MP, 2));
    assert!(reply.is_complete());
    let list: Vec<_> = reply.info.player_list.iter().flatten().map(|it| (&*it.name, it.score, it.ping_ms)).collect();
    assert_eq!(list, [("A", Some(-1), None), ("B", Some(0), None)]);
    let own = &reply.info.extensions[&Protocol::Samp];
    assert_eq!(
        (own.switch("open_mp"), own.get("discord")),
        (Some(true), Some(&ExtensionValue::Text("discord.gg/x".into())))
    );
}

#[test]
fn a_server_that_has_the_short_list_only_is_asked_for_it_later() {
    let mut exchange = Exchange::new(Protocol::Samp.players());
    exchange.answer(&*server(b"irc", 3));
    exchange.wait();
    exchange.answer(&*server(b"irc", 3));
    let result = exchange.finish();
    assert_eq!(result.retries, 1);
    assert_eq!(reply_of(result).info.player_list.unwrap().len(), 3);
}

#[test]
fn no_list_is_expected_of_empty_and_of_large_servers() {
    let empty = probe(Protocol::Samp.players(), &*server(b"ir", 0));
    assert!(empty.is_complete());
    assert_eq!(empty.info.player_list.as_deref(), Some(&[][..]));
    let large = probe(Protocol::Samp.players(), &*server(b"ir", 101));
    assert_eq!(large.missing, [MissingPart::Players { received: 0, expected: Some(101) }]);
    assert_eq!((large.info.players, large.info.player_list), (Some(101), None));
}

#[test]
fn what_does_not_arrive_is_named() {
    let mut exchange = Exchange::new(Protocol::Samp.players());
    exchange.answer(&*server(b"d", 2));
    let reply = reply_of(exchange.finish());
    assert_eq!(reply.missing, [MissingPart::Part("i (info)"), MissingPart::Part("r (rules)")]);
    assert_eq!(reply.info.player_list.unwrap().len(), 2);
}

#[test]
fn presence_takes_a_ping_with_the_right_token() {
    let reply = probe(Protocol::Samp.presence(), &*server(b"p", 0));
    assert_eq!(reply.round_trip.method, RttMethod::Echo);
    let mut exchange = Exchange::new(Protocol::Samp.presence());
    exchange.queries();
    exchange.receive(b"SAMP\xc0\0\x02\x01\xa0\x0fp\x01\x02\x03\x04");
    assert_eq!(exchange.prober.stats().wrong_echo, 1);
    assert_eq!(exchange.finish().outcome, ProbeOutcome::TimedOut);
    // Only descriptions are answered: those are requested from the second attempt on.
    let mut exchange = Exchange::new(Protocol::Samp.presence());
    exchange.answer(&*server(b"i", 0));
    exchange.wait();
    exchange.answer(&*server(b"i", 0));
    assert!(reply_of(exchange.finish()).is_complete());
}

#[test]
fn a_refused_query_names_the_server() {
    let mut exchange = Exchange::new(Protocol::Samp.info());
    let quoted = exchange.queries().remove(0);
    exchange.prober.handle_refused(fixture::server(), b"VCMP\xc0\0\x02\x01\xa0\x0fi");
    exchange.prober.handle_refused(fixture::server(), &quoted);
    assert_eq!(exchange.prober.in_flight(), 1, "without a token, one refusal proves nothing");
    exchange.wait();
    exchange.queries();
    exchange.prober.handle_refused(fixture::server(), &quoted);
    assert_eq!(exchange.finish().outcome, ProbeOutcome::Refused);
}

#[test]
fn damage_is_harmless() {
    for opcodes in [SAMP, OPEN_MP] {
        assert_order_is_irrelevant(Protocol::Samp.players(), &*server(opcodes, 2));
        assert_cuts_are_harmless(Protocol::Samp.players(), &*server(opcodes, 2));
        assert_changes_are_harmless(Protocol::Samp.players(), &*server(opcodes, 2));
    }
    assert_changes_are_harmless(Protocol::Samp.players(), &*server(SAMP, 60));
}
