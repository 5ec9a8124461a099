//! Dialogs with servers that permit everything, something and nothing.

use crate::{
    MissingPart, ProbeOutcome, Protocol, QueryReply,
    protocols::fixture::{Dialog, assert_is_harmless, mutations, reply_of, stream_reply_to, truncations},
};

const BANNER: &str =
    "TS3\n\rWelcome to the TeamSpeak 3 ServerQuery interface, type \"help\" for a list of commands.\n\r";
const OK: &str = "error id=0 msg=ok\n\r";
const DENIED: &str = "error id=2568 msg=insufficient\\sclient\\spermissions failed_permid=8\n\r";
const NO_SERVER: &str = "error id=1024 msg=invalid\\sserverID\n\r";
const INFO: &str = "virtualserver_unique_identifier=x= virtualserver_name=Bacon\\s\\p\\sTown virtualserver_welcomemessage=Hi\\n[b]you \
    virtualserver_platform=Linux virtualserver_version=3.13.7\\s[Build:\\s1655727713] virtualserver_maxclients=32 virtualserver_password=abc \
    virtualserver_clientsonline=4 virtualserver_queryclientsonline=2 virtualserver_channelsonline=7 virtualserver_uptime=1234 \
    virtualserver_flag_password=1 virtualserver_port=9987 virtualserver_id=1 virtualserver_hostbutton_url\n\r";
const CLIENTS: &str = "clid=1 cid=1 client_database_id=2 client_nickname=Ada\\sL. client_type=0|clid=2 cid=1 client_nickname=serveradmin \
    client_type=1|clid=3 cid=4 client_nickname=Gr\u{202e}ace client_type=0\n\r";

/// Answers each command with the next reply.
fn dialog(replies: &[(&str, &str)]) -> Dialog {
    let mut dialog = Dialog::new(Protocol::TeamSpeak3.players());
    assert!(dialog.sent().is_empty(), "the server speaks first");
    dialog.receive(BANNER.as_bytes());
    for (command, reply) in replies {
        assert_eq!(str::from_utf8(&dialog.sent()), Ok(*command));
        // In two pieces, which end within a line.
        let (head, tail) = reply.as_bytes().split_at(reply.len() / 2);
        dialog.receive(head);
        assert!(dialog.sent().is_empty());
        dialog.receive(tail);
    }
    dialog
}

fn finished(replies: &[(&str, &str)]) -> QueryReply {
    let mut dialog = dialog(replies);
    assert!(dialog.has_ended());
    reply_of(dialog.finish())
}

const USE: (&str, &str) = ("use port=9987\n", OK);

#[test]
fn a_server_is_described_completely() {
    let reply = finished(&[USE, ("serverinfo\n", &format!("{INFO}{OK}")), ("clientlist\n", &format!("{CLIENTS}{OK}"))]);
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("Bacon | Town"));
    assert_eq!(info.version.as_deref(), Some("3.13.7 [Build: 1655727713]"));
    assert_eq!((info.players, info.max_players, info.password), (Some(2), Some(32), Some(true)));
    let names: Vec<_> = info.player_list.iter().flatten().map(|player| &*player.name).collect();
    assert_eq!(names, ["Ada L.", "Gr\u{fffd}ace"]);
    assert_eq!(info.rules["platform"], "Linux");
    assert!(!info.rules.contains_key("password"));
    let extension = &info.extensions[&Protocol::TeamSpeak3];
    assert_eq!((extension.number("channels"), extension.number("uptime_s")), (Some(7), Some(1_234)));
}

#[test]
fn the_first_virtual_server_that_runs_is_taken_if_none_is_at_the_usual_port() {
    let list = "virtualserver_id=2 virtualserver_port=9000 virtualserver_status=offline|virtualserver_id=5 virtualserver_status=online\n\r";
    let reply = finished(&[
        ("use port=9987\n", NO_SERVER),
        ("serverlist\n", &format!("{list}{OK}")),
        ("use sid=5\n", OK),
        ("serverinfo\n", &format!("{INFO}{OK}")),
        ("clientlist\n", &format!("{CLIENTS}{OK}")),
    ]);
    assert!(reply.is_complete());
    let mut dialog = dialog(&[("use port=9987\n", NO_SERVER), ("serverlist\n", DENIED), ("use sid=1\n", NO_SERVER)]);
    assert!(dialog.has_ended());
    let ProbeOutcome::Malformed(error) = dialog.finish().outcome else { panic!("no server is described") };
    assert_eq!(error.to_string(), "no virtual server");
}

#[test]
fn what_is_not_permitted_is_missing() {
    let info = format!("{INFO}{OK}");
    let reply = finished(&[USE, ("serverinfo\n", &info), ("clientlist\n", DENIED)]);
    assert_eq!(reply.missing, [MissingPart::Part("clientlist")]);
    assert_eq!((reply.info.players, reply.info.player_list), (Some(2), None));
    let clients = format!("{CLIENTS}{OK}");
    let reply = finished(&[USE, ("serverinfo\n", DENIED), ("clientlist\n", &clients)]);
    assert_eq!(reply.missing, [MissingPart::Part("serverinfo")]);
    assert_eq!((reply.info.players, reply.info.name), (Some(2), None));
    let dialog = dialog(&[USE, ("serverinfo\n", DENIED), ("clientlist\n", DENIED)]);
    assert!(matches!(dialog.finish().outcome, ProbeOutcome::Malformed(_)));
}

#[test]
fn a_reply_without_its_end_is_not_taken_for_complete() {
    let mut dialog = dialog(&[USE, ("serverinfo\n", &format!("{INFO}{OK}")), ("clientlist\n", CLIENTS)]);
    dialog.close();
    let reply = reply_of(dialog.finish());
    assert_eq!(reply.missing, [MissingPart::Part("clientlist")]);
    assert_eq!(reply.info.player_list, None);
}

#[test]
fn the_banner_is_enough_for_presence() {
    let mut dialog = Dialog::new(Protocol::TeamSpeak3.presence());
    dialog.sent();
    dialog.receive(b"TS3\n");
    assert!(dialog.has_ended());
    assert!(reply_of(dialog.finish()).is_complete());
}

#[test]
fn other_servers_are_none() {
    for bytes in [
        &b"SSH-2.0-OpenSSH\r\n"[..],
        b"220 smtp ESMTP\r\n",
        b"\n\n",
        b"error id=0\n",
        b"virtualserver_name=x\n",
        &[b'x'; 200 << 10],
    ] {
        let result = stream_reply_to(Protocol::TeamSpeak3.info(), &[bytes]);
        assert!(matches!(result.outcome, ProbeOutcome::Malformed(_)), "{:?}", result.outcome);
    }
    // A server that never gets to the point.
    let mut dialog = Dialog::new(Protocol::TeamSpeak3.info());
    dialog.receive(b"");
    dialog.sent();
    dialog.receive(b"TS3\n");
    for _ in 0..1_000 {
        dialog.receive(&[b'\n'; 2_000]);
    }
    assert!(matches!(dialog.finish().outcome, ProbeOutcome::Malformed(_)));
    let wrong = stream_reply_to(Protocol::TeamSpeak3.info(), &[BANNER.as_bytes(), OK.as_bytes(), b"x=1\n"]);
    assert!(matches!(wrong.outcome, ProbeOutcome::Malformed(_)));
}

#[test]
fn no_damage_to_a_dialog_does_harm() {
    let reply = format!("{INFO}{OK}");
    let with = |info: &[u8]| stream_reply_to(Protocol::TeamSpeak3.info(), &[BANNER.as_bytes(), OK.as_bytes(), info]);
    for changed in mutations(reply.as_bytes()) {
        assert_is_harmless(&with(&changed));
    }
    for cut in truncations(reply.as_bytes()) {
        // The end of the line after the end of the reply does not matter.
        let is_whole = cut.len() >= reply.len() - 1;
        assert_eq!(with(cut).reply().is_some_and(QueryReply::is_complete), is_whole, "{}", cut.len());
    }
}
