//! OpenTTD over UDP through a prober, with replies as version 1.11 documents them, and one of a server of version 13.

use crate::{
    ExtensionValue, MissingPart, Protocol, RttMethod,
    protocols::fixture::{
        Exchange, assert_changes_are_harmless, assert_cuts_are_harmless, assert_order_is_irrelevant, probe, reply_of,
    },
};

/// The reply of OpenTTD 13.0 to "find a server".
const VERSION_13: &[u8] = include_bytes!("../../../tests/captures/openttd_udp/version-13.bin");

fn datagram(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u16 + 2).to_le_bytes(), body].concat()
}

fn game() -> Vec<u8> {
    let grfs = [&b"\x02"[..], b"MG\x03\x01", &[7; 16], b"\x44\x44\x08\x04", &[8; 16]].concat();
    let counts = b"\x1f\xde\x0a\0\x00\xde\x0a\0\x0f\x02\x0a";
    let texts = "Bus \u{e08b}Town ö\x001.11.2\0".as_bytes();
    datagram(
        &[b"\x01\x04", &grfs[..], counts, texts, b"\x01\x01\x19\x07\x02Random Map\0\x00\x01\x00\x02\x01\x01"].concat(),
    )
}

fn companies() -> Vec<u8> {
    let company = |id, name: &[u8], is_ai| {
        let money = [1_000_i64, -20, 300].map(i64::to_le_bytes).concat();
        [&[id][..], name, b"\0\x9e\x07\0\0", &money, b"\xf4\x01\x01", &[1, 0].repeat(10), &[is_ai]].concat()
    };
    datagram(&[b"\x03\x06\x02", &company(0, b"First", 0)[..], &company(4, b"B\xc3\xbcs", 1)].concat())
}

fn answer(query: &[u8]) -> Vec<Vec<u8>> {
    vec![if query[2] == 0 { game() } else { companies() }]
}

#[test]
fn a_game_is_described_with_its_companies() {
    let reply = probe(Protocol::OpenttdUdp.players(), &answer);
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::FirstReply);
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Bus Town ö"), Some("Random Map")));
    assert_eq!((info.version.as_deref(), info.password), (Some("1.11.2"), Some(true)));
    assert_eq!((info.players, info.spectators, info.max_players), (Some(5), Some(2), Some(25)));
    let mods: Vec<_> = info.mods.iter().map(|one| one.id.as_deref().unwrap()).collect();
    assert_eq!(mods, ["4d470301", "44440804"]);
    let teams: Vec<_> = info.teams.iter().map(|team| (team.id, &*team.name)).collect();
    assert_eq!(teams, [(0, "First"), (4, "Büs")]);
    assert_eq!(
        info.rules["company 5"],
        "Büs: founded 1950, value 1000, money -20, income 300, performance 500, 1 trains, 1 lorries, 1 buses, 1 aircraft, \
         1 ships, 5 stations, AI, password"
    );
    let own = &info.extensions[&Protocol::OpenttdUdp];
    assert_eq!((own.number("companies"), own.number("max_companies")), (Some(2), Some(15)));
    assert_eq!(own.get("date"), Some(&ExtensionValue::Text("1950-01-01".into())));
    assert_eq!(own.get("start_date"), Some(&ExtensionValue::Text("1949-12-01".into())));
    assert_eq!(own.get("landscape"), Some(&ExtensionValue::Text("arctic".into())));
}

#[test]
fn a_later_version_is_there_but_describes_nothing() {
    let reply = probe(Protocol::OpenttdUdp.players(), &|query| {
        if query[2] == 0 { vec![VERSION_13.to_vec()] } else { Vec::new() }
    });
    assert_eq!(reply.missing, [MissingPart::Part("the game (over TCP from version 12 on)")]);
    assert_eq!((reply.info.game.as_deref(), reply.info.name), (Some("openttd"), None));
    let presence = probe(Protocol::OpenttdUdp.presence(), &|_| vec![VERSION_13.to_vec()]);
    assert!(presence.is_complete());
}

#[test]
fn what_does_not_arrive_is_named() {
    for (lost, missing) in [(0, "the game"), (2, "companies")] {
        let mut exchange = Exchange::new(Protocol::OpenttdUdp.players());
        exchange.answer(&|query| if query[2] == lost { Vec::new() } else { answer(query) });
        let reply = reply_of(exchange.finish());
        assert_eq!(reply.missing, [MissingPart::Part(missing)]);
    }
}

#[test]
fn damage_is_harmless() {
    let query = Protocol::OpenttdUdp.players();
    assert_order_is_irrelevant(query, &answer);
    assert_cuts_are_harmless(query, &answer);
    assert_changes_are_harmless(query, &answer);
}
