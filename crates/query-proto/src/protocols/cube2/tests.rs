//! Cube 2 through a prober, with replies of a Sauerbraten server (2020 edition) that is empty, and of one with a game.

use crate::{
    MissingPart, ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{
        Exchange, assert_changes_are_harmless, assert_cuts_are_harmless, assert_order_is_irrelevant, probe, reply_of,
    },
};

/// Replies to the token a1b2c3d4 of a server with 8 places, and to the token a1b2c3d4e5f6a7.
const INFO: &[u8] = include_bytes!("../../../tests/captures/cube2/info.bin");
const UPTIME: &[u8] = include_bytes!("../../../tests/captures/cube2/uptime.bin");
const PLAYERS: &[u8] = include_bytes!("../../../tests/captures/cube2/players.bin");
const TEAMS: &[u8] = include_bytes!("../../../tests/captures/cube2/teams.bin");

/// Replies of the same server with a game of two players and a spectator.
const GAME_INFO: &[u8] = include_bytes!("../../../tests/captures/cube2/game-info.bin");
const GAME_UPTIME: &[u8] = include_bytes!("../../../tests/captures/cube2/game-uptime.bin");
const GAME_PLAYERS: [&[u8]; 4] = [
    include_bytes!("../../../tests/captures/cube2/game-players-0.bin"),
    include_bytes!("../../../tests/captures/cube2/game-players-1.bin"),
    include_bytes!("../../../tests/captures/cube2/game-players-2.bin"),
    include_bytes!("../../../tests/captures/cube2/game-players-3.bin"),
];
const GAME_TEAMS: &[u8] = include_bytes!("../../../tests/captures/cube2/game-teams.bin");

/// The server with a game.
fn answer_with_game(query: &[u8]) -> Vec<Vec<u8>> {
    let captures: &[&[u8]] = match query {
        [0x81, ..] => &[GAME_INFO],
        [0, 0, ..] => &[GAME_UPTIME],
        [0, 1, ..] => &GAME_PLAYERS,
        _ => &[GAME_TEAMS],
    };
    captures.iter().map(|capture| [query, &capture[query.len()..]].concat()).collect()
}

/// What follows the query in a captured reply, after the query that is answered.
fn answer(query: &[u8]) -> Vec<Vec<u8>> {
    let capture = match query {
        [0x81, ..] => INFO,
        [0, 0, 1, ..] => UPTIME,
        [0, 1, 0xff, ..] => PLAYERS,
        [0, 2, ..] => TEAMS,
        _ => panic!("{}", query.escape_ascii()),
    };
    vec![[query, &capture[query.len()..]].concat()]
}

fn player(client: u8, name: &[u8], team: &[u8], state: u8) -> Vec<u8> {
    let name = [name, b"\0", team].concat();
    [
        b"\xff\x69\0\xf5",
        &[client, 48][..],
        &name,
        b"\0\xfe\x02\x80\xe8\x03\x01\x2d\x64\0\x06\x02",
        &[state],
        b"\x7f\0\0",
    ]
    .concat()
}

/// A server with a game of two teams.
fn full_server(query: &[u8]) -> Vec<Vec<u8>> {
    let bodies = match query {
        [0x81, ..] => {
            vec![b"\x03\x07\x80\x04\x01\x0c\x80\x2c\x01\x10\xff\x01\x64reissen\0\x0c2Psl\x0cr \xe4\0".to_vec()]
        }
        [0, 0, ..] => vec![b"\xff\x69\x81\0\0\x01\0\xf8".to_vec()],
        [0, 1, ..] => vec![
            b"\xff\x69\0\xf6\0\x05\x07".to_vec(),
            player(0, b"Ada", b"good", 0),
            player(5, b"\x0c3Grace", b"evil", 1),
            player(7, b"\x01\x1bx", b"good", 5),
        ],
        _ => vec![b"\xff\x69\0\x0c\x80\x2c\x01good\0\x03\xffevil\0\xff\xff".to_vec()],
    };
    bodies.iter().map(|body| [query, body].concat()).collect()
}

#[test]
fn a_real_server_is_described_completely() {
    let reply = probe(Protocol::Cube2.players(), &answer);
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::Echo);
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("capx tбst"), "a colour, and a letter of the engine");
    assert_eq!((info.game.as_deref(), info.map, info.mode.as_deref()), (Some("sauerbraten"), None, Some("ffa")));
    assert_eq!((info.players, info.max_players, info.password), (Some(0), Some(8), Some(false)));
    assert_eq!((info.spectators, info.player_list.as_deref(), info.teams), (Some(0), Some(&[][..]), Vec::new()));
    let own = &info.extensions[&Protocol::Cube2];
    assert_eq!((own.number("protocol"), own.number("uptime_s")), (Some(260), Some(9)));
}

#[test]
fn a_real_game_is_described_completely() {
    let reply = probe(Protocol::Cube2.players(), &answer_with_game);
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.map.as_deref(), info.mode.as_deref()), (Some("reissen"), Some("insta ctf")));
    assert_eq!((info.players, info.max_players, info.spectators), (Some(3), Some(8), Some(1)));
    let list: Vec<_> = info.player_list.iter().flatten().map(|it| (&*it.name, it.team, it.spectator)).collect();
    assert_eq!(list, [("Ada", Some(0), false), ("GraÀce", Some(1), false), ("Watcher", Some(1), true)]);
    assert_eq!((&*info.rules["score of good"], &*info.rules["score of evil"]), ("0", "0"));
    let own = &info.extensions[&Protocol::Cube2];
    assert_eq!((own.number("seconds_left"), own.number("uptime_s")), (Some(596), Some(7)));
}

#[test]
fn players_teams_and_scores_are_described() {
    let reply = probe(Protocol::Cube2.players(), &full_server);
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Psl б"), Some("reissen")));
    assert_eq!((info.mode.as_deref(), info.players, info.spectators), (Some("insta ctf"), Some(3), Some(1)));
    let list: Vec<_> = info.player_list.iter().flatten().map(|it| (&*it.name, it.team, it.spectator)).collect();
    assert_eq!(list, [("Ada", Some(0), false), ("Grace", Some(1), false), ("ÀÖx", Some(0), true)]);
    let ada = &info.player_list.as_ref().unwrap()[0];
    assert_eq!((ada.score, ada.ping_ms, ada.rank), (Some(-2), Some(48), Some(2)));
    assert_eq!((ada.extension.number("deaths"), ada.extension.number("accuracy")), (Some(1_000), Some(45)));
    let teams: Vec<_> = info.teams.iter().map(|team| (team.id, &*team.name)).collect();
    assert_eq!(teams, [(0, "good"), (1, "evil")]);
    assert_eq!((&*info.rules["score of good"], &*info.rules["score of evil"]), ("3", "-1"));
    let own = &info.extensions[&Protocol::Cube2];
    assert_eq!((own.number("uptime_s"), own.number("server_mod")), (Some(65_536), Some(-8)));
    assert_eq!(
        (own.switch("paused"), own.number("game_speed"), own.number("seconds_left")),
        (Some(true), Some(100), Some(300))
    );
    assert_eq!(own.get("master_mode"), Some(&"auth".to_owned().into()));
}

#[test]
fn a_lost_player_is_missing_and_lists_are_not_mixed() {
    let mut exchange = Exchange::new(Protocol::Cube2.players());
    exchange.answer(&|query| {
        let mut replies = full_server(query);
        replies.truncate(3);
        replies
    });
    exchange.wait();
    // The second list has the player that was lost, and nothing else.
    exchange.answer(&|query| full_server(query).into_iter().skip(3).collect());
    let reply = reply_of(exchange.finish());
    assert_eq!(reply.missing, [MissingPart::Players { received: 2, expected: Some(3) }]);
    let names: Vec<_> = reply.info.player_list.iter().flatten().map(|player| &*player.name).collect();
    assert_eq!((names, reply.info.spectators), (vec!["Ada", "Grace"], None));
}

#[test]
fn a_server_without_extended_queries_is_described_in_part() {
    let mut exchange = Exchange::new(Protocol::Cube2.players());
    exchange.answer(&|query| if query[0] == 0x81 { full_server(query) } else { Vec::new() });
    let reply = reply_of(exchange.finish());
    let missing: Vec<String> = reply.missing.iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["uptime", "3 of 3 players", "scores of the teams"]);
    assert_eq!((reply.info.players, reply.info.player_list), (Some(3), None));
}

#[test]
fn the_description_is_enough_for_its_detail_and_for_presence() {
    for query in [Protocol::Cube2.info(), Protocol::Cube2.presence()] {
        let mut exchange = Exchange::new(query);
        let queries = exchange.queries();
        assert_eq!(queries.len(), 1);
        exchange.receive(&answer(&queries[0])[0]);
        assert!(reply_of(exchange.finish()).is_complete());
    }
}

#[test]
fn replies_with_another_token_do_not_count() {
    let mut exchange = Exchange::new(Protocol::Cube2.players());
    exchange.queries();
    for capture in [INFO, UPTIME, PLAYERS, TEAMS] {
        exchange.receive(capture);
    }
    assert_eq!(exchange.prober.stats().wrong_echo, 4);
    assert_eq!(exchange.finish().outcome, ProbeOutcome::TimedOut);
}

#[test]
fn damage_is_harmless() {
    let query = Protocol::Cube2.players();
    for server in [answer, answer_with_game, full_server] {
        assert_order_is_irrelevant(query, &server);
        assert_changes_are_harmless(query, &server);
    }
    assert_cuts_are_harmless(query, &answer);
    assert_cuts_are_harmless(query, &answer_with_game);
}

#[test]
fn more_players_than_any_server_has_are_not_kept() {
    let mut exchange = Exchange::new(Protocol::Cube2.players());
    let queries = exchange.queries();
    let query = queries.iter().find(|query| query[1] == 1).unwrap();
    for client in 0..2_000_u16 {
        let [low, high] = client.to_le_bytes();
        let head = [b"\xff\x69\0\xf5", &[0x80, low, high, 1][..]].concat();
        exchange.receive(&[query, &head[..], b"a\0b\0", &[1; 13]].concat());
    }
    assert_eq!(exchange.prober.stats().redundant, 2_000 - 512);
    assert_eq!(reply_of(exchange.finish()).info.player_list.unwrap().len(), 512);
}
