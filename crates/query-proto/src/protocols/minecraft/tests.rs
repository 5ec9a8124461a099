//! Pings of servers of all ages.

use crate::{
    MissingPart, ProbeOutcome, Protocol, RttMethod,
    protocols::fixture::{Dialog, assert_stream_is_robust, reply_of, stream_reply_to},
};
use rallypoint_wire::query::minecraft::emit_status;
use std::time::Duration;

fn status(json: &str) -> Vec<u8> {
    let mut packet = Vec::new();
    emit_status(json, &mut packet);
    packet
}

/// The packet that ends a connection before 1.7.
fn kick(text: &str) -> Vec<u8> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let bytes = units.iter().flat_map(|unit| unit.to_be_bytes());
    [0xff].into_iter().chain((units.len() as u16).to_be_bytes()).chain(bytes).collect()
}

const PAPER: &str = r#"{"version":{"name":"Paper 1.20.4","protocol":765},"enforcesSecureChat":true,"favicon":"data:image/png;base64,AAAA",
    "description":{"extra":[{"bold":true,"color":"gold","text":"Bacon"},{"text":" Town\n"},"§csecond §lline"],"text":""},
    "players":{"max":20,"online":2,"sample":[{"id":"069a79f4-44e9-4726-a5be-fca90e38aaf5","name":"Ada"},
    {"id":"853c80ef-3c37-49fd-aa49-938b674adae6","name":"Grace"}]}}"#;

#[test]
fn a_server_is_described_completely() {
    let mut dialog = Dialog::new(Protocol::Minecraft.players());
    assert_eq!(dialog.sent(), b"\x0f\x00\x2f\x09192.0.2.1\x63\xdd\x01\x01\x00");
    for piece in status(PAPER).chunks(100) {
        dialog.receive(piece);
    }
    assert!(dialog.has_ended());
    let result = dialog.finish();
    assert_eq!((result.retries, result.malformed), (0, 0));
    let reply = reply_of(result);
    assert!(reply.is_complete());
    assert_eq!((reply.round_trip.method, reply.round_trip.time), (RttMethod::Connect, Duration::from_millis(20)));
    assert_eq!(reply.raw.datagrams().count(), 1);
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("Bacon Town"));
    assert_eq!(info.description.as_deref(), Some("Bacon Town second line"));
    assert_eq!(info.version.as_deref(), Some("Paper 1.20.4"));
    assert_eq!((info.players, info.max_players), (Some(2), Some(20)));
    let names: Vec<_> = info.player_list.iter().flatten().map(|player| &*player.name).collect();
    assert_eq!(names, ["Ada", "Grace"]);
    let extension = &info.extensions[&Protocol::Minecraft];
    assert_eq!(extension.number("protocol"), Some(765));
    assert_eq!((extension.switch("has_icon"), extension.switch("enforces_secure_chat")), (Some(true), Some(true)));
}

#[test]
fn descriptions_have_many_forms() {
    for (description, name) in [
        (r#""A §bMinecraft§r Server""#, Some("A Minecraft Server")),
        (r#"{"text":"a","extra":[{"text":"b","extra":["c"]},["d"]]}"#, Some("abcd")),
        (r#"[{"text":"a"},"b"]"#, Some("ab")),
        (r#"{"translate":"multiplayer.title"}"#, Some("multiplayer.title")),
        (r#""\u001b[31m  \u202eevil""#, Some("\u{fffd}[31m  \u{fffd}evil")),
        (r#""\n\n  \u00a7l second ""#, Some("second")),
        ("7", None),
        (r#"{"text":{}}"#, None),
    ] {
        let reply = reply_of(stream_reply_to(
            Protocol::Minecraft.info(),
            &[&status(&format!(r#"{{"description":{description}}}"#))],
        ));
        assert_eq!(reply.info.name.as_deref(), name, "{description}");
    }
}

#[test]
fn a_sample_of_the_players_is_not_taken_for_all_of_them() {
    let nobody = r#"{"id":"00000000-0000-0000-0000-000000000000","name":"buy now"}"#;
    let json = format!(
        r#"{{"players":{{"online":90000,"max":-1,"sample":[{nobody},{{"id":"1","name":"Ada"}},{{"name":"no id"}},8]}}}}"#
    );
    let reply = reply_of(stream_reply_to(Protocol::Minecraft.players(), &[&status(&json)]));
    assert_eq!((reply.info.players, reply.info.max_players), (Some(u16::MAX), None));
    assert_eq!(reply.info.player_list.unwrap().len(), 1);
    assert_eq!(reply.missing, [MissingPart::Players { received: 1, expected: Some(u16::MAX) }]);
    let hidden = status(r#"{"players":{"online":3,"max":10}}"#);
    let reply = reply_of(stream_reply_to(Protocol::Minecraft.players(), &[&hidden]));
    assert_eq!((reply.info.player_list, reply.missing.len()), (None, 1));
    assert!(reply_of(stream_reply_to(Protocol::Minecraft.info(), &[&hidden])).is_complete());
}

#[test]
fn a_server_before_1_7_is_pinged_as_its_clients_did() {
    let answers_legacy = kick("§1\x0074\x001.6.2\0A §bServer\x002\x0020");
    // Old servers end the connection, with or without a reason.
    for first in [Some(kick("Protocol error")), None] {
        let mut dialog = Dialog::new(Protocol::Minecraft.info());
        dialog.sent();
        if let Some(first) = first {
            dialog.receive(&first);
        }
        dialog.close();
        assert!(dialog.sent().starts_with(b"\xfe\x01\xfa\x00\x0b"));
        dialog.receive(&answers_legacy);
        assert_eq!(dialog.connections, 2);
        let result = dialog.finish();
        assert_eq!(result.retries, 1);
        let info = reply_of(result).info;
        assert_eq!((info.name.as_deref(), info.version.as_deref()), (Some("A Server"), Some("1.6.2")));
        assert_eq!((info.players, info.max_players), (Some(2), Some(20)));
    }
}

#[test]
fn a_server_before_1_4_gets_one_byte() {
    let mut dialog = Dialog::new(Protocol::Minecraft.info());
    dialog.sent();
    dialog.close();
    dialog.sent();
    dialog.receive(&kick("Bad packet id 1"));
    assert_eq!(dialog.sent(), [0xfe]);
    dialog.receive(&kick("My §4Server§0§8"));
    let info = reply_of(dialog.finish()).info;
    assert_eq!((info.name.as_deref(), info.players, info.max_players), (Some("My Server"), Some(0), Some(8)));
    assert_eq!(info.player_list, Some(Vec::new()));
}

#[test]
fn a_silent_server_is_pinged_in_other_ways_within_the_limit() {
    let mut dialog = Dialog::new(Protocol::Minecraft.info());
    let began = dialog.now;
    dialog.sent();
    dialog.wait();
    assert!(dialog.sent().starts_with(&[0xfe, 1]));
    dialog.wait();
    assert_eq!(dialog.sent(), [0xfe]);
    dialog.wait();
    assert!(dialog.has_ended());
    assert_eq!(dialog.now - began, Duration::from_secs(4));
    assert_eq!(dialog.finish().outcome, ProbeOutcome::TimedOut);
}

#[test]
fn what_is_no_reply_is_an_error_and_never_a_server() {
    for bytes in [
        &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        &[0xff; 64],
        &[0x80; 64],
        &status("null"),
        &status("{}"),
        &status("[1,2]"),
        &status(r#"{"players":"#),
        &status(&"[".repeat(10_000)),
        b"",
    ] {
        let mut dialog = Dialog::new(Protocol::Minecraft.info());
        for _ in 0..3 {
            dialog.sent();
            dialog.receive(bytes);
            dialog.close();
        }
        let result = dialog.finish();
        assert!(matches!(result.outcome, ProbeOutcome::Malformed(_)), "{:?}", result.outcome);
        assert_eq!(result.malformed, 3);
    }
}

#[test]
fn a_reply_is_not_taken_in_without_end() {
    let mut dialog = Dialog::new(Protocol::Minecraft.info());
    dialog.sent();
    // A packet of 200 KiB, which never ends.
    dialog.receive(&[0x80, 0x80, 0x0d]);
    for _ in 0..100 {
        dialog.receive(&[b'x'; 16 << 10]);
    }
    let result = dialog.finish();
    assert!(matches!(result.outcome, ProbeOutcome::Malformed(_)), "{:?}", result.outcome);
}

#[test]
fn no_damage_to_a_reply_does_harm() {
    assert_stream_is_robust(Protocol::Minecraft.players(), &status(PAPER));
}

#[test]
fn a_peer_answers_both_pings() {
    // A server of the package minecraft-protocol 1.54, for 1.20.4.
    const STATUS: &[u8] = include_bytes!("../../../tests/captures/minecraft/minecraft-protocol-status.bin");
    const LEGACY: &[u8] = include_bytes!("../../../tests/captures/minecraft/minecraft-protocol-legacy.bin");
    let info = reply_of(stream_reply_to(Protocol::Minecraft.players(), &[STATUS])).info;
    assert_eq!((info.name.as_deref(), info.version.as_deref()), (Some("Bacon Town"), Some("1.20.4")));
    assert_eq!((info.players, info.max_players, info.player_list), (Some(0), Some(24), Some(Vec::new())));
    let mut dialog = Dialog::new(Protocol::Minecraft.info());
    dialog.sent();
    dialog.close();
    dialog.sent();
    dialog.receive(LEGACY);
    let info = reply_of(dialog.finish()).info;
    assert_eq!((info.name.as_deref(), info.max_players), (Some("Bacon Town"), Some(24)));
    assert_stream_is_robust(Protocol::Minecraft.players(), STATUS);
}
