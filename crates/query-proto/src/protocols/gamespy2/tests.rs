//! GameSpy 2 through a prober, with replies in the form of its library.

use crate::{
    Extension, MissingPart, Player, ProbeOutcome, ProbeResult, Protocol, RttMethod,
    protocols::fixture::{Exchange, assert_is_harmless, assert_is_part_of, mutations, reply_of, truncations},
};

/// What follows the number in the replies with the server, the players and the teams.
const REPLIES: [&[u8]; 3] = [
    b"hostname\0\x1b\xff\x01\x01Ada's \xc4rena\0gamename\0bfvietnam\0gamever\0v1.21\0mapname\0Hue\0gametype\0conquest\0\
hostport\x0015567\0numplayers\x002\0maxplayers\x0064\0password\x001\0timelimit\x000\0\0",
    b"\0\x02player_\0score_\0deaths_\0ping_\0team_\0\0Ada\x0012\x003\x0048\x001\0Bob\0-3\x000\x00999\x002\0",
    b"\0\x02team_t\0score_t\0\0NVA\x00100\0USA\x0090\0",
];

fn full_query() -> Exchange {
    Exchange::new(Protocol::GameSpy2.players())
}

/// A query of a server with these replies.
fn reply_with(bodies: [Option<&[u8]>; 3]) -> ProbeResult {
    let mut server = Exchange::without_retries(Protocol::GameSpy2.players());
    for (query, body) in server.queries().iter().zip(bodies) {
        if let Some(body) = body {
            server.receive(&[b"\0", &query[3..7], body].concat());
        }
    }
    server.finish()
}

#[test]
fn three_replies_describe_a_server_completely_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut server = full_query();
        let queries = server.queries();
        let asked: Vec<_> = queries.iter().map(|query| (&query[..3], &query[7..])).collect();
        let magic = &b"\xfe\xfd\0"[..];
        assert_eq!(asked, [(magic, &b"\xff\0\0"[..]), (magic, b"\0\xff\0"), (magic, b"\0\0\xff")]);
        for index in order {
            server.receive(&[b"\0", &queries[index][3..7], REPLIES[index]].concat());
        }
        let reply = server.reply();
        assert!(reply.is_complete(), "{:?}", reply.missing);
        assert_eq!(reply.round_trip.method, RttMethod::Echo);
        let info = reply.info;
        assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Ada's Ärena"), Some("Hue")));
        assert_eq!((info.game.as_deref(), info.mode.as_deref()), (Some("bfvietnam"), Some("conquest")));
        assert_eq!((info.version.as_deref(), info.password), (Some("v1.21"), Some(true)));
        assert_eq!((info.players, info.bots, info.max_players), (Some(2), None, Some(64)));
        assert_eq!(info.extensions[&Protocol::GameSpy2].number("game_port"), Some(15_567));
        assert_eq!((&*info.rules["score_t1"], &*info.rules["timelimit"]), ("90", "0"));
        assert_eq!([info.team_name(1), info.team_name(2)], [Some("NVA"), Some("USA")]);
        let player = |name: &str, score, deaths: i32, ping, team| Player {
            name: name.into(),
            extension: Extension::from([("deaths", deaths.into())]),
            score: Some(score),
            ping_ms: Some(ping),
            team: Some(team),
            ..Player::default()
        };
        assert_eq!(info.player_list.unwrap(), [player("Ada", 12, 3, 48, 1), player("Bob", -3, 0, 999, 2)]);
    }
}

/// Replies of the sample of GameSpy's library, after the number.
const LIBRARY: [&[u8]; 3] = [
    include_bytes!("../../../tests/captures/gamespy2/qr2-server.bin"),
    include_bytes!("../../../tests/captures/gamespy2/qr2-players.bin"),
    include_bytes!("../../../tests/captures/gamespy2/qr2-teams.bin"),
];

#[test]
fn a_real_server_is_described_completely() {
    let reply = reply_of(reply_with(LIBRARY.map(|datagram| Some(&datagram[5..]))));
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("GameSpy QR2 Sample"), Some("gmtmap1")));
    assert_eq!((info.mode.as_deref(), info.version.as_deref()), (Some("arena"), Some("2.00")));
    assert_eq!((info.players, info.max_players), (Some(3), Some(32)));
    assert_eq!((&*info.rules["gravity"], &*info.rules["avgping_t0"]), ("800", "178"));
    let list = info.player_list.as_ref().unwrap();
    let described = list.iter().map(|player| {
        (
            &*player.name,
            player.score,
            player.ping_ms,
            info.team_name(player.team.unwrap()),
            player.extension.number("deaths"),
        )
    });
    let expected = [
        ("Joe Player", Some(21), Some(371), Some("Blue"), Some(3)),
        ("L33t 0n3", Some(27), Some(100), Some("Blue"), Some(26)),
        ("Raptor", Some(19), Some(26), Some("Blue"), Some(9)),
    ];
    assert!(described.eq(expected), "{list:?}");
}

#[test]
fn the_server_is_enough_for_its_detail() {
    for query in [Protocol::GameSpy2.info(), Protocol::GameSpy2.presence()] {
        let mut server = Exchange::new(query);
        let queries = server.queries();
        assert_eq!(queries.len(), 1);
        server.receive(&[b"\0", &queries[0][3..7], REPLIES[0]].concat());
        let reply = server.reply();
        assert!(reply.is_complete());
        assert_eq!(reply.info.player_list, None);
    }
}

#[test]
fn a_reply_with_another_number_does_not_count() {
    let mut server = full_query();
    let query = server.queries().remove(0);
    let mut forged = [b"\0", &query[3..7], REPLIES[0]].concat();
    forged[2] ^= 1;
    server.receive(&forged);
    server.receive(&[b"\0\0\0\0\x01", REPLIES[0]].concat());
    // The number of the query for players, to which this is no reply.
    forged[2] ^= 1;
    forged[4] |= 3;
    server.receive(&forged);
    assert_eq!(server.prober.stats().wrong_echo, 3);
    assert_eq!(server.finish().outcome, ProbeOutcome::TimedOut);
}

#[test]
fn a_server_that_answers_in_part_is_described_in_part() {
    let reply = reply_of(reply_with([Some(REPLIES[0]), None, None]));
    assert_eq!(reply.missing, [MissingPart::Part("players"), MissingPart::Part("teams")]);
    assert_eq!((reply.info.players, reply.info.player_list), (Some(2), None));
    let reply = reply_of(reply_with([None, Some(REPLIES[1]), Some(REPLIES[2])]));
    assert_eq!(reply.missing, [MissingPart::Part("server")]);
    assert_eq!((reply.info.name, reply.info.players), (None, Some(2)));
}

#[test]
fn players_that_do_not_fit_are_missing() {
    let table = b"\0\x03player_\0score_\0\0Ada\x0012\0Bob\x003\0Cy";
    let reply = reply_of(reply_with([Some(REPLIES[0]), Some(table), Some(b"\0\0")]));
    assert_eq!(reply.missing, [MissingPart::Players { received: 2, expected: Some(3) }]);
    let keys = b"hostname\0x\0mapname\0Hu\0";
    let reply = reply_of(reply_with([Some(keys), Some(b"\0\0"), Some(b"\0\0")]));
    assert_eq!(reply.missing[0].to_string(), "everything from keys on");
    assert_eq!((reply.info.name.as_deref(), reply.info.map), (Some("x"), None));
}

#[test]
fn three_hundred_players_are_described_completely() {
    let names: String = (0..300).map(|number| format!("player {number}\0")).collect();
    let table = [b"\x01\x2cplayer_\0\0", names.as_bytes()].concat();
    let reply = reply_of(reply_with([Some(b"numplayers\x00300\0\0"), Some(&table), Some(b"\0\0")]));
    assert!(reply.is_complete());
    assert_eq!((reply.info.players, reply.info.player_list.unwrap().len()), (Some(300), 300));
}

#[test]
fn a_reply_that_is_cut_or_changed_says_nothing_wrong() {
    let described = reply_of(reply_with(REPLIES.map(Some))).info;
    for index in 0..3 {
        let with = |body: &[u8]| {
            let mut bodies = REPLIES.map(Some);
            bodies[index] = Some(body);
            reply_with(bodies)
        };
        for cut in truncations(REPLIES[index]) {
            let result = with(cut);
            assert_is_harmless(&result);
            let reply = reply_of(result);
            assert_is_part_of(&reply.info, &described);
            // Teams are not counted by anything else.
            assert!(!reply.is_complete() || index == 2, "{}", cut.escape_ascii());
        }
        for changed in mutations(REPLIES[index]) {
            assert_is_harmless(&with(&changed));
        }
    }
}
