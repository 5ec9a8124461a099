//! AssaultCube through a prober, with replies as its source describes them.

use crate::{
    Protocol,
    protocols::fixture::{assert_changes_are_harmless, assert_order_is_irrelevant, probe},
};

fn answer(query: &[u8]) -> Vec<Vec<u8>> {
    let player = |client: u8, name: &[u8], team: &[u8], state: u8| {
        let numbers = [&[1, 2, 3, 0, 50, 100, 0, 6, 1][..], &[state]].concat();
        [b"\xff\x68\0\xf5", &[client, 60][..], name, b"\0", team, b"\0", &numbers, b"\x7f\0\0\x05\x09"].concat()
    };
    let bodies = match query {
        [0x81, _, _, _, _, 0] => vec![b"\x80\xb1\x04\x05\x02\x0aac_depot\0\x0c1Caf\xc3\xa9\0\x10\x41\0".to_vec()],
        [0, 0, ..] => vec![b"\xff\x68\x3c".to_vec()],
        [0, 1, ..] => {
            vec![b"\xff\x68\0\xf6\0\x01".to_vec(), player(0, b"Ada", b"CLA", 0), player(1, b"M\xfcller", b"RVSF", 5)]
        }
        _ => vec![b"\xff\x68\0\x05\x0aCLA\0\x0a\x02\xffRVSF\0\x09\0\xff".to_vec()],
    };
    bodies.iter().map(|body| [query, body].concat()).collect()
}

#[test]
fn a_server_is_described_completely() {
    let reply = probe(Protocol::AssaultCube.players(), &answer);
    assert!(reply.is_complete());
    let info = reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Café"), Some("ac_depot")));
    assert_eq!((info.game.as_deref(), info.mode.as_deref()), (Some("assaultcube"), Some("capture the flag")));
    assert_eq!((info.players, info.max_players, info.password), (Some(2), Some(16), Some(true)));
    let list: Vec<_> = info.player_list.iter().flatten().map(|it| (&*it.name, it.team, it.spectator)).collect();
    assert_eq!(list, [("Ada", Some(0), false), ("Müller", Some(1), true)]);
    assert_eq!((&*info.rules["score of CLA"], &*info.rules["score of RVSF"]), ("2", "0"));
    let own = &info.extensions[&Protocol::AssaultCube];
    assert_eq!((own.number("minutes_left"), own.number("uptime_s")), (Some(10), Some(60)));
    assert_eq!(own.get("master_mode"), Some(&"private".to_owned().into()));
}

#[test]
fn damage_is_harmless() {
    assert_order_is_irrelevant(Protocol::AssaultCube.players(), &answer);
    assert_changes_are_harmless(Protocol::AssaultCube.players(), &answer);
}
