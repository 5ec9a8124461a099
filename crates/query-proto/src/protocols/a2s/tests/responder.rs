//! The responder: it answers only clients that have received their challenge.

use super::*;
use crate::{Responder, ResponderConfig, ServerInfo};
use rallypoint_limit::Rate;
use std::{collections::BTreeMap, net::SocketAddr, time::Instant};

fn client() -> SocketAddr {
    ([192, 0, 2, 2], 4_000).into()
}

fn responder(info: &ServerInfo) -> Responder {
    let rate = Rate::per_second(1 << 20, 1 << 20);
    let config = ResponderConfig {
        protocols: vec![Protocol::A2s],
        per_address: rate,
        per_network: rate,
        total: rate,
        ..ResponderConfig::default()
    };
    Responder::new(config, 7, info).unwrap()
}

fn ask(responder: &mut Responder, now: Instant, from: SocketAddr, query: &[u8]) -> Vec<Vec<u8>> {
    responder.handle_datagram(now, from, query);
    let mut datagrams = Vec::new();
    let mut out = Vec::new();
    while let Some(transmit) = responder.poll_transmit(now, &mut out) {
        assert_eq!(transmit.to, from);
        datagrams.push(std::mem::take(&mut out));
    }
    datagrams
}

/// The reply of a prober that queries a responder.
fn reply_from(info: &ServerInfo) -> QueryReply {
    let mut responder = responder(info);
    let mut exchange = Exchange::new(Protocol::A2s.players());
    loop {
        let queries = exchange.queries();
        if queries.is_empty() {
            break;
        }
        for query in queries {
            let replies = ask(&mut responder, exchange.now, client(), &query);
            replies.iter().for_each(|reply| exchange.receive(reply));
        }
    }
    let result = exchange.finish();
    assert_eq!(result.retries, 0);
    reply_of(result)
}

fn game() -> ServerInfo {
    let player =
        |name: &str, score| Player { name: name.into(), score: Some(score), duration_s: Some(90), ..Player::default() };
    let own = Extension::from([("app_id", 252_490_u32.into()), ("steam_id", "90071992547409920".to_owned().into())]);
    ServerInfo {
        name: Some("Bacon Town – Küche".into()),
        game: Some("bacon".into()),
        game_name: Some("Bacon Game".into()),
        map: Some("kitchen".into()),
        version: Some("1.2".into()),
        password: Some(true),
        players: Some(2),
        bots: Some(1),
        max_players: Some(16),
        tags: vec!["fried".into(), "crispy".into()],
        rules: [("fraglimit".to_owned(), "20".to_owned())].into(),
        player_list: Some(vec![player("Ada", 3), player("Grace", -1)]),
        extensions: [(Protocol::A2s, own)].into(),
        ..ServerInfo::default()
    }
}

#[test]
fn the_responder_says_what_the_game_gave_it() {
    let info = game();
    let reply = reply_from(&info);
    assert!(reply.is_complete());
    let received = reply.info;
    assert_eq!((&received.name, &received.map, &received.version), (&info.name, &info.map, &info.version));
    assert_eq!((&received.game, &received.game_name), (&info.game, &info.game_name));
    assert_eq!((received.players, received.bots, received.max_players), (Some(2), Some(1), Some(16)));
    assert_eq!((received.password, &received.tags, &received.rules), (Some(true), &info.tags, &info.rules));
    assert_eq!(received.player_list, info.player_list);
    let own = &received.extensions[&Protocol::A2s];
    assert_eq!((own.number("app_id"), own.text("steam_id")), (Some(252_490), Some("90071992547409920")));
}

#[test]
fn without_the_right_challenge_a_query_draws_only_a_challenge() {
    let mut responder = responder(&game());
    let now = Instant::now();
    let info = b"\xff\xff\xff\xffTSource Engine Query\0".to_vec();
    let with = |kind: u8, challenge: &[u8]| [b"\xff\xff\xff\xff", &[kind][..], challenge].concat();
    let wrong = [
        info.clone(),
        [&info[..], b"abcd"].concat(),
        with(b'U', &[0xff; 4]),
        with(b'U', &[0; 4]),
        with(b'V', &[0xff; 4]),
        with(b'V', b"abcd"),
    ];
    let mut challenges = Vec::new();
    for query in &wrong {
        let sent = ask(&mut responder, now, client(), query);
        assert_eq!(sent.len(), 1);
        assert!(sent[0].len() == 9 && sent[0].len() <= query.len() && sent[0].starts_with(b"\xff\xff\xff\xffA"));
        challenges.push(sent[0][5..].to_vec());
    }
    assert!(challenges.iter().all(|challenge| *challenge == challenges[0]), "one for all queries");
    assert_eq!(responder.stats().unproven_bytes, 9 * 6);
    let own = &challenges[0];
    for (query, kind) in [([&info[..], own].concat(), b'I'), (with(b'U', own), b'D'), (with(b'V', own), b'E')] {
        let sent = ask(&mut responder, now, client(), &query);
        assert_eq!((sent.len(), sent[0][4]), (1, kind));
        let other = ask(&mut responder, now, ([192, 0, 2, 3], 4_000).into(), &query);
        assert_eq!((other.len(), other[0].len()), (1, 9), "the challenge of another client");
        let later = ask(&mut responder, now + Duration::from_secs(61), client(), &query);
        assert_eq!((later.len(), later[0].len()), (1, 9), "a challenge of a minute ago");
    }
    assert_eq!(responder.stats().unproven_bytes, 9 * (6 + 3 + 3), "what follows a challenge is proven");
    for other in
        [&b"\xff\xff\xff\xffU"[..], b"\xff\xff\xff\xffW", b"\xff\xff\xff\xffI", b"\xff\xff\xff\xffgetinfo x", b""]
    {
        assert!(ask(&mut responder, now, client(), other).is_empty(), "{}", other.escape_ascii());
    }
}

#[test]
fn a_full_server_is_answered_in_parts() {
    let player = Player { name: "\u{20ac}".repeat(100), ..Player::default() };
    let rules: BTreeMap<_, _> = (0..2_000).map(|n| (format!("rule {n:04}"), "x".repeat(300))).collect();
    let long = Some("\u{20ac}".repeat(1_000));
    let info = ServerInfo {
        name: long.clone(),
        map: long.clone(),
        game: long.clone(),
        game_name: long.clone(),
        version: long,
        tags: vec!["tag".into(); 200],
        players: Some(1_000),
        player_list: Some(vec![player; 1_000]),
        rules,
        ..ServerInfo::default()
    };
    let reply = reply_from(&info);
    assert!(reply.is_complete());
    assert!(reply.raw.datagrams().all(|datagram| datagram.len() <= 1_400));
    assert_eq!(reply.info.players, Some(255));
    let list = reply.info.player_list.unwrap();
    assert!((100..=255).contains(&list.len()), "{}", list.len());
    assert!((50..200).contains(&reply.info.rules.len()), "{}", reply.info.rules.len());
    assert_eq!(reply.info.rules["rule 0000"].len(), 256);
    let config = ResponderConfig::default();
    let largest = reply.raw.datagrams().map(<[u8]>::len).sum::<usize>();
    assert!((largest as u64) < 2 * config.per_address.burst, "each list fits into the budget of an address");
}
