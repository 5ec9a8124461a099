//! Quake 3 through a prober and a responder, and with replies of a real server.

use crate::{
    MissingPart, Player, ProbeOutcome, Protocol, QueryReply, Responder, ResponderConfig, RttMethod, ServerInfo,
    protocols::fixture::{Exchange, reply_of, server},
};
use rallypoint_machine::Machine;
use std::time::{Duration, Instant};

/// Replies of OpenArena 0.8.8 (ioquake3 1.36) to `getinfo xyz` and `getstatus xyz`.
const INFO: &[u8] = include_bytes!("../../../tests/captures/quake3/openarena-info.bin");
const STATUS: &[u8] = include_bytes!("../../../tests/captures/quake3/openarena-status.bin");

/// A reply with this challenge instead of that of the capture.
fn with_challenge(reply: &[u8], query: &[u8]) -> Vec<u8> {
    let challenge = query.rsplit(|byte| *byte == b' ').next().unwrap();
    let at = reply.windows(14).position(|bytes| bytes == b"\\challenge\\xyz").unwrap();
    [&reply[..at + 11], challenge, &reply[at + 14..]].concat()
}

/// The reply of a server with these settings, in both replies, and these lines of players.
fn status_with(settings: &str, players: &[u8]) -> QueryReply {
    let mut exchange = Exchange::new(Protocol::Quake3.players());
    let query = exchange.queries().remove(0);
    let challenge = query.rsplit(|byte| *byte == b' ').next().unwrap().escape_ascii();
    let info = [b"\xff\xff\xff\xff", format!("infoResponse\n\\challenge\\{challenge}{settings}").as_bytes()].concat();
    let head = format!("statusResponse\n\\challenge\\{challenge}{settings}\n");
    exchange.receive(&info);
    exchange.receive(&[b"\xff\xff\xff\xff", head.as_bytes(), players].concat());
    exchange.reply()
}

#[test]
fn a_real_server_is_described_completely() {
    let mut exchange = Exchange::new(Protocol::Quake3.players());
    let queries = exchange.queries();
    assert_eq!(queries.len(), 2);
    assert!(queries[0].starts_with(b"\xff\xff\xff\xffgetstatus "));
    assert!(queries[1].starts_with(b"\xff\xff\xff\xffgetinfo "));
    exchange.receive(&with_challenge(INFO, &queries[1]));
    exchange.receive(&with_challenge(STATUS, &queries[0]));
    let result = exchange.finish();
    assert_eq!(result.retries, 0);
    let reply = reply_of(result);
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::Echo);
    let info = &reply.info;
    assert_eq!(info.name.as_deref(), Some("captest"));
    assert_eq!((info.game.as_deref(), info.game_name.as_deref()), (Some("baseoa"), Some("Quake3Arena")));
    assert_eq!((info.map.as_deref(), info.mode.as_deref()), (Some("oa_dm1"), Some("Free For All")));
    assert_eq!((info.players, info.bots, info.max_players), (Some(0), Some(0), Some(8)));
    assert_eq!((info.password, info.player_list.as_deref()), (Some(false), Some(&[][..])));
    assert!(info.version.as_deref().unwrap().starts_with("ioq3 1.36"));
    assert_eq!(info.rules["fraglimit"], "20");
    assert_eq!(info.rules["voip"], "opus", "from the info");
    assert!(!info.rules.contains_key("challenge"));
    assert_eq!(info.extensions[&Protocol::Quake3].number("protocol"), Some(71));
}

#[test]
fn an_info_is_enough_for_its_detail_and_for_presence() {
    for query in [Protocol::Quake3.info(), Protocol::Quake3.presence()] {
        let mut exchange = Exchange::new(query);
        let queries = exchange.queries();
        assert_eq!(queries.len(), 1);
        exchange.receive(&with_challenge(INFO, &queries[0]));
        let reply = exchange.reply();
        assert!(reply.is_complete());
        assert_eq!(reply.info.player_list, None);
    }
}

#[test]
fn a_reply_without_the_challenge_or_with_another_one_does_not_count() {
    let mut exchange = Exchange::new(Protocol::Quake3.info());
    exchange.queries();
    exchange.receive(INFO);
    exchange.receive(b"\xff\xff\xff\xffinfoResponse\n\\hostname\\forged");
    assert_eq!(exchange.prober.stats().wrong_echo, 2);
    assert_eq!(exchange.finish().outcome, ProbeOutcome::TimedOut);
}

#[test]
fn a_server_that_sends_no_status_is_described_in_part() {
    let mut exchange = Exchange::new(Protocol::Quake3.players());
    let queries = exchange.queries();
    exchange.receive(&with_challenge(INFO, &queries[0]));
    let reply = exchange.reply();
    assert_eq!(reply.missing, [MissingPart::Part("statusResponse (settings and players)")]);
    assert_eq!(reply.info.name.as_deref(), Some("captest"));
    assert_eq!(reply.info.player_list, None);
}

#[test]
fn players_have_scores_and_names_without_colours() {
    let lines = b"12 48 \"^1A^2da ^xf00X\"\n-3 999 \"say \"hi\"\"\n0 0 \"M\xfcller\x1b[31m\"\n";
    let reply = status_with("\\sv_hostname\\^1Red ^^ Arena\\clients\\3\\g_humanplayers\\2\\sv_maxclients\\16", lines);
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("Red ^^ Arena"));
    assert_eq!((info.players, info.bots, info.max_players), (Some(2), Some(1), Some(16)));
    let player = |name: &str, score, ping| Player {
        name: name.into(),
        score: Some(score),
        ping_ms: Some(ping),
        ..Player::default()
    };
    let expected = [player("Ada X", 12, 48), player("say \"hi\"", -3, 999), player("Müller\u{fffd}[31m", 0, 0)];
    assert_eq!(info.player_list.unwrap(), expected);
}

#[test]
fn darkplaces_has_teams_spectators_and_a_font() {
    let settings = "\\gamename\\Xonotic\\modname\\data\\gameversion\\802\\sv_maxclients\\24\\clients\\4\\bots\\1\\mapname\\dance\
\\hostname\\\u{e090}^1A\u{e0c2}\u{e091} 東\\protocol\\3\\qcstatus\\ctf:0.8.2:P59:S20:F5:MXonotic::caps!!:score";
    let lines = "12 48 1 \"^xf00Ada\u{e012}\"\n-666 30 0 \"W\"\n3:20.5 0 2 \"[BOT]x\"\n-5 60 2 \"y\"\n";
    let reply = status_with(settings, lines.as_bytes());
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("[AB] 東"));
    assert_eq!((info.game_name.as_deref(), info.mode.as_deref()), (Some("Xonotic"), Some("Capture The Flag")));
    assert_eq!(info.version.as_deref(), Some("0.8.2"));
    assert_eq!((info.players, info.bots, info.spectators, info.max_players), (Some(2), Some(1), Some(1), Some(24)));
    assert_eq!(info.teams.iter().map(|team| &*team.name).collect::<Vec<_>>(), ["Red", "Blue"]);
    let list = info.player_list.unwrap();
    let described = list.iter().map(|player| (&*player.name, player.score, player.team, player.spectator));
    let expected = [
        ("Ada0", Some(12), Some(1), false),
        ("W", None, None, true),
        ("[BOT]x", None, Some(2), false),
        ("y", Some(-5), Some(2), false),
    ];
    assert!(described.eq(expected), "{list:?}");
}

/// Replies of DarkPlaces (2018-09-08) with two bots and a `qcstatus` to `getinfo xyz` and `getstatus xyz`.
const DARKPLACES_INFO: &[u8] = include_bytes!("../../../tests/captures/quake3/darkplaces-info.bin");
const DARKPLACES_STATUS: &[u8] = include_bytes!("../../../tests/captures/quake3/darkplaces-status.bin");

#[test]
fn a_status_of_darkplaces_is_enough() {
    let mut exchange = Exchange::new(Protocol::Quake3.players());
    let queries = exchange.queries();
    exchange.receive(&with_challenge(DARKPLACES_STATUS, &queries[0]));
    let result = exchange.finish();
    assert_eq!(result.retries, 0);
    let reply = reply_of(result);
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("DP test"), Some("testmap")));
    assert_eq!((info.game_name.as_deref(), info.mode.as_deref()), (Some("DarkPlaces-Quake"), Some("Deathmatch")));
    assert_eq!((info.players, info.bots, info.max_players), (Some(0), Some(2), Some(8)));
    let list = info.player_list.unwrap();
    let described: Vec<_> = list.iter().map(|player| (&*player.name, player.score)).collect();
    assert_eq!(described, [("Robot", Some(12)), ("Bo]t", Some(-4))]);
    // An info that arrives first is not enough.
    let mut exchange = Exchange::new(Protocol::Quake3.players());
    let queries = exchange.queries();
    exchange.receive(&with_challenge(DARKPLACES_INFO, &queries[1]));
    assert_eq!(exchange.prober.in_flight(), 1);
    exchange.receive(&with_challenge(DARKPLACES_STATUS, &queries[0]));
    assert!(exchange.reply().is_complete());
}

#[test]
fn a_status_that_is_cut_off_says_so() {
    let reply = status_with("\\mapname\\q3dm17", b"12 48 \"Ada\"\n3 20 \"Gra");
    assert_eq!(reply.missing.len(), 1);
    assert_eq!(reply.missing[0].to_string(), "everything from player on");
    assert_eq!(reply.info.player_list.unwrap().len(), 1);
}

#[test]
fn hostile_replies_are_counted_and_describe_nothing_wrong() {
    let mut exchange = Exchange::new(Protocol::Quake3.info());
    exchange.queries();
    for reply in [
        &b"\xff\xff\xff\xff"[..],
        b"\xff\xff\xff\xffinfoResponse\n",
        b"\xff\xff\xff\xffprint\nno",
        b"\0",
        &[0xff; 3_000],
    ] {
        exchange.receive(reply);
    }
    let result = exchange.finish();
    assert_eq!(result.malformed, 5);
    assert!(matches!(result.outcome, ProbeOutcome::Malformed(_)));
    // Numbers that are none, and lines that are none of players.
    let settings = "\\clients\\99999\\sv_maxclients\\-1\\g_needpass\\maybe\\mapname\\";
    let info = status_with(settings, b"x y \"a\"\n1 2 3 4 5 \"b\"\n1 2 \"c\"\n").info;
    assert_eq!((info.players, info.max_players, info.map), (Some(1), None, None));
    assert_eq!(info.player_list.unwrap().len(), 1);
}

#[test]
fn the_responder_says_what_the_game_gave_it() {
    let player =
        |name: &str, score| Player { name: name.into(), score: Some(score), ping_ms: Some(40), ..Player::default() };
    let info = ServerInfo {
        name: Some("Bacon \\ \"Town\"".into()),
        game: Some("baseq3".into()),
        game_name: Some("Quake3Arena".into()),
        map: Some("q3dm17".into()),
        version: Some("1.32".into()),
        password: Some(true),
        players: Some(2),
        bots: Some(0),
        max_players: Some(16),
        rules: [("fraglimit".to_owned(), "20".to_owned()), ("MapName".to_owned(), "forged".to_owned())].into(),
        player_list: Some(vec![player("Ada", 3), player("Grace \"G\"", -1)]),
        ..ServerInfo::default()
    };
    let config = ResponderConfig { protocols: vec![Protocol::Quake3], ..ResponderConfig::default() };
    let mut responder = Responder::new(config, 7, &info).unwrap();
    let mut exchange = Exchange::new(Protocol::Quake3.players());
    let mut out = Vec::new();
    for _ in 0..2 {
        exchange.now += Duration::from_millis(1);
        exchange.prober.poll_transmit(exchange.now, &mut out).unwrap();
        responder.handle_datagram(exchange.now, server(), &std::mem::take(&mut out));
        responder.poll_transmit(exchange.now, &mut out).unwrap();
        exchange.receive(&std::mem::take(&mut out));
    }
    let reply = exchange.reply();
    assert!(reply.is_complete());
    let received = reply.info;
    assert_eq!(received.name.as_deref(), Some("Bacon / 'Town'"));
    assert_eq!((&received.game, &received.game_name), (&info.game, &info.game_name));
    assert_eq!((&received.map, &received.version, received.password), (&info.map, &info.version, Some(true)));
    assert_eq!((received.players, received.bots, received.max_players), (Some(2), Some(0), Some(16)));
    assert_eq!(received.rules["fraglimit"], "20");
    assert_eq!(received.player_list.unwrap(), [player("Ada", 3), player("Grace 'G'", -1)]);
}

#[test]
fn a_responder_answers_real_clients_and_no_replies() {
    let config = ResponderConfig { protocols: vec![Protocol::Quake3], ..ResponderConfig::default() };
    let mut responder = Responder::new(config, 7, &ServerInfo::default()).unwrap();
    let now = Instant::now();
    let mut ask = |query: &[u8]| {
        responder.handle_datagram(now, server(), query);
        let mut out = Vec::new();
        responder.poll_transmit(now, &mut out).map(|_| out.escape_ascii().to_string())
    };
    assert!(ask(b"\xff\xff\xff\xffgetinfo xyz").unwrap().contains(r"infoResponse\n\\challenge\\xyz\\hostname\\"));
    assert!(ask(b"\xff\xff\xff\xffgetstatus\n").unwrap().contains(r"statusResponse\n\\sv_hostname\\"), "as qstat asks");
    for other in [INFO, STATUS, b"\xff\xff\xff\xffrcon x", b"\xff\xff\xff\xffgetinfo a\\b", b""] {
        assert_eq!(ask(other), None);
    }
    let long = [&b"\xff\xff\xff\xffgetinfo "[..], &[b'x'; 100]].concat();
    assert_eq!(ask(&long), None);
}

#[test]
fn a_full_server_fits_into_one_message() {
    let player = Player { name: "\u{20ac}".repeat(200), ..Player::default() };
    let rules = (0..2_000).map(|n| (format!("rule {n}"), "x".repeat(300))).collect();
    let info = ServerInfo { player_list: Some(vec![player; 1_000]), rules, ..ServerInfo::default() };
    let config = ResponderConfig { protocols: vec![Protocol::Quake3], ..ResponderConfig::default() };
    let mut responder = Responder::new(config, 7, &info).unwrap();
    let now = Instant::now();
    let query = [&b"\xff\xff\xff\xffgetstatus "[..], &[b'x'; 64]].concat();
    responder.handle_datagram(now, server(), &query);
    let mut out = Vec::new();
    responder.poll_transmit(now, &mut out).unwrap();
    assert!((12_000..=16_384).contains(&out.len()), "{}", out.len());
}
