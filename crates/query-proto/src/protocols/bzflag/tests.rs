//! Replies of a real server, and what can happen to them.

use crate::{
    MissingPart, Player, ProbeOutcome, Protocol,
    protocols::fixture::{Dialog, assert_stream_is_robust, reply_of, stream_reply_to},
};

/// What bzfs 2.4.26 sends to a greeting and both queries, with two observers.
const REPLY: &[u8] = include_bytes!("../../../tests/captures/bzflag/bzfs-2.4.26.bin");

/// Length of the message of a player.
const PLAYER: usize = 175;

#[test]
fn a_real_server_is_described_completely() {
    let mut dialog = Dialog::new(Protocol::BzFlag.players());
    assert_eq!(dialog.sent(), b"BZFLAG\r\n\r\n\0\0qg\0\0qp");
    for piece in REPLY.chunks(50) {
        dialog.receive(piece);
    }
    assert!(dialog.has_ended());
    let reply = reply_of(dialog.finish());
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.mode.as_deref(), info.max_players), (Some("Capture The Flag"), Some(20)));
    assert_eq!((info.players, info.bots, info.spectators), (Some(0), Some(0), Some(2)));
    let observer =
        |name: &str| Player { name: name.into(), team: Some(5), score: Some(0), spectator: true, ..Player::default() };
    assert_eq!(info.player_list.as_deref(), Some(&[observer("Ada"), observer("Grace")][..]));
    assert_eq!(
        info.teams.iter().map(|team| &*team.name).collect::<Vec<_>>(),
        ["Rogue", "Red", "Green", "Blue", "Purple"]
    );
    assert_eq!((&*info.rules["max_shots"], &*info.rules["score_red"], &*info.rules["jumping"]), ("1", "0", "false"));
    assert_eq!(info.extensions[&Protocol::BzFlag].get("protocol"), Some(&"0221".to_owned().into()));
}

#[test]
fn scores_are_negative_and_programs_are_bots() {
    let mut reply = REPLY.to_vec();
    let grace = reply.len() - PLAYER + 4;
    // A program in the red team, with two wins and five losses; there is one red player.
    reply[grace + 1..grace + 9].copy_from_slice(&[0, 1, 0, 1, 0, 2, 0, 5]);
    reply[9 + 4 + 11] = 1;
    let info = reply_of(stream_reply_to(Protocol::BzFlag.players(), &[&reply])).info;
    let list = info.player_list.unwrap();
    assert_eq!((list[1].team, list[1].score, list[1].spectator), (Some(1), Some(-3), false));
    assert_eq!((info.players, info.bots), (Some(0), Some(1)));
}

#[test]
fn less_detail_takes_less() {
    let mut dialog = Dialog::new(Protocol::BzFlag.info());
    assert_eq!(dialog.sent(), b"BZFLAG\r\n\r\n\0\0qg");
    dialog.receive(&REPLY[..9 + 48]);
    let reply = reply_of(dialog.finish());
    assert!(reply.is_complete());
    assert_eq!((reply.info.spectators, reply.info.bots, reply.info.player_list), (Some(2), None, None));
    let mut dialog = Dialog::new(Protocol::BzFlag.presence());
    assert_eq!(dialog.sent(), b"BZFLAG\r\n\r\n");
    dialog.receive(&REPLY[..9]);
    assert!(reply_of(dialog.finish()).is_complete());
}

#[test]
fn players_that_are_not_sent_are_missing() {
    let result = stream_reply_to(Protocol::BzFlag.players(), &[&REPLY[..REPLY.len() - 1]]);
    let reply = reply_of(result);
    assert_eq!(reply.missing, [MissingPart::Players { received: 1, expected: Some(2) }]);
    let more = [REPLY, &REPLY[REPLY.len() - PLAYER..]].concat();
    assert_eq!(reply_of(stream_reply_to(Protocol::BzFlag.players(), &[&more])).info.player_list.unwrap().len(), 2);
}

#[test]
fn a_full_server_is_there_but_describes_nothing() {
    let full = b"BZFS0221\xff";
    assert!(matches!(stream_reply_to(Protocol::BzFlag.info(), &[full]).outcome, ProbeOutcome::Malformed(_)));
    assert!(reply_of(stream_reply_to(Protocol::BzFlag.presence(), &[full])).is_complete());
}

#[test]
fn other_servers_are_none() {
    for bytes in
        [&b"SSH-2.0-OpenSSH\r\n"[..], b"BZFS\0\0\0\0\0", b"BZFS0221\x01\xff\xff", b"BZFS0221\x01\0\x01qgx", b""]
    {
        let result = stream_reply_to(Protocol::BzFlag.info(), &[bytes]);
        assert!(matches!(result.outcome, ProbeOutcome::Malformed(_)), "{:?}", result.outcome);
    }
}

#[test]
fn no_damage_to_a_reply_does_harm() {
    assert_stream_is_robust(Protocol::BzFlag.players(), REPLY);
}
