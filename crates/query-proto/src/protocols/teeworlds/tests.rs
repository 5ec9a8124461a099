//! Teeworlds 0.6 through a prober, with replies of a DDNet server 16.4 to `gie3`.

use crate::{
    ExtensionValue, MissingPart, ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{
        Exchange, assert_changes_are_harmless, assert_cuts_are_harmless, assert_order_is_irrelevant, probe, reply_of,
    },
};

/// Replies with token 55, with 3 clients, and with 16 of 60.
const FEW: &[u8] = include_bytes!("../../../tests/captures/teeworlds/few.bin");
const FULL: &[u8] = include_bytes!("../../../tests/captures/teeworlds/full.bin");

/// The captured reply with the token of a query.
fn with_token(reply: &[u8], query: &[u8]) -> Vec<u8> {
    assert_eq!(query[..14], *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffgie3");
    let token = query[14].to_string();
    [&reply[..14], token.as_bytes(), &reply[15..]].concat()
}

#[test]
fn a_real_server_is_described_completely() {
    let reply = probe(Protocol::Teeworlds.players(), &|query| vec![with_token(FEW, query)]);
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::Echo);
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("captest ö server [3/64]"));
    assert_eq!((info.game.as_deref(), info.game_name.as_deref()), (Some("teeworlds"), Some("Teeworlds")));
    assert_eq!((info.map.as_deref(), info.mode.as_deref()), (Some("Tutorial"), Some("TestDDraceNetwor")));
    assert_eq!((info.version.as_deref(), info.password), (Some("0.6.4, 16.4"), Some(false)));
    assert_eq!((info.players, info.max_players, info.spectators), (Some(3), Some(16), Some(0)));
    let list = info.player_list.unwrap();
    let names: Vec<&str> = list.iter().map(|player| &*player.name).collect();
    assert_eq!(names, ["Ada", "Grace \"G\"", "Müller"]);
    assert!(list.iter().all(|player| player.score.is_none() && !player.spectator), "a race: no times yet");
    assert_eq!(list[0].extension.get("clan"), Some(&ExtensionValue::Text("clan 0".into())));
    let countries: Vec<Option<u16>> = list.iter().map(|player| player.extension.number("country")).collect();
    assert_eq!(countries, [Some(276), None, Some(826)]);
    assert_eq!(info.extensions[&Protocol::Teeworlds].number("max_clients"), Some(16));
}

#[test]
fn a_full_server_lists_as_many_as_fit() {
    let reply = probe(Protocol::Teeworlds.players(), &|query| vec![with_token(FULL, query)]);
    assert!(reply.is_complete());
    assert_eq!(reply.info.player_list.unwrap().len(), 16);
    assert_eq!((reply.info.players, reply.info.max_players), (Some(15), Some(16)), "a place is left for show");
}

#[test]
fn spectators_scores_and_hostile_names_are_shown() {
    let list = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffinf37\x000.6.5\0 a \0dm1\0DM\x001\x001\x0016\x003\x0016\0\
                 a\x1b[31m\0\0-1\0-12\x001\0M\xfcl\0\x00276\x007\x000\0\xe6\x9d\xb1\0\x00392\x000\x000\0";
    let reply = probe(Protocol::Teeworlds.players(), &|query| {
        vec![[&list[..14], query[14].to_string().as_bytes(), &list[15..]].concat()]
    });
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.password), (Some("a"), Some(true)));
    assert_eq!((info.players, info.spectators), (Some(1), Some(2)));
    let list: Vec<_> = info.player_list.iter().flatten().map(|it| (&*it.name, it.score, it.spectator)).collect();
    assert_eq!(list, [("a\u{fffd}[31m", Some(-12), false), ("Mül", Some(7), true), ("東", Some(0), true)]);
}

#[test]
fn a_reply_with_another_token_or_of_another_kind_does_not_count() {
    let mut exchange = Exchange::new(Protocol::Teeworlds.info());
    let query = exchange.queries().remove(0);
    let mut other = query.clone();
    other[14] = !other[14];
    exchange.receive(&with_token(FEW, &other));
    exchange.receive(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffiex+7\x001\0\0");
    assert_eq!((exchange.prober.stats().wrong_echo, exchange.prober.stats().unsolicited), (1, 1));
    assert_eq!(exchange.finish().outcome, ProbeOutcome::TimedOut);
}

#[test]
fn clients_that_were_left_out_are_requested_again() {
    let respond = |query: &[u8], is_loaded: bool| {
        let reply = with_token(FEW, query);
        let clients = reply.windows(4).position(|bytes| bytes == b"Ada\0").unwrap();
        if is_loaded { reply[..clients].to_vec() } else { reply }
    };
    let mut exchange = Exchange::new(Protocol::Teeworlds.players());
    exchange.answer(&|query| vec![respond(query, true)]);
    exchange.wait();
    exchange.answer(&|query| vec![respond(query, false)]);
    let result = exchange.finish();
    assert_eq!(result.retries, 1);
    let reply = reply_of(result);
    assert!(reply.is_complete());
    assert_eq!(reply.info.player_list.unwrap().len(), 3);

    let mut exchange = Exchange::new(Protocol::Teeworlds.players());
    exchange.answer(&|query| vec![respond(query, true)]);
    let reply = reply_of(exchange.finish());
    assert_eq!(reply.missing, [MissingPart::Players { received: 0, expected: Some(3) }]);
    assert_eq!((reply.info.players, reply.info.player_list), (Some(3), None));
}

#[test]
fn an_info_does_not_need_the_clients() {
    for query in [Protocol::Teeworlds.info(), Protocol::Teeworlds.presence()] {
        let reply = probe(query, &|query| vec![with_token(FEW, query)]);
        assert!(reply.is_complete());
    }
}

#[test]
fn damage_is_harmless() {
    let few = |query: &[u8]| vec![with_token(FEW, query)];
    assert_order_is_irrelevant(Protocol::Teeworlds.players(), &few);
    assert_cuts_are_harmless(Protocol::Teeworlds.players(), &few);
    assert_changes_are_harmless(Protocol::Teeworlds.players(), &few);
    assert_changes_are_harmless(Protocol::Teeworlds.players(), &|query| vec![with_token(FULL, query)]);
}
