//! A2S through a prober: the order of queries, and what replies become.

mod mutations;
mod responder;
mod split;

use crate::{
    Extension, ExtensionValue, MissingPart, Player, ProbeOutcome, Protocol, QueryReply, RttMethod, ServerQuery,
    protocols::fixture::{Exchange, assert_is_harmless, reply_of, reply_to},
};
use rallypoint_machine::Machine;
use std::time::Duration;

/// Queries as they are sent.
const INFO: &[u8] = b"\xff\xff\xff\xffTSource Engine Query\x00";
const PLAYERS: &[u8] = b"\xff\xff\xff\xffU";
const RULES: &[u8] = b"\xff\xff\xff\xffV";
const NONE: &[u8] = b"\xff\xff\xff\xff";

/// Replies: five clients of whom four are bots, two listed players, and two rules.
const INFO_REPLY: &[u8] =
    b"\xff\xff\xff\xffI\x11Bacon Town\0de_dust\0cstrike\0Counter-Strike: Source\0\xf0\0\x05\x10\x04dl\0\x01\
    1.0.0.22\0\xf1\x87\x69\0\0\0\0\x01\0\x40\x01\x8c\x69TV\0alltalk,nocrits\0\xf0\0\0\0\0\0\0\0";
const PLAYERS_REPLY: &[u8] = b"\xff\xff\xff\xffD\x02\0Ada\0\x0e\0\0\0\0\x80\x00\x44\0\0\xfb\xff\xff\xff\0\0\x80\xbf";
const RULES_REPLY: &[u8] = b"\xff\xff\xff\xffE\x02\0mp_timelimit\x0030\0sv_gravity\x00800\0";

fn challenge(challenge: &[u8; 4]) -> Vec<u8> {
    [b"\xff\xff\xff\xffA", &challenge[..]].concat()
}

/// A query as it is sent with a challenge.
fn with(query: &[u8], challenge: &[u8]) -> Vec<u8> {
    [query, challenge].concat()
}

/// The reply of a server that sends these datagrams.
fn reply_with(query: ServerQuery, datagrams: &[&[u8]]) -> QueryReply {
    reply_of(reply_to(query, datagrams))
}

/// An info with this number of clients and of bots, application and keywords.
fn info_with(players: u8, bots: u8, app: u16, keywords: &[u8]) -> Vec<u8> {
    let [low, high] = app.to_le_bytes();
    let numbers = [low, high, players, 100, bots, b'd', b'w', 0, 0];
    [b"\xff\xff\xff\xffI\x11n\0m\0f\0g\0", &numbers[..], b"1\0\x20", keywords, b"\0"].concat()
}

#[test]
fn one_challenge_serves_all_queries() {
    let mut exchange = Exchange::new(Protocol::A2s.players());
    assert_eq!(exchange.queries(), [INFO]);
    let sent = exchange.deliver(&challenge(b"abcd"));
    assert_eq!(sent, [with(INFO, b"abcd"), with(PLAYERS, b"abcd"), with(RULES, b"abcd")]);
    assert_eq!(exchange.deliver(&challenge(b"abcd")), [b""; 0], "the same challenge again");
    for reply in [RULES_REPLY, PLAYERS_REPLY, INFO_REPLY] {
        assert_eq!(exchange.deliver(reply), [b""; 0]);
    }
    let result = exchange.finish();
    assert_eq!(result.retries, 0);
    let reply = reply_of(result);
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::FirstReply);
    assert_eq!(reply.raw.datagrams().count(), 3, "without the challenge");
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Bacon Town"), Some("de_dust")));
    assert_eq!((info.game.as_deref(), info.game_name.as_deref()), (Some("cstrike"), Some("Counter-Strike: Source")));
    assert_eq!((info.players, info.bots, info.max_players), (Some(1), Some(4), Some(16)));
    assert_eq!((info.version.as_deref(), info.password), (Some("1.0.0.22"), Some(false)));
    assert_eq!(info.tags, ["alltalk", "nocrits"]);
    assert_eq!(info.rules["mp_timelimit"], "30");
    let player = |name: &str, score, duration_s| Player {
        name: name.into(),
        score: Some(score),
        duration_s,
        ..Player::default()
    };
    assert_eq!(info.player_list.unwrap(), [player("Ada", 14, Some(514)), player("", -5, None)]);
    let text = |text: &str| ExtensionValue::Text(text.into());
    let expected = Extension::from([
        ("protocol", 17_u8.into()),
        ("server_type", text("dedicated")),
        ("environment", text("linux")),
        ("vac", true.into()),
        ("app_id", 240_u8.into()),
        ("port", 27_015_u16.into()),
        ("steam_id", text("90071996842377216")),
        ("sourcetv_port", 27_020_u16.into()),
        ("sourcetv_name", text("TV")),
        ("game_id", text("240")),
        ("listed_players", 2_u8.into()),
    ]);
    assert_eq!(info.extensions[&Protocol::A2s], expected);
}

#[test]
fn old_servers_are_asked_one_after_the_other() {
    let mut exchange = Exchange::new(Protocol::A2s.players());
    assert_eq!(exchange.queries(), [INFO]);
    assert_eq!(exchange.deliver(INFO_REPLY), [with(PLAYERS, NONE)]);
    assert_eq!(exchange.deliver(&challenge(b"abcd")), [with(PLAYERS, b"abcd"), with(RULES, b"abcd")]);
    assert_eq!(exchange.deliver(PLAYERS_REPLY), [b""; 0]);
    assert_eq!(exchange.deliver(RULES_REPLY), [b""; 0]);
    assert!(exchange.reply().is_complete());
    // Without any challenge.
    let mut exchange = Exchange::new(Protocol::A2s.players());
    exchange.queries();
    exchange.deliver(INFO_REPLY);
    assert_eq!(exchange.deliver(PLAYERS_REPLY), [with(RULES, NONE)]);
    exchange.deliver(RULES_REPLY);
    assert!(exchange.reply().is_complete());
}

#[test]
fn a_challenge_for_each_query_is_followed() {
    let mut exchange = Exchange::new(Protocol::A2s.players());
    exchange.queries();
    exchange.deliver(&challenge(b"aaaa"));
    exchange.deliver(INFO_REPLY);
    assert_eq!(exchange.deliver(&challenge(b"bbbb")), [with(PLAYERS, b"bbbb"), with(RULES, b"bbbb")]);
    exchange.deliver(PLAYERS_REPLY);
    assert_eq!(exchange.deliver(&challenge(b"cccc")), [with(RULES, b"cccc")]);
    exchange.deliver(RULES_REPLY);
    assert!(exchange.reply().is_complete());
}

#[test]
fn a_server_that_only_sends_challenges_draws_a_bounded_number_of_queries() {
    let mut exchange = Exchange::new(Protocol::A2s.players());
    let mut sent = exchange.queries().len();
    for number in 0..1_000_u32 {
        sent += exchange.deliver(&challenge(&number.to_le_bytes())).len();
        if number % 50 == 0 && exchange.prober.in_flight() > 0 {
            sent += exchange.retries().len();
        }
    }
    assert!(sent <= 20 * 3 + 16 * 3, "{sent}");
    let reply = exchange.reply();
    assert_eq!(reply.info.name, None);
    assert_eq!(reply.missing.len(), 3);
}

#[test]
fn each_detail_sends_what_it_needs() {
    let mut exchange = Exchange::new(Protocol::A2s.info());
    exchange.queries();
    assert_eq!(exchange.deliver(&challenge(b"abcd")), [with(INFO, b"abcd")]);
    exchange.deliver(INFO_REPLY);
    let reply = exchange.reply();
    assert!(reply.is_complete());
    assert_eq!((reply.info.player_list, reply.info.rules.len()), (None, 0));
    for datagram in [&challenge(b"abcd")[..], INFO_REPLY] {
        let reply = reply_with(Protocol::A2s.presence(), &[datagram]);
        assert!(reply.is_complete());
        assert_eq!(reply.info.name.is_some(), datagram == INFO_REPLY);
    }
}

#[test]
fn an_empty_server_is_not_asked_for_players_again() {
    let reply = reply_with(Protocol::A2s.players(), &[&info_with(0, 0, 0, b""), RULES_REPLY]);
    assert!(reply.is_complete());
    assert_eq!(reply.info.player_list, Some(Vec::new()));
}

#[test]
fn a_server_without_players_and_rules_is_given_up_early() {
    let mut exchange = Exchange::new(Protocol::A2s.players());
    exchange.queries();
    exchange.deliver(&challenge(b"abcd"));
    exchange.deliver(INFO_REPLY);
    let start = exchange.now;
    let mut sent = 2;
    while exchange.prober.in_flight() > 0 {
        sent += exchange.retries().len();
    }
    assert_eq!(sent, 2 * 6);
    assert!(exchange.now - start < Duration::from_secs(2), "not the whole deadline");
    let reply = exchange.reply();
    assert_eq!(
        reply.missing.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["the players (A2S_PLAYER)", "the rules (A2S_RULES)"]
    );
    assert_eq!((reply.info.name.as_deref(), reply.info.player_list), (Some("Bacon Town"), None));
}

#[test]
fn rules_may_come_without_players() {
    let reply = reply_with(Protocol::A2s.players(), &[INFO_REPLY, &challenge(b"abcd"), RULES_REPLY]);
    assert_eq!(reply.missing, [MissingPart::Part("the players (A2S_PLAYER)")]);
    assert_eq!(reply.info.rules.len(), 2);
}

#[test]
fn the_ship_has_deaths_and_money() {
    let info = b"\xff\xff\xff\xffI\x07Ship\0batavier\0ship\0The Ship\0\x60\x09\x02\x05\0dl\0\0\x01\x03\x051.0.0.4\0";
    let further = [1, 0, 0, 0, 0xe8, 3, 0, 0, 2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    let players = [PLAYERS_REPLY, &further].concat();
    // Before the info, too.
    for order in [[&info[..], &players, RULES_REPLY], [&players, RULES_REPLY, info]] {
        let reply = reply_with(Protocol::A2s.players(), &[&challenge(b"abcd"), order[0], order[1], order[2]]);
        assert!(reply.is_complete());
        let info = reply.info;
        assert_eq!(info.mode.as_deref(), Some("Elimination"));
        let own = &info.extensions[&Protocol::A2s];
        assert_eq!((own.number("witnesses"), own.number("arrest_seconds")), (Some(3), Some(5)));
        let list = info.player_list.unwrap();
        let of = |player: &Player| [player.extension.number("deaths"), player.extension.number("money")];
        assert_eq!(list.iter().map(of).collect::<Vec<_>>(), [[Some(1), Some(1000)], [Some(2), Some(-1)]]);
    }
    // Without an info, what follows the players is not guessed.
    let reply = reply_with(Protocol::A2s.players(), &[&challenge(b"abcd"), &players, RULES_REPLY]);
    assert_eq!(reply.missing, [MissingPart::Part("the info (A2S_INFO)")]);
    assert_eq!(reply.info.player_list.unwrap().len(), 2);
    assert_eq!(reply.info.players, Some(2));
}

#[test]
fn an_obsolete_info_gives_way_to_a_current_one() {
    let obsolete = b"\xff\xff\xff\xffm192.0.2.7:27015\0Old\0cs_office\0cstrike\0Counter-Strike\0\x03\x0b\x2fDW\x01\
        \x01www.example.org\0\0\0\x07\0\0\0\x10\0\0\0\x01\0\x01\x02";
    let reply = reply_with(Protocol::A2s.info(), &[obsolete]);
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.players, info.bots), (Some("Old"), Some(1), Some(2)));
    assert_eq!((info.password, info.version), (Some(true), None));
    let own = &info.extensions[&Protocol::A2s];
    assert_eq!((own.text("address"), own.text("environment")), (Some("192.0.2.7:27015"), Some("windows")));
    assert_eq!((own.text("mod_website"), own.number("mod_version")), (Some("www.example.org"), Some(7)));
    assert_eq!((own.number("mod_bytes"), own.switch("mod_multiplayer_only")), (Some(16), Some(true)));

    for order in [[&obsolete[..], INFO_REPLY], [INFO_REPLY, obsolete]] {
        let reply = reply_with(Protocol::A2s.players(), &[order[0], order[1], PLAYERS_REPLY, RULES_REPLY]);
        assert!(reply.is_complete());
        assert_eq!(reply.info.name.as_deref(), Some("Bacon Town"));
    }
}

#[test]
fn the_list_tells_how_many_players_there_are() {
    let with = |info: &[u8], list: &[u8]| reply_with(Protocol::A2s.players(), &[info, list, RULES_REPLY]).info;
    // A server that pretends to have 80 players lists two.
    let info = with(&info_with(80, 0, 0, b""), PLAYERS_REPLY);
    assert_eq!((info.players, info.extensions[&Protocol::A2s].number("listed_players")), (Some(80), Some(2)));
    // Rust announces its numbers in tags, because they do not fit.
    let info = with(&info_with(255, 0, 0, b""), PLAYERS_REPLY);
    assert_eq!(info.players, Some(255));
    let mut rust = info_with(255, 0, 0xda4a, b"mp500,cp312,qp7,v2024");
    rust.extend(252_490_u64.to_le_bytes());
    let flags = rust.iter().rposition(|byte| *byte == 0x20).unwrap();
    rust[flags] |= 1;
    let info = with(&rust, PLAYERS_REPLY);
    assert_eq!((info.players, info.max_players), (Some(312), Some(500)));
    // Others list more than 255.
    let mut list = b"\xff\xff\xff\xffD\x2c".to_vec();
    (0..300).for_each(|_| list.extend(b"\0p\0\x01\0\0\0\0\0\0\0"));
    let info = with(&info_with(255, 5, 0, b""), &list);
    assert_eq!((info.players, info.player_list.unwrap().len()), (Some(295), 300));
    // Games that do not count bots as clients.
    assert_eq!(with(&info_with(2, 9, 0, b""), PLAYERS_REPLY).players, Some(2));
}

#[test]
fn lists_that_are_cut_off_name_what_is_missing() {
    let cut = |info: &[u8], players: &[u8], rules: &[u8]| {
        let reply = reply_with(Protocol::A2s.players(), &[info, players, rules]);
        assert_eq!(reply.missing.len(), 1);
        (reply.missing[0].to_string(), reply.info)
    };
    let (missing, info) = cut(INFO_REPLY, &PLAYERS_REPLY[..20], RULES_REPLY);
    assert_eq!((&*missing, info.player_list.unwrap().len()), ("1 of 2 players", 1));
    assert_eq!(info.extensions[&Protocol::A2s].get("listed_players"), None);
    let (missing, info) = cut(INFO_REPLY, PLAYERS_REPLY, &RULES_REPLY[..RULES_REPLY.len() - 2]);
    assert_eq!((&*missing, info.rules.len()), ("everything from value of a rule on", 1));
    let (missing, info) = cut(&INFO_REPLY[..INFO_REPLY.len() - 1], PLAYERS_REPLY, RULES_REPLY);
    assert_eq!((&*missing, info.tags.len()), ("everything from game ID on", 2));
}

#[test]
fn binary_data_in_place_of_rules_is_not_shown() {
    let rules = b"\xff\xff\xff\xffE\x03\0\x01\x02\0\x03\x01\x02\xfe\0\x02\x02\0abc\0allowedBuild\x000\0";
    let reply = reply_with(Protocol::A2s.players(), &[INFO_REPLY, PLAYERS_REPLY, rules]);
    assert!(reply.is_complete());
    assert!(reply.info.rules.into_iter().eq([("allowedBuild".to_owned(), "0".to_owned())]));
}

#[test]
fn texts_are_harmless() {
    let info = "\u{1}\u{7}ff0000Red\u{3} \u{1b}[31mTown\u{202e}";
    let info = [b"\xff\xff\xff\xffI\x11", info.as_bytes(), &INFO_REPLY[16..]].concat();
    let reply = reply_with(Protocol::A2s.info(), &[&info]);
    assert_eq!(reply.info.name.as_deref(), Some("Red \u{fffd}[31mTown\u{fffd}"));
}

#[test]
fn hostile_replies_are_counted() {
    let mut exchange = Exchange::new(Protocol::A2s.info());
    exchange.queries();
    for reply in [
        &b"\xff\xff\xff\xff"[..],
        b"\xff\xff\xff\xffI",
        b"\xff\xff\xff\xffl",
        b"\0",
        &INFO_REPLY[..60],
        &[0xff; 3_000],
        &[0xfe, 0xff, 0xff, 0xff, 0],
    ] {
        assert_eq!(exchange.deliver(reply), [b""; 0]);
    }
    exchange.deliver(PLAYERS_REPLY);
    assert_eq!(exchange.prober.stats().redundant, 1, "players were not requested");
    let result = exchange.finish();
    assert_eq!(result.malformed, 7);
    assert!(matches!(result.outcome, ProbeOutcome::Malformed(_)));
}
