//! The reply of a real server, and what can happen to it.

use crate::{
    ProbeOutcome, Protocol,
    protocols::fixture::{Dialog, assert_stream_is_robust, reply_of, stream_reply_to},
};

/// What OpenTTD 13.0 sends.
const REPLY: &[u8] = include_bytes!("../../../tests/captures/openttd/openttd-13.0.bin");

#[test]
fn a_real_server_is_described_completely() {
    let mut dialog = Dialog::new(Protocol::OpenTtd.players());
    assert_eq!(dialog.sent(), [3, 0, 7]);
    for piece in REPLY.chunks(5) {
        dialog.receive(piece);
    }
    assert!(dialog.has_ended());
    let reply = reply_of(dialog.finish());
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.version.as_deref()), (Some("captest Größe"), Some("13.0")));
    assert_eq!((info.players, info.max_players, info.spectators), (Some(0), Some(25), Some(0)));
    assert_eq!((info.password, info.map.as_deref()), (Some(false), Some("temperate")));
    assert_eq!(
        (&*info.rules["map_size"], &*info.rules["date"], &*info.rules["start"]),
        ("256x256", "1950-01-04", "1950-01-01")
    );
    let extension = &info.extensions[&Protocol::OpenTtd];
    assert_eq!((extension.number("max_companies"), extension.switch("dedicated")), (Some(15), Some(true)));
}

#[test]
fn commands_of_the_game_and_controls_are_not_shown() {
    let mut reply = REPLY.to_vec();
    let at = reply.windows(7).position(|bytes| bytes == b"captest").unwrap();
    // A colour, which is a character for private use, and an escape.
    reply[at..at + 5].copy_from_slice(b"\xee\x82\x88\x1bx");
    let name = reply_of(stream_reply_to(Protocol::OpenTtd.info(), &[&reply])).info.name;
    assert_eq!(name.as_deref(), Some("\u{fffd}xst Größe"));
}

#[test]
fn other_servers_and_refusals_are_none() {
    for bytes in [&b"SSH-2.0-OpenSSH\r\n"[..], &[3, 0, 0], &[4, 0, 3, 9], &[4, 0, 6, 9], b"HTTP/1.1 400 Bad\r\n", b""] {
        let result = stream_reply_to(Protocol::OpenTtd.presence(), &[bytes]);
        assert!(matches!(result.outcome, ProbeOutcome::Malformed(_)), "{:?}", result.outcome);
    }
}

#[test]
fn no_damage_to_a_reply_does_harm() {
    assert_stream_is_robust(Protocol::OpenTtd.info(), REPLY);
}
