//! The description that a game gives its responder is the one that a prober of that responder returns.

use crate::common;
use common::*;
use proptest::prelude::*;
use rallypoint_machine::Machine;
use rallypoint_query_proto::{
    Extension, Mod, Player, Probe, ProbeOutcome, ProberConfig, Protocol, QueryReply, ServerInfo, ServerQuery, Team,
};
use rallypoint_wire::bloodmasters::GameType;
use std::time::Instant;

fn exchange(info: &ServerInfo, query: ServerQuery) -> QueryReply {
    let mut prober = prober(ProberConfig::default());
    let mut responder = responder(info);
    let mut now = Instant::now();
    prober.enqueue(Probe::new(address(1), query)).unwrap();
    for _ in 0..10 {
        now += ms(10);
        drain(&mut prober, now).iter().for_each(|(_, query)| responder.handle_datagram(now, prober_address(), query));
        drain(&mut responder, now).iter().for_each(|(_, answer)| prober.handle_datagram(now, address(1), answer));
    }
    let Some(ProbeOutcome::Answered(answer)) = prober.poll_event().map(|report| report.outcome) else {
        panic!("no answer")
    };
    *answer
}

/// Text that every field can hold, and that needs no change to be shown.
fn text(length: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![Just('ä'), Just('🎮'), prop::char::range(' ', '~')], 0..length / 4)
        .prop_map(|chars| chars.into_iter().collect())
}

fn ascii(length: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::char::range(' ', ']'), 0..length).prop_map(|chars| chars.into_iter().collect())
}

fn session_extension(revision: u8, engine_revision: u32, version_type: u8, version: u32) -> Extension {
    Extension::from([
        ("revision", revision.into()),
        ("engine_revision", engine_revision.into()),
        ("version_type", version_type.into()),
        ("version", version.into()),
    ])
}

/// A limit of Bloodmasters as it is shown.
fn limit(value: i16, unit: &str) -> String {
    if value > 0 { format!("{value}{unit}") } else { "none".into() }
}

prop_compose! {
    fn session_info()(
        texts in (text(100), text(100), text(127), text(300), text(300)),
        numbers in any::<(u8, u32, u8, u32, u8)>(),
        mods in prop::collection::vec((text(20), text(20)), 0..5),
        tags in prop::collection::vec(text(20), 2..8),
        teams in prop::collection::btree_map(any::<u8>(), (text(80), any::<bool>(), any::<[u8; 3]>()), 0..4),
        players in prop::collection::vec((text(60), any::<(u8, u8, u16, i8)>()), 0..60),
    ) -> ServerInfo {
        let (name, description, game, game_name, map) = texts;
        let (revision, engine_revision, version_type, version, max_players) = numbers;
        // A list of one empty item is received as an empty list (W18).
        let mods = if let [(id, name)] = &mods[..] && (id.is_empty() || name.is_empty()) { Vec::new() } else { mods };
        let mods: Vec<Mod> = mods.into_iter().map(|(id, name)| Mod { id: Some(id), name: Some(name) }).collect();
        ServerInfo {
            name: Some(name),
            description: Some(description),
            game: Some(game),
            game_name: Some(game_name),
            map: Some(map),
            version: ((version_type, version) != (0, 0)).then(|| version.to_string()),
            players: Some(players.len() as u16),
            max_players: Some(max_players.into()),
            mods,
            tags,
            // Teams are reported only if they have players.
            teams: teams.into_iter().filter(|_| !players.is_empty())
                .map(|(id, (name, ranked, color))| Team { id, name, ranked, color }).collect(),
            player_list: Some(players.into_iter().map(|(name, (team, rank, ping, platform))| Player {
                name, team: Some(team), rank: Some(rank), ping_ms: Some(ping.into()), platform: Some(platform),
                ..Player::default()
            }).collect()),
            extensions: [(Protocol::Session, session_extension(revision, engine_revision, version_type, version))].into(),
            ..ServerInfo::default()
        }
    }
}

prop_compose! {
    fn bloodmasters_info()(
        texts in (ascii(300), ascii(300), ascii(300), ascii(300)),
        numbers in any::<(u8, u8, u8, u8)>(),
        rules in any::<(i16, i16, bool)>(),
        password in any::<bool>(),
        clients in prop::collection::vec((ascii(100), 0u8..3, any::<bool>(), any::<i16>()), 0..100),
    ) -> ServerInfo {
        let (name, map, version, website) = texts;
        let (game_type, max_clients, max_players, players) = numbers;
        let players = players.min(clients.len() as u8);
        let list: Vec<Player> = clients.into_iter().map(|(name, team, spectator, ping)| Player {
            name, team: Some(team), spectator, ping_ms: Some(ping.into()), ..Player::default()
        }).collect();
        let (score_limit, time_limit, join_smallest) = rules;
        let team = |id, name: &str, color| Team { id, name: name.into(), ranked: false, color };
        ServerInfo {
            name: Some(name),
            game: Some("bloodmasters".into()),
            game_name: Some("Bloodmasters".into()),
            mode: Some(GameType(game_type).to_string()),
            map: Some(map),
            version: Some(version),
            website: Some(website),
            password: Some(password),
            players: Some(players.into()),
            max_players: Some(max_players.into()),
            spectators: Some((list.len() as u8 - players).into()),
            teams: [team(1, "red", [255, 0, 0]), team(2, "blue", [0, 0, 255])].into_iter()
                .filter(|team| list.iter().any(|player| player.team == Some(team.id))).collect(),
            rules: [("score limit", limit(score_limit, "")), ("time limit", limit(time_limit, " min"))]
                .map(|(name, value)| (name.to_owned(), value)).into(),
            extensions: [(Protocol::Bloodmasters, Extension::from([
                ("protocol", 29_u8.into()),
                ("clients", (list.len() as u8).into()),
                ("max_clients", max_clients.into()),
                ("game_type", game_type.into()),
                ("score_limit", score_limit.into()),
                ("time_limit", time_limit.into()),
                ("join_smallest", join_smallest.into()),
            ]))].into(),
            player_list: Some(list),
            ..ServerInfo::default()
        }
    }
}

proptest! {
    #[test]
    fn by_document_003(info in session_info()) {
        let answer = exchange(&info, SESSION);
        prop_assert!(answer.is_complete());
        prop_assert_eq!(answer.info, info);
    }

    #[test]
    fn by_document_002(info in bloodmasters_info()) {
        let answer = exchange(&info, Protocol::Bloodmasters.info());
        prop_assert!(answer.is_complete());
        prop_assert_eq!(answer.info, info);
    }

    /// Whatever a game's author puts into a text: it is cut, never refused, and what arrives can be shown.
    #[test]
    fn any_text_at_all(name in any::<String>(), player in any::<String>(), repeat in 1usize..100) {
        let name = name.repeat(repeat);
        let player = player.repeat(repeat);
        let info = ServerInfo {
            name: Some(name.clone()),
            description: Some(name.clone()),
            map: Some(name.clone()),
            website: Some(name.clone()),
            tags: vec![name.clone(), player.clone()],
            player_list: Some(vec![named(&player)]),
            ..ServerInfo::default()
        };
        for query in [SESSION, Protocol::Bloodmasters.info()] {
            let answer = exchange(&info, query);
            prop_assert!(answer.is_complete());
            let shown = answer.info.name.unwrap();
            prop_assert!(!shown.contains(char::is_control));
            prop_assert_eq!(answer.info.player_list.unwrap().len(), 1);
        }
    }
}

#[test]
fn b12_colour_codes_are_stripped_from_title_and_names_only() {
    let info = ServerInfo {
        name: Some("^1Red ^2Green".into()),
        website: Some("^1web^2site".into()),
        player_list: Some(vec![named("^1Bob^7by")]),
        ..ServerInfo::default()
    };
    let received = exchange(&info, Protocol::Bloodmasters.info()).info;
    assert_eq!(received.name.as_deref(), Some("Red Green"));
    assert_eq!(received.website.as_deref(), Some("^1web^2site"));
    assert_eq!(received.player_list.unwrap()[0].name, "Bobby");
}

#[test]
fn l5_s3_untrusted_text_is_safe_to_display() {
    let info = ServerInfo { name: Some("red\u{1b}[31m\tText\u{202e}".into()), ..ServerInfo::default() };
    let answer = exchange(&info, INFOS);
    assert_eq!(answer.info.name.as_deref(), Some("red\u{fffd}[31m Text\u{fffd}"));
    let raw = answer.raw.datagrams().nth(1).unwrap();
    assert!(raw.windows(5).any(|bytes| bytes == b"\x1b[31m"), "the bytes as they came are still there");
}

#[test]
fn spectators_are_reported_if_the_protocol_has_them() {
    let watcher = Player { spectator: true, ..named("Watcher") };
    let info = ServerInfo { player_list: Some(vec![watcher, named("Alice")]), ..ServerInfo::default() };
    let received = exchange(&info, SESSION).info;
    assert_eq!((received.players, received.player_list.unwrap().len()), (Some(1), 1));
    let received = exchange(&info, Protocol::Bloodmasters.info()).info;
    assert_eq!((received.players, received.spectators, received.player_list.unwrap().len()), (Some(1), Some(1), 2));
}

#[test]
fn w43_a_version_that_the_game_does_not_give_is_not_shown() {
    let own = |version_type, version| session_extension(0, 0, version_type, version);
    for (session, shown) in [(own(0, 0), None), (own(1, 0), Some("0")), (own(0, 292), Some("292"))] {
        let extensions = [(Protocol::Session, session)].into();
        let sent = ServerInfo { extensions, ..ServerInfo::default() };
        let received = exchange(&sent, INFOS).info;
        assert_eq!((received.version.as_deref(), received.extensions), (shown, sent.extensions));
    }
}
