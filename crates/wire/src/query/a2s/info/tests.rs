//! Infos as Valve documents them, and of every form.

use super::*;
use crate::query::a2s::Response;
use alloc::{vec, vec::Vec};

/// An example of Valve's: Counter-Strike: Source.
const SOURCE: &[u8] =
    b"\xff\xff\xff\xffI\x02game2xs.com Counter-Strike Source #1\0de_dust\0cstrike\0Counter-Strike: Source\0\
    \xf0\0\x05\x10\x04dl\0\x001.0.0.22\0";

/// A server of The Ship.
const SHIP_SERVER: &[u8] =
    b"\xff\xff\xff\xffI\x07Ship Server\0batavier\0ship\0The Ship\0\x60\x09\x01\x05\0dl\0\0\x01\x03\x031.0.0.4\0";

/// Counter-Strike of GoldSrc, with a mod.
const OBSOLETE: &[u8] =
    b"\xff\xff\xff\xffm192.0.2.7:27015\0Clan Server\0cs_office\0cstrike\0Counter-Strike\0\x01\x0b\x2fDL\0\
    \x01www.counter-strike.net\0\0\0\x01\0\0\0\0\0\0\x0b\0\x01\x01\x02";

fn parse(message: &[u8]) -> Info<'_> {
    let Ok(Response::Info(info)) = Response::parse(message) else { panic!("not an info") };
    info
}

fn emitted(info: &Info<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    info.emit(&mut out);
    out
}

#[test]
fn an_info_of_source_has_all_fields() {
    let info = parse(SOURCE);
    let expected = Info {
        protocol: 2,
        name: b"game2xs.com Counter-Strike Source #1",
        map: b"de_dust",
        folder: b"cstrike",
        game: b"Counter-Strike: Source",
        app_id: Some(240),
        players: 5,
        max_players: 16,
        bots: Some(4),
        server_type: b'd',
        environment: b'l',
        version: Some(b"1.0.0.22"),
        ..Info::default()
    };
    assert_eq!(info, expected);
    assert_eq!(emitted(&info), SOURCE);
}

#[test]
fn the_ship_has_three_more_fields() {
    let info = parse(SHIP_SERVER);
    assert_eq!(info.ship, Some(Ship { mode: 1, witnesses: 3, duration: 3 }));
    assert_eq!((info.version, info.full_app_id()), (Some(&b"1.0.0.4"[..]), Some(2400)));
    assert_eq!(emitted(&info), SHIP_SERVER);
}

#[test]
fn an_obsolete_info_has_an_address_and_a_mod() {
    let info = parse(OBSOLETE);
    let mod_info = Mod {
        link: b"www.counter-strike.net",
        download_link: b"",
        version: 1,
        size: 0x0b00_0000,
        multiplayer_only: false,
        own_library: true,
    };
    assert_eq!(info.obsolete, Some(Obsolete { address: b"192.0.2.7:27015", mod_info: Some(mod_info) }));
    assert_eq!((info.players, info.max_players, info.bots, info.protocol), (1, 11, Some(2), 47));
    assert_eq!((info.server_type, info.environment, info.password, info.vac), (b'd', b'l', false, true));
    assert_eq!((info.app_id, info.version), (None, None));
}

#[test]
fn hltv_has_no_bots() {
    let info = parse(b"\xff\xff\xff\xffm192.0.2.7:27020\0HLTV Server\0op4_kbase\0gearbox\0HLTV\0\0\x01\x30pw\0\0\0");
    assert_eq!((info.players, info.max_players, info.bots, info.server_type), (0, 1, None, b'p'));
    assert_eq!(info.obsolete.unwrap().mod_info, None);
}

#[test]
fn every_combination_of_flags_survives_the_round_trip() {
    for flags in 0..32 {
        let some = |bit: u8| flags & (1 << bit) != 0;
        let extra = Extra {
            port: some(0).then_some(27_015),
            steam_id: some(1).then_some(90_071_992_547_409_920),
            source_tv: some(2).then_some((27_020, b"TV")),
            keywords: some(3).then_some(b"alltalk,increased_maxplayers"),
            game_id: some(4).then_some(0x0123_4567_0004_3e48),
        };
        let info = Info { app_id: Some(0x3e48), bots: Some(0), version: Some(b"1"), extra, ..Info::default() };
        let bytes = emitted(&info);
        assert_eq!(parse(&bytes), info);
        assert_eq!(info.full_app_id(), Some(if some(4) { 0x4_3e48 } else { 0x3e48 }));
    }
}

#[test]
fn only_optional_fields_may_be_cut_off() {
    for message in [SOURCE, SHIP_SERVER, &OBSOLETE[..OBSOLETE.len() - 1]] {
        for end in 0..message.len() {
            assert!(Response::parse(&message[..end]).is_err(), "{end}");
        }
    }
    let extra = Extra { port: Some(1), source_tv: Some((2, b"TV")), game_id: Some(3), ..Extra::default() };
    let message = emitted(&Info { bots: Some(0), extra, ..Info::default() });
    let whole = message.len() - 1 - 2 - (2 + 3) - 8;
    assert_eq!(parse(&message[..whole]).cut, None, "without flags");
    let cut: Vec<_> = (whole + 1..message.len()).map(|end| parse(&message[..end]).cut.unwrap().field).collect();
    let expected = [vec!["port"; 2], vec!["port of SourceTV"; 2], vec!["name of SourceTV"; 3], vec!["game ID"; 8]];
    assert_eq!(cut, expected.concat());
}
