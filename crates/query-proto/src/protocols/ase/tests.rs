//! The All-Seeing Eye through a prober.

use crate::{
    ExtensionValue, MissingPart, Player, ProbeOutcome, ProbeResult, Protocol, ServerInfo,
    protocols::fixture::{Exchange, assert_is_harmless, mutations, reply_of, truncations},
};

const FAR_CRY: &[u8] = include_bytes!("../../../tests/captures/ase/far-cry.bin");
const MTA: &[u8] = include_bytes!("../../../tests/captures/ase/mta.bin");

/// The result for a server that sends these datagrams.
fn result_of(datagrams: &[&[u8]]) -> ProbeResult {
    let mut exchange = Exchange::new(Protocol::Ase.info());
    assert_eq!(exchange.queries(), [b"s"]);
    datagrams.iter().for_each(|datagram| exchange.receive(datagram));
    exchange.finish()
}

fn reply_with(datagram: &[u8]) -> (ServerInfo, Vec<MissingPart>) {
    let reply = reply_of(result_of(&[datagram]));
    (reply.info, reply.missing)
}

#[test]
fn far_cry_has_colours_teams_and_times() {
    let (info, missing) = reply_with(FAR_CRY);
    assert_eq!(missing, []);
    assert_eq!((info.name.as_deref(), info.game.as_deref()), (Some("Bacon Town"), Some("farcry")));
    assert_eq!((info.mode.as_deref(), info.map.as_deref()), (Some("FFA"), Some("mp_monkeybay_n")));
    assert_eq!((info.version.as_deref(), info.password), (Some("0.0.0.0"), Some(false)));
    assert_eq!((info.players, info.max_players), (Some(2), Some(12)));
    assert_eq!(info.rules["gr_DamageScale"], "1");
    assert_eq!(info.extensions[&Protocol::Ase].number("port"), Some(49_001));
    assert_eq!((info.team_name(0), info.team_name(1)), (Some("players"), Some("spectators")));
    let player = |name: &str, team, score, ping_ms, duration_s| Player {
        name: name.into(),
        team: Some(team),
        score: Some(score),
        ping_ms: Some(ping_ms),
        duration_s: Some(duration_s),
        spectator: team == 1,
        ..Player::default()
    };
    assert_eq!(info.player_list.unwrap(), [player("Ada", 0, 3, 60, 480), player("Grace", 1, -1, 55, 2_100)]);
}

#[test]
fn multi_theft_auto_has_scores_of_any_form() {
    let (info, missing) = reply_with(MTA);
    assert_eq!(missing, []);
    assert_eq!((info.name.as_deref(), info.password), (Some("Bacon Täwn"), Some(true)));
    assert_eq!((info.players, info.max_players, info.teams.len()), (Some(3), Some(400), 0));
    let list = info.player_list.unwrap();
    let names: Vec<&str> = list.iter().map(|player| &*player.name).collect();
    assert_eq!(names, ["Zoë", "Gréce", ""]);
    assert_eq!((list[0].score, list[1].score, list[2].score), (Some(12), None, None));
    assert_eq!(list[1].extension.get("score"), Some(&ExtensionValue::Text("Lv 5".into())));
}

#[test]
fn more_than_255_players_are_listed() {
    let mut reply = MTA[..MTA.len() - 7].to_vec();
    (0..400).for_each(|_| reply.extend(b"\x01\x02p"));
    assert_eq!(reply_with(&reply).0.player_list.unwrap().len(), 402);
}

#[test]
fn a_second_reply_adds_nothing_and_a_hostile_one_is_counted() {
    let result = result_of(&[b"EYE2", b"", b"EYE1\xff", &[0xff; 100], MTA, FAR_CRY]);
    assert_eq!(result.malformed, 4);
    assert_eq!(result.reply().unwrap().info.game.as_deref(), Some("mta"));
    assert!(matches!(result_of(&[b"EYE1"]).outcome, ProbeOutcome::Malformed(_)));
}

#[test]
fn every_truncation_and_change_is_harmless() {
    for whole in [FAR_CRY, MTA] {
        let (known, _) = reply_with(whole);
        let players = known.player_list.as_ref().unwrap();
        let mut complete = 0;
        for cut in truncations(whole) {
            let result = result_of(&[cut]);
            assert_is_harmless(&result);
            if let ProbeOutcome::Answered(reply) = result.outcome {
                let info = reply.info;
                assert_eq!((&info.name, info.players), (&known.name, known.players));
                assert!(info.rules.iter().all(|(name, value)| known.rules.get(name) == Some(value)));
                assert!(info.player_list.as_ref().is_some_and(|list| players.starts_with(list)));
                complete += usize::from(reply.missing.is_empty());
            }
        }
        // The end of one player cannot be told from that of all.
        assert_eq!(complete, players.len());
        for changed in mutations(whole) {
            assert_is_harmless(&result_of(&[&changed]));
        }
    }
}
