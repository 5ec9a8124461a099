//! The query through a prober: challenge, status, loss, forgery and damage.

use crate::{
    MissingPart, ProbeOutcome, ProbeResult, Protocol, RttMethod, ServerInfo, ServerQuery,
    protocols::fixture::{Exchange, assert_is_harmless, mutations, truncations},
};

fn session(query: &[u8]) -> &[u8] {
    &query[3..7]
}

fn challenge(query: &[u8], number: &str) -> Vec<u8> {
    [&[9], session(query), number.as_bytes(), &[0]].concat()
}

fn status(query: &[u8], body: &[u8]) -> Vec<u8> {
    [&[0], session(query), b"splitnum\0\x80\0", body].concat()
}

const BODY: &[u8] = b"hostname\0A \xa7bMinecraft\xa7r Server\0gametype\0SMP\0game_id\0MINECRAFT\0version\x001.20.4\0\
    plugins\0Paper on 1.20.4: WorldEdit 7.2; Essentials\0map\0world\0numplayers\x002\0maxplayers\x0020\0hostport\x0025565\0\
    hostip\x00127.0.1.1\0\0\x01player_\0\0Ada\0Gr\x1bce\0\0";

/// The result for a server that answers with this status.
fn answer(query: ServerQuery, body: &[u8]) -> ProbeResult {
    let mut exchange = Exchange::new(query);
    let handshake = exchange.queries().concat();
    exchange.receive(&challenge(&handshake, "9513307"));
    let query = exchange.queries().concat();
    assert_eq!(query[7..], [0x00, 0x91, 0x29, 0x5b, 0, 0, 0, 0]);
    exchange.receive(&status(&query, body));
    exchange.finish()
}

fn info_of(result: &ProbeResult) -> &ServerInfo {
    &result.reply().unwrap().info
}

#[test]
fn a_server_is_described_completely() {
    let result = answer(Protocol::MinecraftQuery.players(), BODY);
    assert_eq!((result.retries, result.malformed), (0, 0));
    let reply = result.reply().unwrap();
    assert!(reply.is_complete());
    assert_eq!(reply.round_trip.method, RttMethod::Echo);
    let info = &reply.info;
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("A Minecraft Server"), Some("world")));
    assert_eq!((info.players, info.max_players, info.mode.as_deref()), (Some(2), Some(20), Some("SMP")));
    assert_eq!(info.version.as_deref(), Some("1.20.4"));
    let mods: Vec<_> = info.mods.iter().map(|one| (one.id.as_deref().unwrap(), one.name.as_deref())).collect();
    assert_eq!(mods, [("WorldEdit", Some("WorldEdit 7.2")), ("Essentials", None)]);
    let names: Vec<_> = info.player_list.iter().flatten().map(|player| &*player.name).collect();
    assert_eq!(names, ["Ada", "Gr\u{fffd}ce"]);
    assert_eq!(info.rules["hostport"], "25565");
    let software = info.extensions[&Protocol::MinecraftQuery].get("software");
    assert_eq!(software, Some(&"Paper on 1.20.4".to_owned().into()));
}

#[test]
fn a_challenge_is_enough_for_presence() {
    let mut exchange = Exchange::new(Protocol::MinecraftQuery.presence());
    let handshake = exchange.queries().concat();
    exchange.receive(&challenge(&handshake, "1"));
    assert!(exchange.queries().concat().is_empty());
    let result = exchange.finish();
    assert!(result.reply().unwrap().is_complete());
}

#[test]
fn a_lost_status_is_requested_again_with_the_challenge() {
    let mut exchange = Exchange::new(Protocol::MinecraftQuery.players());
    let handshake = exchange.queries().concat();
    exchange.receive(&challenge(&handshake, "7"));
    exchange.receive(&challenge(&handshake, "7"));
    assert_eq!(exchange.prober.stats().redundant, 1);
    let first = exchange.queries().concat();
    let second = exchange.retries().concat();
    assert_eq!((first.len(), second.len(), &second[7..11]), (15, 15, &[0, 0, 0, 7][..]));
    // The reply to the first query is late.
    exchange.receive(&status(&first, BODY));
    let result = exchange.finish();
    assert_eq!((info_of(&result).players, result.retries), (Some(2), 1));
}

#[test]
fn a_server_that_gives_no_status_is_described_by_nothing() {
    let mut exchange = Exchange::new(Protocol::MinecraftQuery.info());
    let handshake = exchange.queries().concat();
    exchange.receive(&challenge(&handshake, "7"));
    let reply = exchange.reply();
    assert_eq!(reply.missing, [MissingPart::Part("status (settings and players)")]);
    assert_eq!(reply.info, ServerInfo::default());
}

#[test]
fn replies_to_other_queries_are_forged() {
    let mut exchange = Exchange::new(Protocol::MinecraftQuery.info());
    let handshake = exchange.queries().concat();
    let mut other = handshake.clone();
    other[4] ^= 1;
    exchange.receive(&challenge(&other, "7"));
    exchange.receive(&status(&other, BODY));
    assert_eq!(exchange.prober.stats().wrong_echo, 2);
    assert_eq!(exchange.finish().outcome, ProbeOutcome::TimedOut);
}

#[test]
fn players_that_are_cut_off_are_missing() {
    for (cut, received) in [(1, 2), (2, 1), (8, 0), (15, 0)] {
        let result = answer(Protocol::MinecraftQuery.players(), &BODY[..BODY.len() - cut]);
        let reply = result.reply().unwrap();
        assert_eq!(reply.missing.len(), 1, "{cut}");
        assert_eq!(reply.info.player_list.as_ref().map_or(0, Vec::len), received, "{cut}");
    }
    let odd = b"numplayers\0-1\0maxplayers\x0099999\0hostname\0\0\0";
    let result = answer(Protocol::MinecraftQuery.info(), odd);
    let info = info_of(&result);
    assert_eq!((info.players, info.max_players, &info.name, &info.player_list), (None, Some(u16::MAX), &None, &None));
}

#[test]
fn no_damage_to_a_reply_does_harm() {
    for changed in mutations(BODY) {
        assert_is_harmless(&answer(Protocol::MinecraftQuery.players(), &changed));
    }
    for cut in truncations(BODY) {
        let result = answer(Protocol::MinecraftQuery.players(), cut);
        assert!(result.reply().is_none_or(|reply| !reply.is_complete()), "{}", cut.len());
    }
}
