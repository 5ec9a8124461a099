//! QuakeWorld through a prober, with replies in the form of MVDSV and of the original server.

use crate::{
    Extension, MissingPart, Player, Protocol, RttMethod,
    protocols::fixture::{Exchange, assert_is_harmless, assert_is_part_of, mutations, reply_of, reply_to, truncations},
};

/// A server of MVDSV with two teams, a bot and a spectator.
const TEAMS: &[u8] =
    b"\xff\xff\xff\xffn\\maxfps\\77\\*version\\MVDSV 0.36\\maxclients\\8\\maxspectators\\4\\needpass\\2\
\\teamplay\\2\\mode\\2on2\\map\\dm3\\hostname\\\x90\xc1\xce\xd4\x91 K\xf4X\x12\\status\\8 min left\\*gamedir\\qw\n\
11 24 13 26 \"\xb1\x12Ad&cf80a&r\" \"base\" 4 4 \"red\" \"h\"\n\
12 -2 0 0 \"/ bro\" \"\" 13 13 \"blue\" \"b\"\n\
15 7 260 999 \"Bob & Co\" \"\" 4 4 \"red\" \"h\"\n\
19 -9999 1 -31 \"\\s\\watcher\" \"\" 0 0 \"lqwc\" \"h\"\n\0";

/// The original server, which ignores the flags.
const OLD: &[u8] = b"\xff\xff\xff\xffn\\*version\\2.30\\map\\start\\hostname\\old\\maxclients\\16\n\
3 5 2 48 \"Ada\" \"\" 4 13\n\0";

#[test]
fn a_server_with_teams_bots_and_spectators_is_described_completely() {
    let mut server = Exchange::new(Protocol::QuakeWorld.players());
    assert_eq!(server.queries(), [b"\xff\xff\xff\xffstatus 151\n"]);
    server.receive(TEAMS);
    let result = server.finish();
    assert_eq!(result.retries, 0);
    let reply = reply_of(result);
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::FirstReply);
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("[ANT] KtX0"));
    assert_eq!((info.game.as_deref(), info.game_name.as_deref()), (Some("qw"), Some("QuakeWorld")));
    assert_eq!((info.map.as_deref(), info.mode.as_deref()), (Some("dm3"), Some("2on2")));
    assert_eq!((info.version.as_deref(), info.password), (Some("MVDSV 0.36"), Some(false)));
    assert_eq!((info.players, info.bots, info.spectators, info.max_players), (Some(2), Some(1), Some(1), Some(8)));
    assert_eq!(info.rules["maxfps"], "77");
    let own = &info.extensions[&Protocol::QuakeWorld];
    assert_eq!(own.number("max_spectators"), Some(4));
    assert_eq!(info.teams.iter().map(|team| (team.id, &*team.name)).collect::<Vec<_>>(), [(0, "red"), (1, "blue")]);
    let player = |name: &str, team, score, minutes: u32, ping| Player {
        name: name.into(),
        team: Some(team),
        score: Some(score),
        duration_s: Some(minutes * 60),
        ping_ms: Some(ping),
        ..Player::default()
    };
    let with_skin =
        Player { extension: Extension::from([("skin", "base".to_owned().into())]), ..player("10Ada", 0, 24, 13, 26) };
    let watcher = Player { team: None, score: None, spectator: true, ..player("watcher", 0, 0, 1, 31) };
    let expected = [with_skin, player("/ bro", 1, -2, 0, 0), player("Bob & Co", 0, 7, 260, 999), watcher];
    assert_eq!(info.player_list.unwrap(), expected);
}

/// Replies of MVDSV 1.20 with two players and a spectator to `status 151` and `status`.
const MVDSV: &[u8] = include_bytes!("../../../tests/captures/quakeworld/mvdsv-status.bin");
const MVDSV_WITHOUT_FLAGS: &[u8] = include_bytes!("../../../tests/captures/quakeworld/mvdsv-status-without-flags.bin");

#[test]
fn a_real_server_is_described_completely() {
    let reply = reply_of(reply_to(Protocol::QuakeWorld.players(), [MVDSV]));
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("KsX test"), Some("testmap")));
    assert_eq!((info.game.as_deref(), info.version.as_deref()), (Some("qw"), Some("MVDSV 1.20-dev")));
    assert_eq!((info.players, info.bots, info.spectators, info.max_players), (Some(2), Some(0), Some(1), Some(8)));
    let list = info.player_list.as_ref().unwrap();
    let described = list.iter().map(|player| {
        let team = player.team.and_then(|team| info.team_name(team));
        (&*player.name, player.score, player.ping_ms, team, player.spectator)
    });
    let expected = [
        ("[Ada]", Some(0), Some(999), Some("red"), false),
        ("Bob & bo", Some(0), Some(999), Some("blue"), false),
        ("watcher", None, Some(999), None, true),
    ];
    assert!(described.eq(expected), "{list:?}");
    let info = reply_of(reply_to(Protocol::QuakeWorld.players(), [MVDSV_WITHOUT_FLAGS])).info;
    assert_eq!((info.players, info.bots, info.player_list.unwrap().len()), (Some(2), None, 2));
}

#[test]
fn hexenworld_has_one_more_byte() {
    let reply = reply_of(reply_to(Protocol::QuakeWorld.players(), [[b"\xff", OLD].concat()]));
    assert!(reply.is_complete());
    assert_eq!((reply.info.game.as_deref(), reply.info.game_name.as_deref()), (Some("hw"), Some("HexenWorld")));
    assert_eq!(reply.info.player_list.unwrap()[0].name, "Ada");
}

#[test]
fn an_old_server_says_nothing_of_spectators_and_bots() {
    let info = reply_of(reply_to(Protocol::QuakeWorld.info(), [OLD])).info;
    assert_eq!((info.players, info.bots, info.spectators, info.max_players), (Some(1), None, None, Some(16)));
    assert_eq!((info.password, info.teams.len()), (None, 0));
    assert_eq!(info.player_list.unwrap()[0].duration_s, Some(120));
}

/// A reply of a server with this number of players, in as many datagrams as it takes.
fn crowd(players: usize) -> Vec<Vec<u8>> {
    let mut datagrams = vec![b"\xff\xff\xff\xffn\\map\\dm2\\maxclients\\255\n".to_vec()];
    for id in 0..players {
        let line = format!("{id} {id} 1 30 \"player {id}\" \"\" 4 4 \"x\" \"h\"\n");
        if datagrams.last().unwrap().len() + line.len() > 8_000 {
            datagrams.push(b"\xff\xff\xff\xffn".to_vec());
        }
        datagrams.last_mut().unwrap().extend_from_slice(line.as_bytes());
    }
    datagrams.iter_mut().for_each(|datagram| datagram.push(0));
    datagrams
}

#[test]
fn the_players_of_a_full_server_come_in_two_datagrams() {
    let datagrams = crowd(255);
    assert_eq!(datagrams.len(), 2);
    let reply = reply_of(reply_to(Protocol::QuakeWorld.players(), &datagrams));
    assert!(reply.is_complete());
    assert_eq!((reply.info.players, reply.info.player_list.unwrap().len()), (Some(255), 255));
    // A copy of the first one is not a continuation.
    let reply = reply_of(reply_to(Protocol::QuakeWorld.players(), [&datagrams[0], &datagrams[0], &datagrams[1]]));
    assert!(reply.is_complete());
    assert_eq!(reply.info.players, Some(255));
}

#[test]
fn a_lost_continuation_is_missing() {
    let datagrams = crowd(255);
    let reply = reply_of(reply_to(Protocol::QuakeWorld.players(), &datagrams[..1]));
    assert_eq!(reply.missing, [MissingPart::Part("status (more players)")]);
    // One that overtakes the beginning is not stored.
    let mut server = Exchange::new(Protocol::QuakeWorld.players());
    server.queries();
    server.receive(&datagrams[1]);
    assert_eq!(server.prober.stats().redundant, 1);
    server.receive(&datagrams[0]);
    server.receive(&datagrams[1]);
    let reply = server.reply();
    assert!(reply.is_complete());
    assert_eq!(reply.info.players, Some(255));
}

#[test]
fn a_reply_that_is_cut_or_changed_says_nothing_wrong() {
    let query = Protocol::QuakeWorld.players();
    for whole in [TEAMS, OLD, MVDSV] {
        let described = reply_of(reply_to(query, [whole])).info;
        for cut in truncations(whole) {
            let result = reply_to(query, [cut]);
            assert_is_harmless(&result);
            if let Some(reply) = result.reply() {
                assert_is_part_of(&reply.info, &described);
                let is_whole = reply.info.player_list == described.player_list;
                assert!(is_whole || !reply.missing.is_empty() || cut.ends_with(b"\n"), "{}", cut.escape_ascii());
            }
        }
        for changed in mutations(whole) {
            assert_is_harmless(&reply_to(query, [changed]));
        }
    }
}

#[test]
fn numbers_out_of_range_are_unknown() {
    let reply = b"\xff\xff\xff\xffn\\maxclients\\99999\\maxspectators\\-1\\needpass\\x\\hostname\\\n1 99999999999 1 1 \"a\" \"\" 1 1\n2 1 -5 1 \"b\" \"\" 1 1\n";
    let info = reply_of(reply_to(Protocol::QuakeWorld.players(), [reply])).info;
    assert_eq!((info.name, info.max_players, info.password), (None, None, None));
    let list = info.player_list.unwrap();
    assert_eq!((list.len(), list[0].duration_s), (1, None));
}
