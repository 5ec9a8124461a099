use super::*;
use crate::bloodmasters::{Client, ClientsBuf, GameType, Team};
use alloc::{string::ToString, vec, vec::Vec};

/// A reply up to the protocol version, which is its last byte.
const HEAD: &[u8] = b"\x00\x00\x0d\xff\xff\xff\xfe\x01T\x00\x01w\x0a\x08\x02\x04dusk\x02\x01";
const RULES: &[u8] = b"\xff\xff\x03\xe8\x01";
const CLIENTS: &[u8] = b"\x03red\x01\x00\x01\x30\x00\x00\x01\x03\xe7";
const BUILD: &[u8] = b"\x03v 1";

fn datagram(protocol: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = [HEAD, &[protocol], &parts.concat()].concat();
    let length = u16::try_from(bytes.len()).unwrap();
    bytes[..2].copy_from_slice(&length.to_le_bytes());
    bytes
}

fn emitted(reply: &Reply<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    reply.emit(&mut bytes);
    bytes
}

fn cut_in(datagram: &[u8]) -> Option<&'static str> {
    let reply = Reply::parse(datagram).unwrap();
    assert_eq!(reply.is_complete(), reply.warning().is_none());
    reply.warning().map(|warning| warning.field)
}

#[test]
fn b1_all_but_the_length_is_big_endian() {
    let bytes = datagram(29, &[RULES, CLIENTS, BUILD]);
    assert_eq!(bytes[..2], [bytes.len() as u8, 0]);
    let reply = Reply::parse(&bytes).unwrap();
    assert_eq!(reply.rules(), Some(Rules { score_limit: -1, time_limit: 1000, join_smallest: true }));
    assert_eq!(reply.clients().iter().map(|client| client.ping).collect::<Vec<_>>(), [304, 999]);
}

#[test]
fn b5_a_boolean_is_anything_but_zero_and_is_written_as_one() {
    let mut bytes = datagram(26, &[]);
    bytes[9] = 0x80;
    let reply = Reply::parse(&bytes).unwrap();
    assert!(reply.info().locked);
    let again = emitted(&reply);
    assert_eq!(again[9], 1);
    assert_eq!(Reply::parse(&again), Ok(reply));
    let mut bytes = datagram(27, &[RULES, CLIENTS]);
    let ping = 2;
    let spectator = bytes.len() - ping - 1;
    bytes[spectator] = 0x02;
    let told: Vec<_> = Reply::parse(&bytes).unwrap().clients().iter().map(|client| client.spectator).collect();
    assert_eq!(told, [false, true]);
}

#[test]
fn b6_the_protocol_version_says_what_follows() {
    for protocol in [0, 1, 26] {
        let bytes = datagram(protocol, &[]);
        let reply = Reply::parse(&bytes).unwrap();
        assert_eq!((reply.rules(), reply.build(), reply.warning()), (None, None, None));
        assert_eq!((reply.clients().count(), reply.clients().iter().count()), (2, 0));
        assert_eq!(emitted(&reply), bytes);
    }
    let bytes = datagram(27, &[RULES, CLIENTS]);
    let reply = Reply::parse(&bytes).unwrap();
    assert!(reply.is_complete() && reply.rules().is_some() && reply.build().is_none());
    assert_eq!(reply.clients().iter().count(), 2);
    assert_eq!(emitted(&reply), bytes);
    for protocol in [28, 29, 200, 255] {
        let bytes = datagram(protocol, &[RULES, CLIENTS, BUILD]);
        let reply = Reply::parse(&bytes).unwrap();
        assert_eq!((reply.build(), reply.warning()), (Some(&b"v 1"[..]), None));
        assert_eq!(emitted(&reply), bytes);
    }
}

#[test]
fn b6_bytes_that_a_version_does_not_know_are_ignored() {
    for (protocol, parts) in
        [(26, &[RULES][..]), (27, &[RULES, CLIENTS, BUILD]), (29, &[RULES, CLIENTS, BUILD, b"new"])]
    {
        assert_eq!(cut_in(&datagram(protocol, parts)), None, "{protocol}");
    }
}

#[test]
fn b6_a_tail_cut_short_is_a_partial_result_that_names_the_field() {
    assert_eq!(cut_in(&datagram(29, &[])), Some("score limit"));
    assert_eq!(cut_in(&datagram(29, &[&RULES[..3]])), Some("time limit"));
    assert_eq!(cut_in(&datagram(29, &[&RULES[..4]])), Some("join smallest team"));
    assert_eq!(cut_in(&datagram(27, &[RULES])), Some("player name"));
    assert_eq!(cut_in(&datagram(29, &[RULES, &CLIENTS[..5]])), Some("spectator"));
    assert_eq!(cut_in(&datagram(29, &[RULES, &CLIENTS[..9]])), Some("player team"));
    assert_eq!(cut_in(&datagram(29, &[RULES, CLIENTS, &BUILD[..3]])), Some("build description"));

    let bytes = datagram(29, &[RULES, &CLIENTS[..9]]);
    let reply = Reply::parse(&bytes).unwrap();
    assert_eq!(reply.warning().unwrap().to_string(), "truncated in player team");
    assert_eq!((reply.clients().count(), reply.clients().iter().count()), (2, 1), "two are there, one is told");
    assert!(reply.rules().is_some());
    let again = emitted(&reply);
    let again = Reply::parse(&again).unwrap();
    assert_eq!((again.info(), again.rules(), again.clients()), (reply.info(), reply.rules(), reply.clients()));
    assert!(!again.is_complete());
}

#[test]
fn b6_a_head_cut_short_is_an_error() {
    let bytes = datagram(26, &[]);
    for length in 0..bytes.len() {
        let error = Reply::parse(&bytes[..length]).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Truncated, "{length}");
    }
}

#[test]
fn w2_a_datagram_shorter_than_its_length_is_a_partial_result() {
    let bytes = datagram(29, &[RULES, CLIENTS, BUILD]);
    for length in HEAD.len() + 1..bytes.len() {
        assert!(cut_in(&bytes[..length]).is_some(), "{length}");
    }
    let more_was_to_come = datagram(29, &[RULES, CLIENTS, BUILD, b"new"]);
    assert_eq!(cut_in(&more_was_to_come[..bytes.len()]), Some("message"));
}

#[test]
fn b3_what_follows_the_first_message_is_ignored() {
    let bytes = [datagram(26, &[]), b"\x04\x00\x63!".to_vec()].concat();
    assert_eq!(cut_in(&bytes), None);
}

#[test]
fn b7_an_echo_comes_back_byte_for_byte() {
    let bytes = datagram(26, &[]);
    let reply = Reply::parse(&bytes).unwrap();
    assert_eq!(reply.echo(), Echo([0xff, 0xff, 0xff, 0xfe]));
    let mut patched = bytes.clone();
    patched[Echo::RANGE].copy_from_slice(b"\x00\x80\x7f\xff");
    assert_eq!(emitted(&reply.with_echo(Echo(*b"\x00\x80\x7f\xff"))), patched);
}

#[test]
fn b9_a_reply_in_the_reliable_form_is_read() {
    let plain = datagram(26, &[]);
    let mut reliable = [&plain[..3], b"\x00\x00\x00\x05", &plain[3..]].concat();
    reliable[0] += 4;
    reliable[2] |= 0x80;
    assert_eq!(Reply::parse(&reliable), Reply::parse(&plain));
}

#[test]
fn b11_unknown_game_types_and_teams_keep_their_numbers() {
    let mut clients = ClientsBuf::new();
    clients.push(Client { name: b"x", team: Team(9), spectator: false, ping: -1 }).unwrap();
    let info = Info { game_type: GameType(77), ..Info::default() };
    let reply = Reply::new(Echo::default(), info, Rules::default(), clients.as_clients(), b"").unwrap();
    let bytes = emitted(&reply);
    let read = Reply::parse(&bytes).unwrap();
    assert_eq!(read, reply);
    assert_eq!((read.info().game_type, read.clients().iter().next().unwrap().team), (GameType(77), Team(9)));
}

#[test]
fn other_messages_are_not_replies() {
    let mut bytes = datagram(26, &[]);
    bytes[2] = 14;
    assert_eq!(Reply::parse(&bytes), Err(DecodeError::new("message code", DecodeErrorKind::Unknown)));
    assert_eq!(Reply::parse(&[2, 0, 13]), Err(DecodeError::new("length", DecodeErrorKind::Invalid)));
    assert_eq!(
        Reply::parse(&[7, 0, 13, 1, 2, 3, 4]),
        Err(DecodeError::new("server title", DecodeErrorKind::Truncated))
    );
}

#[test]
fn a_reply_that_exceeds_a_datagram_is_rejected() {
    let clients = ClientsBuf::new();
    let title = vec![b'x'; MAX_REPLY];
    // 7 bytes before the title, 3 for its length, 9 after it, 5 of rules and 1 for an empty build description.
    let longest = MAX_REPLY - 25;
    let new = |length| {
        let info = Info { title: &title[..length], ..Info::default() };
        Reply::new(Echo::default(), info, Rules::default(), clients.as_clients(), b"")
    };
    let reply = new(longest).unwrap();
    let bytes = emitted(&reply);
    assert_eq!(bytes.len(), MAX_REPLY);
    assert_eq!(Reply::parse(&bytes), Ok(reply));
    assert_eq!(new(longest + 1), Err(ReplyTooLong));
}
