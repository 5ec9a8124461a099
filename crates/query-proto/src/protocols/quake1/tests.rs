//! Quake through a prober, with a server in the form of the original one.

use crate::{
    MissingPart, Player, ProbeResult, Protocol,
    protocols::fixture::{Exchange, assert_is_harmless, assert_is_part_of, mutations, reply_of, reply_to, truncations},
};
use rallypoint_wire::query::quake1::Request;
use std::time::Duration;

const RULES: [(&str, &str); 4] = [("sv_gravity", "800"), ("teamplay", "1"), ("fraglimit", "20"), ("deathmatch", "1")];

fn datagram(body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    [&[0x80, 0][..], &(body.len() as u16 + 4).to_be_bytes(), &body].concat()
}

fn server_info(players: u8) -> Vec<u8> {
    datagram(&[b"\x83192.0.2.1:26000\0\x90\xc1\x91da's\0e1m1\0", &[players, 16, 3]])
}

fn player(number: u8) -> Vec<u8> {
    let name = format!("player {number}");
    let colours = if number.is_multiple_of(2) { 0x44 } else { 0xdd };
    let frags = (-3 + i32::from(number)).to_le_bytes();
    let numbers = [&[colours, 0, 0, 0][..], &frags, &(60 + u32::from(number)).to_le_bytes()].concat();
    datagram(&[&[0x84, number], name.as_bytes(), b"\0", &numbers, b"private\0"])
}

fn rule_after(name: &[u8]) -> Vec<u8> {
    let next = if name.is_empty() {
        RULES.first()
    } else {
        let at = RULES.iter().position(|(known, _)| known.as_bytes() == name).unwrap();
        RULES.get(at + 1)
    };
    match next {
        Some((name, value)) => datagram(&[b"\x85", name.as_bytes(), b"\0", value.as_bytes(), b"\0"]),
        None => datagram(&[b"\x85"]),
    }
}

/// The reply to a query of a server with this number of players.
fn answer(query: &[u8], players: u8) -> Option<Vec<u8>> {
    match Request::parse(query).unwrap() {
        Request::Server => Some(server_info(players)),
        Request::HexenServer => None,
        Request::Player(number) => (number < players).then(|| player(number)),
        Request::RuleAfter(name) => Some(rule_after(name)),
    }
}

/// Replies of DarkPlaces (2018-09-08) with `sv_protocolname QUAKE`: the server, two bots, the rules, each after its length.
const DARKPLACES: &[u8] = include_bytes!("../../../tests/captures/quake1/darkplaces-exchange.bin");

#[test]
fn a_real_server_is_described_completely() {
    let mut rest = DARKPLACES;
    let mut replies = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (reply, behind) = behind.split_at(u16::from_le_bytes(*length).into());
        replies.push(reply);
        rest = behind;
    }
    let rules = replies.split_off(3);
    let name = |rule: &[u8]| rule[5..].split(|byte| *byte == 0).next().unwrap().to_vec();
    let (result, queries) = exchange(full_query(), |query| {
        let reply = match Request::parse(query).unwrap() {
            Request::Server | Request::HexenServer => replies[0],
            Request::Player(number) => replies[1 + usize::from(number)],
            Request::RuleAfter(b"") => rules[0],
            Request::RuleAfter(known) => rules[1 + rules.iter().position(|rule| name(rule) == known).unwrap()],
        };
        vec![reply.to_vec()]
    });
    assert_eq!((result.retries, queries), (0, 1 + 2 + 21));
    let reply = reply_of(result);
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("DP test"), Some("testmap")));
    assert_eq!((info.players, info.bots, info.max_players), (Some(0), Some(2), Some(8)));
    assert_eq!((info.rules.len(), &*info.rules["sv_gravity"], &*info.rules["sv_waterfriction"]), (20, "800", "-1"));
    let list = info.player_list.as_ref().unwrap();
    let described: Vec<_> =
        list.iter().map(|player| (&*player.name, player.score, info.team_name(player.team.unwrap()))).collect();
    assert_eq!(described, [("Robot", Some(12), Some("Red")), ("Bo]t", Some(-4), Some("Blue"))]);
}

/// A query of a server that answers each datagram in this way: with replies, in their order.
fn exchange(mut server: Exchange, mut answers: impl FnMut(&[u8]) -> Vec<Vec<u8>>) -> (ProbeResult, usize) {
    let mut queries = 0;
    while server.is_waiting() || queries == 0 {
        let sent = server.queries();
        queries += sent.len();
        if sent.is_empty() {
            server.wait();
        }
        sent.iter().flat_map(|query| answers(query)).for_each(|reply| server.receive(&reply));
    }
    (server.finish(), queries)
}

fn full_query() -> Exchange {
    Exchange::new(Protocol::Quake1.players())
}

#[test]
fn a_server_is_described_completely() {
    let (result, queries) = exchange(full_query(), |query| answer(query, 3).into_iter().collect());
    assert_eq!((result.retries, queries), (0, 1 + 3 + 5));
    let reply = reply_of(result);
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("[A]da's"), Some("e1m1")));
    assert_eq!((info.game.as_deref(), info.mode.as_deref()), (Some("quake"), Some("Deathmatch")));
    assert_eq!((info.players, info.max_players, info.bots), (Some(3), Some(16), None));
    assert_eq!((info.rules.len(), &*info.rules["fraglimit"]), (4, "20"));
    assert_eq!(info.team_name(4), Some("Red"));
    assert_eq!(info.team_name(13), Some("Blue"));
    let list = info.player_list.unwrap();
    let expected =
        Player { name: "player 0".into(), team: Some(4), score: Some(-3), duration_s: Some(60), ..Player::default() };
    assert_eq!((list.len(), &list[0]), (3, &expected));
    assert_eq!(list[1].team, Some(13));
}

#[test]
fn a_description_is_enough_for_its_detail() {
    for query in [Protocol::Quake1.info(), Protocol::Quake1.presence()] {
        let (result, queries) = exchange(Exchange::new(query), |query| answer(query, 3).into_iter().collect());
        assert_eq!(queries, 1);
        let reply = reply_of(result);
        assert!(reply.is_complete());
        assert_eq!((reply.info.players, reply.info.player_list), (Some(3), None));
    }
}

#[test]
fn hexen_has_another_name_for_the_same_queries() {
    let (result, _) = exchange(full_query(), |query| match Request::parse(query).unwrap() {
        Request::Server => Vec::new(),
        Request::HexenServer => vec![datagram(&[b"\x83192.0.2.1:26900\0Hexen\0demo1\0", &[1, 8, 5]])],
        _ => answer(query, 1).into_iter().collect(),
    });
    let reply = reply_of(result);
    assert!(reply.is_complete(), "{:?}", reply.missing);
    assert_eq!((reply.info.game.as_deref(), reply.info.game_name.as_deref()), (Some("hexen2"), Some("Hexen II")));
    assert_eq!(reply.info.player_list.unwrap().len(), 1);
}

#[test]
fn lost_repeated_and_reordered_replies_change_nothing() {
    let mut count = 0;
    let mut late = Vec::new();
    let (result, _) = exchange(full_query(), |query| {
        count += 1;
        let reply = answer(query, 40);
        // One of three is lost, one of three comes late, and twice.
        match count % 3 {
            0 => Vec::new(),
            1 => reply.into_iter().chain(late.drain(..)).collect(),
            _ => {
                late.extend(reply.clone());
                late.extend(reply);
                Vec::new()
            }
        }
    });
    let reply = reply_of(result);
    assert!(reply.is_complete(), "{:?}", reply.missing);
    let list = reply.info.player_list.unwrap();
    let expected: Vec<String> = (0..40).map(|number| format!("player {number}")).collect();
    assert_eq!(list.into_iter().map(|player| player.name).collect::<Vec<_>>(), expected);
    assert_eq!(reply.info.rules.len(), 4);
}

#[test]
fn a_server_with_255_players_is_described_completely() {
    let (result, queries) = exchange(full_query(), |query| answer(query, 255).into_iter().collect());
    assert!(result.retries <= 1 && queries <= 1 + 255 + 5 + 8, "{queries} queries");
    let reply = reply_of(result);
    assert!(reply.is_complete());
    assert_eq!((reply.info.players, reply.info.player_list.unwrap().len()), (Some(255), 255));
}

#[test]
fn a_player_who_leaves_during_the_query_is_not_missing() {
    let mut is_later = false;
    let (result, _) = exchange(full_query(), |query| {
        let players = if is_later { 2 } else { 3 };
        is_later = true;
        answer(query, players).into_iter().collect()
    });
    assert_eq!(result.retries, 1, "the last number is not answered, and the number of players is asked again");
    let reply = reply_of(result);
    assert!(reply.is_complete());
    assert_eq!((reply.info.players, reply.info.player_list.unwrap().len()), (Some(2), 2));
}

#[test]
fn a_server_that_answers_one_query_a_second_is_described_completely() {
    // As DarkPlaces: rules are not limited.
    let mut server = full_query();
    let mut answered_at = None;
    while server.is_waiting() || answered_at.is_none() {
        let sent = server.queries();
        if sent.is_empty() {
            server.wait();
        }
        for query in sent {
            let is_rule = matches!(Request::parse(&query), Some(Request::RuleAfter(_)));
            let is_refused = answered_at.is_some_and(|at| server.now < at + Duration::from_secs(1));
            if is_rule || !is_refused {
                answered_at = if is_rule { answered_at } else { Some(server.now) };
                answer(&query, 3).iter().for_each(|reply| server.receive(reply));
            }
        }
    }
    let reply = server.reply();
    assert!(reply.is_complete(), "{:?}", reply.missing);
    assert_eq!(reply.info.player_list.unwrap().len(), 3);
}

#[test]
fn a_server_that_answers_in_part_is_described_in_part() {
    let (result, _) = exchange(full_query(), |query| match Request::parse(query) {
        Some(Request::Player(1..) | Request::RuleAfter(_)) => Vec::new(),
        _ => answer(query, 3).into_iter().collect(),
    });
    let reply = reply_of(result);
    let players = MissingPart::Players { received: 1, expected: Some(3) };
    assert_eq!(reply.missing, [players, MissingPart::Part("rules")]);
    assert_eq!(reply.info.player_list.unwrap().len(), 1);
}

#[test]
fn a_server_whose_rules_do_not_end_is_asked_for_a_bounded_number() {
    let mut number = 0;
    let (result, queries) = exchange(full_query(), |query| match Request::parse(query) {
        Some(Request::RuleAfter(_)) => {
            number += 1;
            vec![datagram(&[b"\x85", format!("rule {number}").as_bytes(), b"\0x\0"])]
        }
        _ => answer(query, 0).into_iter().collect(),
    });
    let reply = reply_of(result);
    assert_eq!(reply.missing, [MissingPart::Part("rules")]);
    assert!(queries < 200 && reply.info.rules.len() == 128, "{queries} queries");
}

#[test]
fn replies_to_nothing_that_was_asked_do_not_count() {
    let mut server = full_query();
    server.queries();
    for reply in [player(0), rule_after(b""), rule_after(b"deathmatch")] {
        server.receive(&reply);
    }
    assert_eq!(server.prober.stats().redundant, 3);
    server.receive(&server_info(1));
    server.receive(&player(1));
    assert_eq!(server.prober.stats().redundant, 4, "there is only number 0");
}

#[test]
fn a_reply_that_is_cut_or_changed_says_nothing_wrong() {
    let query = Protocol::Quake1.players();
    let replies = [server_info(1), player(0), rule_after(b""), rule_after(b"deathmatch")];
    let described = reply_of(reply_to(query, &replies)).info;
    for index in 0..replies.len() {
        let with = |datagram: &[u8]| {
            let mut replies = replies.clone();
            replies[index] = datagram.to_vec();
            reply_to(query, &replies)
        };
        for cut in truncations(&replies[index]) {
            let result = with(cut);
            assert_is_harmless(&result);
            if let Some(reply) = result.reply() {
                assert_is_part_of(&reply.info, &described);
                // Without the first rule, the end of the rules says that there are none.
                assert!(!reply.missing.is_empty() || index == 2);
            }
        }
        for changed in mutations(&replies[index]) {
            assert_is_harmless(&with(&changed));
        }
    }
}
