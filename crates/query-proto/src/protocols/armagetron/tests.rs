//! Armagetron through a prober, with replies of a server of version 0.2.9.1.0.

use crate::{
    ExtensionValue, MissingPart, Protocol,
    protocols::fixture::{
        Exchange, assert_changes_are_harmless, assert_cuts_are_harmless, assert_order_is_irrelevant, probe, reply_of,
    },
};

const SHORT: &[u8] = include_bytes!("../../../tests/captures/armagetron/short.bin");
const LONG: &[u8] = include_bytes!("../../../tests/captures/armagetron/long.bin");

fn answer(query: &[u8]) -> Vec<Vec<u8>> {
    match query {
        b"\0\x34\0\0\0\0\0\x11" => vec![SHORT.to_vec()],
        b"\0\x35\0\0\0\0\0\x11" => vec![LONG.to_vec()],
        _ => panic!("{}", query.escape_ascii()),
    }
}

/// A text as words.
fn text(text: &[u8]) -> Vec<u16> {
    let terminated = [text, b"\0"].concat();
    let signed = |byte: &u8| i16::from(byte.cast_signed());
    let words = terminated
        .chunks(2)
        .map(|pair| signed(&pair[0]).wrapping_add(pair.get(1).map_or(0, |second| signed(second) << 8)).cast_unsigned());
    std::iter::once(terminated.len() as u16).chain(words).collect()
}

/// The captured description with these users instead of none.
fn with_users(users: u16, names: &[u8], ids: &[u8]) -> Vec<u8> {
    let number = |number: u16| vec![number, 0];
    let words = [
        number(4534),
        vec![0],
        text(b"name"),
        number(users),
        number(0),
        number(17),
        text(b"0.2.8"),
        number(300),
        text(names),
        text(b""),
        text(b""),
        text(ids),
        vec![5],
    ]
    .concat();
    let head = [51, 0, words.len() as u16];
    head.iter().chain(&words).chain(&[0]).flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn a_real_server_is_described_completely() {
    let reply = probe(Protocol::Armagetron.players(), &answer);
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!(info.name.as_deref(), Some("Captest öäx"));
    assert_eq!((info.description.as_deref(), info.website.as_deref()), (Some("optäions"), Some("http://example.org/")));
    assert_eq!(info.version.as_deref(), Some("0.2.9.1_alpha20230222 unix dedicated"));
    assert_eq!((info.players, info.max_players, info.player_list.as_deref()), (Some(0), Some(12), Some(&[][..])));
    let own = &info.extensions[&Protocol::Armagetron];
    assert_eq!((own.number("oldest_protocol"), own.number("latest_protocol")), (Some(0), Some(17)));
    assert_eq!((own.switch("authentication_required"), own.switch("team_play")), (Some(false), Some(true)));
}

#[test]
fn a_server_ignores_long_queries_without_a_short_one() {
    let mut exchange = Exchange::new(Protocol::Armagetron.info());
    let queries = exchange.queries();
    assert_eq!(queries.iter().map(|query| query[1]).collect::<Vec<_>>(), [52, 53]);
    exchange.receive(SHORT);
    exchange.wait();
    assert_eq!(exchange.queries().iter().map(|query| query[1]).collect::<Vec<_>>(), [52, 53]);
    exchange.receive(LONG);
    let result = exchange.finish();
    assert_eq!(result.retries, 1);
    assert!(reply_of(result).is_complete());
}

#[test]
fn users_have_names_without_colours_and_identifiers_if_they_have_logged_in() {
    let reply = probe(Protocol::Armagetron.players(), &|query| match query[1] {
        52 => vec![SHORT.to_vec()],
        _ => vec![with_users(3, b"0xff0000Ada\nM\xfcller\n0x0\n", b"\nmueller@forums\n\n")],
    });
    let info = reply.info;
    assert_eq!((info.players, info.max_players), (Some(3), Some(300)));
    let list: Vec<_> = info.player_list.iter().flatten().map(|it| (&*it.name, it.extension.get("global_id"))).collect();
    let known = ExtensionValue::Text("mueller@forums".into());
    let unknown = Some(&ExtensionValue::Unknown);
    assert_eq!(list, [("Ada", unknown), ("Müller", Some(&known)), ("", unknown)]);
}

#[test]
fn presence_takes_the_short_query_only() {
    let reply = probe(Protocol::Armagetron.presence(), &|query| if query[1] == 52 { answer(query) } else { panic!() });
    assert!(reply.is_complete());
    assert_eq!(reply.info.game.as_deref(), Some("armagetron"));
}

#[test]
fn a_missing_description_is_named() {
    let mut exchange = Exchange::new(Protocol::Armagetron.players());
    exchange.receive(SHORT);
    exchange.answer(&|query| if query[1] == 52 { answer(query) } else { Vec::new() });
    let reply = reply_of(exchange.finish());
    assert_eq!(reply.missing, [MissingPart::Part("the long description")]);
}

#[test]
fn damage_is_harmless() {
    let query = Protocol::Armagetron.players();
    assert_order_is_irrelevant(query, &answer);
    assert_cuts_are_harmless(query, &answer);
    assert_changes_are_harmless(query, &answer);
}
