//! Quake 2 through a prober, with replies in the form of its engine.

use crate::{
    MissingPart, Player, ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{Exchange, assert_is_harmless, assert_is_part_of, mutations, reply_of, reply_to, truncations},
};

const STATUS: &[u8] = b"\xff\xff\xff\xffprint\n\\mapname\\q2dm1\\maxclients\\16\\needpass\\1\\gamename\\baseq2\\gamedir\\rocketarena\
\\version\\3.21 x86 Jul 12 2024 Linux\\protocol\\34\\deathmatch\\1\\fraglimit\\30\\hostname\\\x10\xd1\xf5\xe1\xeb\xe5\x11 \x14\n\
12 48 \"\x90\xc1\x91da\"\n-3 999 \"say '\\hi\"\n0 0 \"M\xfc\"\n";

const INFO: &[u8] = b"\xff\xff\xff\xffinfo\n         My Arena    q2dm3  5/ 8\n";

#[test]
fn a_status_describes_a_server_completely() {
    let mut server = Exchange::new(Protocol::Quake2.players());
    assert_eq!(server.queries(), [b"\xff\xff\xff\xffstatus\n"]);
    server.receive(STATUS);
    let reply = server.reply();
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::FirstReply);
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("[Quake] 2"));
    assert_eq!((info.game.as_deref(), info.mode.as_deref()), (Some("rocketarena"), Some("Deathmatch")));
    assert_eq!((info.map.as_deref(), info.password), (Some("q2dm1"), Some(true)));
    assert_eq!(info.version.as_deref(), Some("3.21 x86 Jul 12 2024 Linux"));
    assert_eq!((info.players, info.bots, info.max_players), (Some(3), None, Some(16)));
    assert_eq!(info.rules["fraglimit"], "30");
    assert_eq!(info.extensions[&Protocol::Quake2].number("protocol"), Some(34));
    let player = |name: &str, score, ping| Player {
        name: name.into(),
        score: Some(score),
        ping_ms: Some(ping),
        ..Player::default()
    };
    assert_eq!(info.player_list.unwrap(), [player("[A]da", 12, 48), player("say '\\hi", -3, 999), player("M|", 0, 0)]);
}

/// Replies of Yamagi Quake II 8.71 with two players to `status`, `info 34` and `info 33`.
const YAMAGI_STATUS: &[u8] = include_bytes!("../../../tests/captures/quake2/yamagi-status.bin");
const YAMAGI_INFO: &[u8] = include_bytes!("../../../tests/captures/quake2/yamagi-info.bin");
const YAMAGI_WRONG_VERSION: &[u8] = include_bytes!("../../../tests/captures/quake2/yamagi-info-wrong-version.bin");

#[test]
fn a_real_server_is_described_completely() {
    let reply = reply_of(reply_to(Protocol::Quake2.players(), [YAMAGI_STATUS]));
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Q2test"), Some("testmap")));
    assert_eq!((info.game.as_deref(), info.mode.as_deref()), (Some("baseq2"), Some("Deathmatch")));
    assert_eq!((info.players, info.max_players, info.password), (Some(2), Some(8), Some(true)));
    let list = info.player_list.unwrap();
    assert_eq!(
        list.iter().map(|player| (&*player.name, player.score)).collect::<Vec<_>>(),
        [("[Ada]", Some(0)), ("Bob's", Some(0))]
    );
    let info = reply_of(reply_to(Protocol::Quake2.presence(), [YAMAGI_INFO])).info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Q2test"), Some("testmap")));
    assert_eq!((info.players, info.max_players), (Some(2), Some(8)));
    let info = reply_of(reply_to(Protocol::Quake2.presence(), [YAMAGI_WRONG_VERSION])).info;
    assert_eq!((info.name.as_deref(), info.players), (Some("Q2test"), None));
}

#[test]
fn a_server_that_answers_only_info_is_described_in_part() {
    let mut server = Exchange::new(Protocol::Quake2.players());
    server.queries();
    assert_eq!(server.retries(), [&b"\xff\xff\xff\xffinfo 34\n"[..], b"\xff\xff\xff\xffstatus\n"]);
    server.receive(INFO);
    let reply = server.reply();
    assert_eq!(reply.missing, [MissingPart::Part("status (settings and players)")]);
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("My Arena"), Some("q2dm3")));
    assert_eq!((info.players, info.max_players, info.player_list), (Some(5), Some(8), None));
}

#[test]
fn a_server_of_another_version_is_there() {
    let reply = reply_of(reply_to(Protocol::Quake2.presence(), [&b"\xff\xff\xff\xffinfo\nArena: wrong version\n"[..]]));
    assert!(reply.is_complete());
    assert_eq!((reply.info.name.as_deref(), reply.info.players), (Some("Arena"), None));
}

/// A status with as many players as the engine fits into it.
fn full_status() -> (Vec<u8>, u16) {
    let mut status = b"\xff\xff\xff\xffprint\n\\mapname\\q2dm1\\maxclients\\64\n".to_vec();
    let mut players = 0;
    loop {
        let line = format!("{players} 30 \"player number {players}\"\n");
        if status.len() + line.len() >= 1_384 {
            return (status, players);
        }
        status.extend_from_slice(line.as_bytes());
        players += 1;
    }
}

#[test]
fn players_that_do_not_fit_into_a_status_are_missing() {
    let (status, received) = full_status();
    let mut server = Exchange::new(Protocol::Quake2.players());
    server.queries();
    server.receive(&status);
    assert_eq!(server.queries(), [b"\xff\xff\xff\xffinfo 34\n"], "the number of players");
    server.receive(b"\xff\xff\xff\xffinfo\n           Arena    q2dm1 60/64\n");
    let reply = server.reply();
    assert_eq!(reply.missing, [MissingPart::Players { received, expected: Some(60) }]);
    assert_eq!(reply.info.players, Some(60));
    assert_eq!(reply.info.player_list.unwrap().len(), usize::from(received));
    // All of them fit.
    let complete = format!("\u{c}\n           Arena    q2dm1 {received}/64\n");
    let complete = [b"\xff\xff\xff\xffinfo".as_slice(), &complete.as_bytes()[1..]].concat();
    assert!(reply_of(reply_to(Protocol::Quake2.players(), [&status, &complete])).is_complete());
    // No reply has the number of players.
    let reply = reply_of(reply_to(Protocol::Quake2.players(), [&status]));
    assert_eq!(reply.missing, [MissingPart::Part("info (number of players)")]);
}

#[test]
fn a_reply_that_is_cut_or_changed_says_nothing_wrong() {
    let query = Protocol::Quake2.players();
    for whole in [STATUS, INFO, YAMAGI_STATUS, YAMAGI_INFO] {
        let described = reply_of(reply_to(query, [whole])).info;
        for cut in truncations(whole) {
            let result = reply_to(query, [cut]);
            assert_is_harmless(&result);
            if let Some(reply) = result.reply() {
                assert_is_part_of(&reply.info, &described);
            }
        }
        for changed in mutations(whole) {
            assert_is_harmless(&reply_to(query, [changed]));
        }
    }
}

#[test]
fn repeated_and_malformed_replies_are_counted() {
    let mut server = Exchange::new(Protocol::Quake2.players());
    server.queries();
    for reply in [&b"\xff\xff\xff\xffprint\nYou are banned\n"[..], b"\0", b"", INFO, INFO] {
        server.receive(reply);
    }
    assert_eq!((server.prober.stats().malformed, server.prober.stats().redundant), (3, 1));
    server.receive(STATUS);
    let result = server.finish();
    assert_eq!(result.malformed, 3);
    let reply = reply_of(result);
    // The status is newer; who has left since is not missing.
    assert_eq!(reply.missing, [MissingPart::Players { received: 3, expected: Some(5) }]);
    let silent = Exchange::without_retries(Protocol::Quake2.info()).finish();
    assert_eq!(silent.outcome, ProbeOutcome::TimedOut);
}
