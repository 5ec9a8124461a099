//! DOOM 3, Quake 4 and Quake Wars through a prober, with replies in the form of their servers.

use crate::{
    Extension, MissingPart, Player, ProbeOutcome, ProbeResult, Protocol, RttMethod,
    protocols::fixture::{Exchange, assert_is_harmless, assert_is_part_of, mutations, reply_of, truncations},
};

/// After the token: version 1.41, settings, two players.
const DOOM3: &[u8] = b"\x29\0\x01\0si_version\0DOOM 1.3.1.1304 linux-x86 Jan 16 2007\0si_name\0^1Ada's \xc4rena\0\
si_map\0game/mp/d3dm1\0si_gameType\0Team DM\0si_maxPlayers\x008\0si_usePass\x001\0fs_game\0\0gamename\0baseDOOM-1\0\0\0\
\x00\x30\0\0\x40\0\0^2Ad^3a\0\x03\xe7\x03\0\x40\0\0Bob\0\x20\xff\xff\xff\xff";

/// After the token: version 2.85 with the mark of other companies, and a player with a clan.
const QUAKE4: &[u8] =
    b"\x55\0\x02\x80si_version\0V1.4.2\0si_name\0^c900Q4\0si_map\0mp/q4dm1\0si_maxPlayers\x0016\0\0\0\
\x05\x30\0\0\x40\0\0^idm0Ada\0[x]\0\x20\x05\0\0\0";

/// After the token: version 10.19, the size, settings, a player and a bot.
const QUAKE_WARS: &[u8] =
    b"\x13\0\x0a\0\x75\x03\0\0si_version\0ETQW 1.4.12335\0si_name\0Strogg\0si_map\0maps/valley.entities\0\
si_rules\0sdGameRulesObjective\0si_maxplayers\x0024\0si_needPass\x000\0si_motd\0\0\0\0\
\x00\xb5\0eXa\0\x01^0(x)\0\0\x01\0\0Monkey\0\0\0\x01\x20\x05\0\0\0\x01\x6d\x22\x07\0\x02\0\0";

/// A query of a server with this reply, which begins with as much of the token.
fn reply_with(rest: &[u8], token: usize) -> ProbeResult {
    let mut server = Exchange::without_retries(Protocol::Doom3.players());
    let query = server.queries().remove(0);
    server.receive(&[b"\xff\xffinfoResponse\0", &query[10..10 + token], rest].concat());
    server.finish()
}

#[test]
fn doom3_is_described_completely() {
    let mut server = Exchange::new(Protocol::Doom3.players());
    let queries = server.queries();
    assert!(queries[0].starts_with(b"\xff\xffgetInfo\0") && queries.len() == 1 && queries[0].len() == 18);
    let reply = reply_of(reply_with(DOOM3, 4));
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::Echo);
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("Ada's Ärena"));
    assert_eq!((info.game.as_deref(), info.game_name.as_deref()), (Some("baseDOOM-1"), Some("DOOM 3")));
    assert_eq!((info.map.as_deref(), info.mode.as_deref()), (Some("game/mp/d3dm1"), Some("Team DM")));
    assert!(info.version.unwrap().starts_with("DOOM 1.3.1"));
    assert_eq!((info.players, info.bots, info.max_players, info.password), (Some(2), None, Some(8), Some(true)));
    let player = |name: &str, ping| Player { name: name.into(), ping_ms: Some(ping), ..Player::default() };
    assert_eq!(info.player_list.unwrap(), [player("Ada", 48), player("Bob", 999)]);
    assert_eq!(info.rules["fs_game"], "");
}

#[test]
fn quake4_has_colours_and_icons_of_its_own() {
    let info = reply_of(reply_with(QUAKE4, 4)).info;
    assert_eq!((info.name.as_deref(), info.game_name.as_deref()), (Some("Q4"), Some("Quake 4")));
    assert_eq!(info.player_list.unwrap()[0].name, "Ada");
}

#[test]
fn quake_wars_repeats_the_whole_token_and_says_who_is_a_bot() {
    let reply = reply_of(reply_with(QUAKE_WARS, 8));
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!(info.game_name.as_deref(), Some("Enemy Territory: Quake Wars"));
    assert_eq!((info.map.as_deref(), info.mode.as_deref()), (Some("valley"), Some("Objective")));
    assert_eq!((info.players, info.bots, info.max_players, info.password), (Some(1), Some(1), Some(24), Some(false)));
    let own = &info.extensions[&Protocol::Doom3];
    assert_eq!((own.switch("ranked"), own.number("time_left_ms")), (Some(true), Some(467_565)));
    let list = info.player_list.unwrap();
    assert_eq!(list[0].extension, Extension::from([("clan", "(x)".to_owned().into())]));
    assert_eq!((&*list[1].name, list[1].extension.iter().count()), ("Monkey", 0));
}

#[test]
fn a_reply_without_the_token_does_not_count() {
    let mut server = Exchange::new(Protocol::Doom3.info());
    let query = server.queries().remove(0);
    server.receive(&[b"\xff\xffinfoResponse\0PiNG", DOOM3].concat());
    server.receive(&[b"\xff\xffinfoResponse\0", &query[14..], DOOM3].concat());
    assert_eq!(server.prober.stats().wrong_echo, 2);
    assert_eq!(server.finish().outcome, ProbeOutcome::TimedOut);
}

#[test]
fn players_in_an_unknown_form_are_missing() {
    let broken = [DOOM3, b"\0"].concat();
    let reply = reply_of(reply_with(&broken, 4));
    assert_eq!(reply.missing.len(), 1);
    assert!(matches!(reply.missing[0], MissingPart::Truncated(error) if error.field == "players"));
    assert_eq!(reply.info.map.as_deref(), Some("game/mp/d3dm1"));
    assert_eq!((reply.info.players, reply.info.player_list), (None, None));
}

#[test]
fn a_reply_that_is_cut_or_changed_says_nothing_wrong() {
    for (whole, token) in [(DOOM3, 4), (QUAKE4, 4), (QUAKE_WARS, 8)] {
        let described = reply_of(reply_with(whole, token)).info;
        for cut in truncations(whole) {
            let result = reply_with(cut, token);
            assert_is_harmless(&result);
            if let Some(reply) = result.reply() {
                assert_is_part_of(&reply.info, &described);
                // Some servers leave out what follows the players.
                let has_players = reply.info.player_list == described.player_list;
                assert_eq!(reply.is_complete(), has_players, "{}", cut.escape_ascii());
            }
        }
        for changed in mutations(whole) {
            assert_is_harmless(&reply_with(&changed, token));
        }
    }
}
