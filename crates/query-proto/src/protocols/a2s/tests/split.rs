//! Replies in parts: in any order, repeated, lost, compressed, hostile.

use super::*;
use rallypoint_wire::query::a2s::emit_split;
use std::collections::BTreeMap;

const BZIP2: [&[u8]; 2] = [
    include_bytes!("../../../../tests/captures/a2s/rules-bzip2-0.bin"),
    include_bytes!("../../../../tests/captures/a2s/rules-bzip2-1.bin"),
];

/// A list of rules that is longer than a datagram.
fn long_rules(count: u16, value: &str) -> Vec<u8> {
    let mut message = b"\xff\xff\xff\xffE".to_vec();
    message.extend(count.to_le_bytes());
    for rule in 0..count {
        message.extend(format!("rule_{rule}\0{value} {rule}\0").bytes());
    }
    message
}

/// How a message is split.
#[derive(Clone, Copy, Debug)]
enum Form {
    Source,
    OldSource,
    GoldSrc,
}

fn split(message: &[u8], form: Form, id: u32, size: usize) -> Vec<Vec<u8>> {
    let total = message.len().div_ceil(size) as u8;
    let part = |(number, payload): (u8, &[u8])| {
        let numbers = match form {
            Form::Source => vec![total, number, 0xe0, 0x04],
            Form::OldSource => vec![total, number],
            Form::GoldSrc => vec![number << 4 | total],
        };
        [&[0xfe, 0xff, 0xff, 0xff], &id.to_le_bytes()[..], &numbers, payload].concat()
    };
    (0..total).zip(message.chunks(size)).map(part).collect()
}

/// An exchange that has everything except the rules.
fn waiting() -> Exchange {
    let mut exchange = Exchange::new(Protocol::A2s.players());
    exchange.queries();
    for datagram in [&challenge(b"abcd")[..], INFO_REPLY, PLAYERS_REPLY] {
        exchange.deliver(datagram);
    }
    exchange
}

fn rules_of(exchange: Exchange) -> Result<usize, Vec<MissingPart>> {
    let reply = exchange.reply();
    for (name, value) in &reply.info.rules {
        assert_eq!(value.split(' ').next_back(), name.split('_').next_back(), "of the same rule");
    }
    if reply.is_complete() { Ok(reply.info.rules.len()) } else { Err(reply.missing) }
}

fn received(parts: &[impl AsRef<[u8]>]) -> Result<usize, Vec<MissingPart>> {
    let mut exchange = waiting();
    for part in parts {
        exchange.deliver(part.as_ref());
    }
    rules_of(exchange)
}

fn no_rules() -> Result<usize, Vec<MissingPart>> {
    Err(vec![MissingPart::Part("the rules (A2S_RULES)")])
}

#[test]
fn every_form_in_every_order() {
    let message = long_rules(100, "value");
    for form in [Form::Source, Form::OldSource, Form::GoldSrc] {
        let parts = split(&message, form, 7, 800);
        assert_eq!(parts.len(), 3);
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            assert_eq!(received(&order.map(|index| &parts[index])), Ok(100), "{form:?} {order:?}");
        }
        let repeated = [1, 1, 0, 1, 0, 2].map(|index| &parts[index]);
        assert_eq!(received(&repeated), Ok(100), "{form:?}");
        assert_eq!(received(&parts[..2]), no_rules(), "{form:?}");
        assert_eq!(received(&parts[1..]), no_rules(), "{form:?}");
    }
}

#[test]
fn a_message_of_one_part_is_complete() {
    let message = long_rules(3, "value");
    for form in [Form::Source, Form::OldSource, Form::GoldSrc] {
        assert_eq!(received(&split(&message, form, 7, 1_400)), Ok(3));
    }
}

#[test]
fn as_many_parts_as_the_forms_allow() {
    assert_eq!(received(&split(&long_rules(200, "value"), Form::GoldSrc, 7, 280)), Ok(200));
    let message = long_rules(6_000, "a value");
    let parts = split(&message, Form::Source, 7, message.len().div_ceil(255));
    assert_eq!(parts.len(), 255);
    let backwards: Vec<_> = parts.iter().rev().collect();
    assert_eq!(received(&backwards), Ok(6_000));
}

#[test]
fn the_parts_of_different_messages_are_not_mixed() {
    let (first, second) = (long_rules(100, "first"), long_rules(100, "other"));
    let [first, second] = [(first, 7), (second, 8)].map(|(message, id)| split(&message, Form::Source, id, 800));
    assert_eq!(received(&[&first[0], &second[1], &first[2]]), no_rules());
    assert_eq!(received(&[&first[0], &second[0], &first[2], &second[1], &second[2]]), Ok(100));
}

#[test]
fn players_and_rules_may_arrive_interleaved() {
    let mut players = b"\xff\xff\xff\xffD\x64".to_vec();
    (0..100).for_each(|_| players.extend(b"\0somebody\0\x01\0\0\0\0\0\0\0"));
    for ids in [[7, 8], [0, 0]] {
        let players = split(&players, Form::Source, ids[0], 900);
        let rules = split(&long_rules(100, "value"), Form::Source, ids[1], 800);
        let mut exchange = Exchange::new(Protocol::A2s.players());
        exchange.queries();
        exchange.deliver(&challenge(b"abcd"));
        exchange.deliver(INFO_REPLY);
        let mixed = [&players[0], &rules[0], &rules[2], &players[1], &players[2], &rules[1]];
        for part in mixed {
            exchange.deliver(part);
        }
        if ids == [0, 0] {
            // With one number for both, what was put together is no list. The retry arrives in order.
            assert_eq!(exchange.prober.in_flight(), 1);
            for part in players.iter().chain(&rules) {
                exchange.deliver(part);
            }
        }
        let reply = exchange.reply();
        assert_eq!(
            (reply.info.player_list.map(|list| list.len()), reply.info.rules.len()),
            (Some(100), 100),
            "{ids:?}"
        );
    }
}

#[test]
fn a_retry_with_the_same_number_replaces_what_has_changed() {
    let (old, new) = (long_rules(100, "early"), long_rules(100, "later"));
    let [old, new] = [old, new].map(|message| split(&message, Form::Source, 7, 800));
    // The third part of the first reply is lost, and the second part of the second one delayed.
    assert_eq!(received(&[&old[0], &old[1], &new[0], &new[2], &new[1]]), Ok(100));
    let other_total = split(&long_rules(60, "later"), Form::Source, 7, 800);
    assert_eq!(received(&[&old[0], &old[1], &other_total[0], &other_total[1]]), Ok(60));
}

fn decompressed(parts: [&[u8]; 2]) -> BTreeMap<String, String> {
    let mut exchange = waiting();
    for part in parts {
        exchange.deliver(part);
    }
    let reply = exchange.reply();
    assert!(reply.is_complete());
    reply.info.rules
}

#[test]
fn compressed_rules_are_decompressed() {
    for order in [[0, 1], [1, 0]] {
        let rules = decompressed(order.map(|index| BZIP2[index]));
        assert_eq!((rules.len(), &*rules["rule_0"]), (60, "5feceb66ffc86f38d952786c6d696c79c2dbc239"));
    }
    assert_eq!(received(&BZIP2[..1]), no_rules());
}

#[test]
fn compressed_rules_in_the_form_with_a_size() {
    let parts = BZIP2.map(|part| [&part[..10], &[0xe0, 0x04], &part[10..]].concat());
    let mut exchange = waiting();
    exchange.deliver(&parts[1]);
    exchange.deliver(&parts[0]);
    assert_eq!(exchange.reply().info.rules.len(), 60);
}

#[test]
fn compressed_data_that_is_damaged_is_no_reply() {
    let whole = BZIP2.concat().len();
    let mut intact = 0;
    let expected = decompressed(BZIP2);
    for at in (10..whole).step_by(3) {
        let mut parts = BZIP2.map(<[u8]>::to_vec);
        let (part, at) = if at < parts[0].len() { (0, at) } else { (1, at - parts[0].len()) };
        if part == 1 && at < 10 {
            continue;
        }
        parts[part][at] ^= 1;
        let mut exchange = waiting();
        for part in &parts {
            exchange.deliver(part);
        }
        let rules = exchange.reply().info.rules;
        // A few bits mean nothing, such as those that limit the size of a block.
        intact += usize::from(!rules.is_empty());
        assert!(rules.is_empty() || rules == expected, "byte {at} of part {part}");
    }
    assert!(intact < 20, "{intact}");
}

#[test]
fn a_decompression_bomb_is_bounded() {
    // 40 MB of zero bytes in 46 bytes, announced as 100 bytes, as the largest size that is allowed, and as more.
    let bomb =
        b"BZh9\x31\x41\x59\x26\x53\x59\xde\xad\xbe\xef\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
    for size in [100_u32, 256 << 10, (256 << 10) + 1, u32::MAX] {
        let body = [&size.to_le_bytes()[..], &[1, 2, 3, 4], bomb].concat();
        let part = [b"\xfe\xff\xff\xff\x07\0\0\x80\x01\0", &body[..]].concat();
        assert_eq!(received(&[part]), no_rules(), "{size}");
    }
    // A real one: a megabyte of zero bytes in 45.
    let bomb: &[u8] = include_bytes!("../../../../tests/captures/a2s/bomb.bz2");
    for size in [100_u32, 256 << 10, 1 << 20] {
        let mut exchange = waiting();
        for id in 0..20_u32 {
            let head = [&[0xfe, 0xff, 0xff, 0xff], &(id | 1 << 31).to_le_bytes()[..], &[1, 0]].concat();
            exchange.deliver(&[&head[..], &size.to_le_bytes(), &[1, 2, 3, 4], bomb].concat());
        }
        assert_eq!(rules_of(exchange), no_rules(), "{size}");
    }
}

#[test]
fn endless_parts_are_not_kept() {
    let mut exchange = waiting();
    for id in 0..10_000_u32 {
        exchange.deliver(&[&[0xfe, 0xff, 0xff, 0xff], &id.to_le_bytes()[..], &[255, 1, 0xe0, 4, 0]].concat());
    }
    let stats = exchange.prober.stats();
    assert_eq!(stats.redundant, 10_000 - 512);
    assert_eq!(rules_of(exchange), no_rules());
}

#[test]
fn what_a_responder_splits_is_put_together() {
    let message = long_rules(300, "value");
    assert_eq!(received(&emit_split(&message).unwrap()), Ok(300));
}

#[test]
fn an_info_may_be_split_too() {
    let mut exchange = Exchange::new(Protocol::A2s.info());
    exchange.queries();
    for part in split(INFO_REPLY, Form::Source, 7, 50) {
        exchange.deliver(&part);
    }
    let reply = exchange.reply();
    assert!(reply.is_complete());
    assert_eq!(reply.info.name.as_deref(), Some("Bacon Town"));
}
