//! Every truncation and every change of one byte of each datagram: never a panic, and no data that the server did not send.

use super::*;
use crate::{ProbeResult, protocols::fixture};

/// The replies that each server sends after its challenge.
fn servers() -> Vec<Vec<Vec<u8>>> {
    let ship: &[u8] =
        b"\xff\xff\xff\xffI\x07Ship\0batavier\0ship\0The Ship\0\x60\x09\x02\x05\0dl\0\0\x01\x03\x051.0.0.4\0";
    let old: &[u8] = b"\xff\xff\xff\xffm192.0.2.7:27015\0Old\0cs_office\0cstrike\0Counter-Strike\0\x03\x0b\x2fDW\x01\
        \x01www.example.org\0\0\0\x07\0\0\0\x10\0\0\0\x01\0\x01\x02";
    let players = [PLAYERS_REPLY, &[1, 0, 0, 0, 0xe8, 3, 0, 0, 2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]].concat();
    let [head, tail] = [&RULES_REPLY[..20], &RULES_REPLY[20..]].map(<[u8]>::to_vec);
    let part = |numbers: &[u8], payload: &[u8]| [b"\xfe\xff\xff\xff\x07\0\0\0", numbers, payload].concat();
    let source = [part(&[2, 0, 0xe0, 4], &head), part(&[2, 1, 0xe0, 4], &tail)];
    let goldsrc = [part(&[0x02], &head), part(&[0x12], &tail)];
    vec![
        vec![INFO_REPLY.to_vec(), PLAYERS_REPLY.to_vec(), RULES_REPLY.to_vec()],
        [vec![ship.to_vec(), players], source.to_vec()].concat(),
        [vec![old.to_vec(), PLAYERS_REPLY.to_vec()], goldsrc.to_vec()].concat(),
    ]
}

/// The reply with this datagram in place of the one with this index.
fn result_of(server: &[Vec<u8>], index: usize, changed: &[u8]) -> ProbeResult {
    let challenge = challenge(b"abcd");
    let mut datagrams: Vec<&[u8]> = [&challenge].into_iter().chain(server).map(|datagram| &datagram[..]).collect();
    datagrams[index + 1] = changed;
    reply_to(Protocol::A2s.players(), &datagrams)
}

#[test]
fn truncations() {
    for server in servers() {
        let whole = reply_of(result_of(&server, 0, &server[0]));
        assert!(whole.is_complete());
        for (index, datagram) in server.iter().enumerate() {
            for cut in fixture::truncations(datagram) {
                let (reply, end) = (reply_of(result_of(&server, index, cut)), cut.len());
                // An end of the optional fields, or of the bots of an old server, cannot be told from one that is meant.
                let is_possible = index == 0 && (datagram[end - end.min(1)] == 0 || datagram[4] == b'm');
                assert!(!reply.is_complete() || is_possible || reply.info == whole.info, "{index} {end}");
                let info = &reply.info;
                assert!(info.name.is_none() || info.name == whole.info.name);
                // The end of a part cannot be told from one that is meant: UDP does not cut datagrams.
                let is_part = datagram[0] == 0xfe;
                assert!(is_part || info.rules.iter().all(|(name, value)| whole.info.rules.get(name) == Some(value)));
                let list = whole.info.player_list.as_ref().unwrap();
                let names = |list: &[Player]| list.iter().map(|player| player.name.clone()).collect::<Vec<_>>();
                assert!(info.player_list.as_ref().is_none_or(|own| names(list).starts_with(&names(own))));
            }
        }
    }
}

#[test]
fn changed_bytes() {
    for server in servers() {
        for (index, datagram) in server.iter().enumerate() {
            for changed in fixture::mutations(datagram) {
                let result = result_of(&server, index, &changed);
                assert_is_harmless(&result);
                let info = reply_of(result).info;
                assert!(info.rules.len() <= 3);
                assert!(info.player_list.is_none_or(|list| list.len() <= 4));
            }
        }
    }
}
