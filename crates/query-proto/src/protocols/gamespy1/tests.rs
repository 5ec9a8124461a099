//! GameSpy 1 through a prober, with replies in the form of several games.

use crate::{
    MissingPart, Player, ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{Exchange, assert_is_harmless, assert_is_part_of, mutations, reply_of, reply_to, truncations},
};

/// Unreal Tournament, in three datagrams.
const UNREAL: [&[u8]; 3] = [
    b"\\gamename\\ut\\gamever\\451\\hostname\\Ada's \xc4rena\\hostport\\7777\\mapname\\DM-Deck16][\\gametype\\DeathMatchPlus\
\\numplayers\\2\\maxplayers\\16\\gamemode\\openplaying\\password\\False\\queryid\\63.1",
    b"\\timelimit\\20\\player_0\\Ada\\frags_0\\ 12\\ping_0\\ 48\\team_0\\255\\mesh_0\\Male\\ngsecret_0\\true\
\\player_1\\a\\b\\frags_1\\-3\\ping_1\\999\\team_1\\1\\ngsecret_1\\true\\queryid\\63.2",
    b"\\player_2\\Loque\\frags_2\\30\\ping_2\\ 0\\team_2\\1\\ngsecret_2\\bot\\final\\\\queryid\\63.3",
];

/// Battlefield 1942, which sends a player who has left.
const BATTLEFIELD: &[u8] = b"\\gamename\\bfield1942\\gamever\\v1.61\\hostname\\Wake\\mapname\\wake\\numplayers\\2\\maxplayers\\64\
\\password\\1\\teamname_0\\Axis\\teamname_1\\Allied\\playername_0\\Ada\\score_0\\7\\deaths_0\\2\\team_0\\1\\ping_0\\30\
\\playername_3\\Bob\\score_3\\0\\team_3\\2\\ping_3\\60\\playername_4\\Ada\\score_4\\1\\team_4\\1\\ping_4\\1\\queryid\\9.1\\final\\";

#[test]
fn the_datagrams_of_a_reply_may_arrive_in_any_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
        let mut server = Exchange::new(Protocol::GameSpy1.players());
        assert_eq!(server.queries(), [b"\\status\\xserverquery"]);
        order.into_iter().for_each(|index| server.receive(UNREAL[index]));
        let reply = server.reply();
        assert!(reply.is_complete(), "{:?}", reply.missing);
        assert_eq!(reply.round_trip.method, RttMethod::FirstReply);
        let info = reply.info;
        assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Ada's Ärena"), Some("DM-Deck16][")));
        assert_eq!((info.game.as_deref(), info.mode.as_deref()), (Some("ut"), Some("DeathMatchPlus")));
        assert_eq!((info.version.as_deref(), info.password), (Some("451"), Some(false)));
        assert_eq!((info.players, info.bots, info.max_players), (Some(2), Some(1), Some(16)));
        assert_eq!(info.rules["timelimit"], "20");
        let own = &info.extensions[&Protocol::GameSpy1];
        assert_eq!(own.number("game_port"), Some(7_777));
        let player = |name: &str, score, ping, team| Player {
            name: name.into(),
            score: Some(score),
            ping_ms: Some(ping),
            team,
            ..Player::default()
        };
        let expected = [player("Ada", 12, 48, None), player("a\\b", -3, 999, Some(1)), player("Loque", 30, 0, Some(1))];
        assert_eq!(info.player_list.unwrap(), expected);
    }
}

#[test]
fn battlefield_counts_teams_from_1_and_lists_those_who_have_left() {
    let info = reply_of(reply_to(Protocol::GameSpy1.players(), [BATTLEFIELD])).info;
    assert_eq!((info.players, info.bots, info.password), (Some(2), None, Some(true)));
    let list = info.player_list.as_ref().unwrap();
    assert_eq!(
        list.iter().map(|player| (&*player.name, player.score)).collect::<Vec<_>>(),
        [("Ada", Some(7)), ("Bob", Some(0))]
    );
    assert_eq!(info.team_name(list[0].team.unwrap()), Some("Axis"));
    assert_eq!(info.team_name(list[1].team.unwrap()), Some("Allied"));
}

/// netPanzer 0.8.7 with three players, which leaves out the first backslash.
const NETPANZER: &[u8] = include_bytes!("../../../tests/captures/gamespy1/netpanzer-status.bin");

#[test]
fn a_real_server_is_described_completely() {
    let reply = reply_of(reply_to(Protocol::GameSpy1.players(), [NETPANZER]));
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.game.as_deref(), info.name.as_deref()), (Some("netpanzer"), Some("Player774")));
    assert_eq!((info.map.as_deref(), info.mode.as_deref()), (Some("Two clans"), Some("Objective")));
    assert_eq!((info.version.as_deref(), info.password), (Some("0.8.7"), Some(false)));
    assert_eq!((info.players, info.bots, info.max_players), (Some(3), None, Some(8)));
    assert_eq!(info.rules["mapcycle"], "Two clans, Bullet Hole");
    let list = info.player_list.unwrap();
    assert_eq!(list.iter().map(|player| &*player.name).collect::<Vec<_>>(), ["Player85", "Player403", "Player525"]);
    assert_eq!((list[0].score, list[0].extension.number("deaths")), (Some(0), Some(0)));
}

#[test]
fn repeated_datagrams_add_nothing() {
    let mut server = Exchange::new(Protocol::GameSpy1.players());
    server.queries();
    for datagram in [UNREAL[2], UNREAL[2], UNREAL[0], UNREAL[0]] {
        server.receive(datagram);
    }
    assert_eq!(server.prober.stats().redundant, 2);
    server.receive(UNREAL[1]);
    assert!(server.reply().is_complete());
}

/// The datagrams with another number of the reply.
fn of_query(number: &str) -> Vec<Vec<u8>> {
    let renamed =
        |datagram: &&[u8]| String::from_utf8_lossy(datagram).replace("\\63.", &format!("\\{number}.")).into_bytes();
    UNREAL.iter().map(renamed).collect()
}

#[test]
fn the_datagrams_of_two_replies_are_not_mixed() {
    let second = of_query("64");
    let mut server = Exchange::new(Protocol::GameSpy1.players());
    server.queries();
    server.receive(UNREAL[0]);
    server.receive(UNREAL[1]);
    // A retry, whose reply loses the first datagram.
    server.receive(&second[2]);
    server.receive(&second[1]);
    assert!(server.is_waiting());
    server.receive(&second[0]);
    let reply = server.reply();
    assert!(reply.is_complete());
    assert_eq!(reply.info.player_list.unwrap().len(), 3);
    assert_eq!(reply.raw.datagrams().count(), 5);
}

#[test]
fn a_lost_datagram_is_missing() {
    let reply = reply_of(reply_to(Protocol::GameSpy1.players(), [UNREAL[0], UNREAL[2]]));
    let players = MissingPart::Players { received: 1, expected: Some(2) };
    assert_eq!(reply.missing, [MissingPart::Part("status (datagrams)"), players]);
    assert_eq!(reply.info.players, Some(2));
    let reply = reply_of(reply_to(Protocol::GameSpy1.presence(), [UNREAL[1]]));
    assert!(reply.is_complete(), "it is there");
}

#[test]
fn datagrams_without_numbers_count_in_order_of_arrival() {
    let parts: [&[u8]; 2] = [b"\\hostname\\x\\numplayers\\1", b"\\player_0\\Ada\\frags_0\\1\\final\\"];
    let reply = reply_of(reply_to(Protocol::GameSpy1.players(), [parts[0], parts[0], parts[1]]));
    assert!(reply.is_complete());
    assert_eq!((reply.info.name.as_deref(), reply.info.player_list.unwrap().len()), (Some("x"), 1));
    let reply = reply_of(reply_to(Protocol::GameSpy1.players(), [&b"\\hostname\\x\\final\\\\queryid\\7"[..]]));
    assert!(reply.is_complete());
}

#[test]
fn the_last_player_of_a_list_that_is_cut_off_is_missing() {
    let datagram = b"\\numplayers\\2\\player_0\\Ada\\score_0\\1\\ping_0\\2\\player_1\\Gre\\final\\\\queryid\\375.1";
    let reply = reply_of(reply_to(Protocol::GameSpy1.players(), [datagram]));
    assert_eq!(reply.missing, [MissingPart::Players { received: 1, expected: Some(2) }]);
}

#[test]
fn teams_may_have_names_only() {
    let datagram =
        b"\\player_0\\Ada\\team_0\\red\\player_1\\Bob\\team_1\\blue\\player_2\\C\\team_2\\red\\team_t9\\x\\final\\";
    let info = reply_of(reply_to(Protocol::GameSpy1.players(), [datagram])).info;
    let list = info.player_list.as_ref().unwrap();
    let team = |index: usize| info.team_name(list[index].team.unwrap());
    assert_eq!([team(0), team(1), team(2)], [Some("red"), Some("blue"), Some("red")]);
}

#[test]
fn a_server_whose_replies_have_no_end_is_given_up() {
    let mut server = Exchange::new(Protocol::GameSpy1.players());
    server.queries();
    for query in 0..40 {
        for part in 0..80 {
            server.receive(format!("\\key_{part}\\x\\queryid\\{query}.{part}").as_bytes());
        }
    }
    for number in 0..200 {
        server.receive(format!("\\key_{number}\\x").as_bytes());
    }
    let stats = server.prober.stats();
    assert_eq!((stats.malformed, stats.redundant), (40 * 16, 24 * 64 + 200));
    let result = server.finish();
    assert!(matches!(&result.outcome, ProbeOutcome::Answered(reply) if !reply.is_complete()));
}

#[test]
fn a_reply_that_is_cut_or_changed_says_nothing_wrong() {
    let query = Protocol::GameSpy1.players();
    for (parts, index) in
        [(&UNREAL[..], 0), (&UNREAL[..], 1), (&UNREAL[..], 2), (&[BATTLEFIELD][..], 0), (&[NETPANZER][..], 0)]
    {
        let with = |changed: &[u8]| {
            let mut parts = parts.to_vec();
            parts[index] = changed;
            reply_to(query, parts)
        };
        for cut in truncations(parts[index]) {
            let result = with(cut);
            assert_is_harmless(&result);
            // Without the last digits it is another reply, and could be a complete one.
            let has_other_number = cut.len() + 4 >= parts[index].len();
            assert!(
                result.reply().is_none_or(|reply| !reply.is_complete() || has_other_number),
                "{}",
                cut.escape_ascii()
            );
        }
        for changed in mutations(parts[index]) {
            assert_is_harmless(&with(&changed));
        }
    }
    let described = reply_of(reply_to(query, UNREAL)).info;
    for index in 0..UNREAL.len() {
        let others: Vec<_> = (0..UNREAL.len()).filter(|other| *other != index).map(|other| UNREAL[other]).collect();
        assert_is_part_of(&reply_of(reply_to(query, others)).info, &described);
    }
}
