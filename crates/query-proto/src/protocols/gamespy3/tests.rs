//! GameSpy 3 through a prober, with replies in the form of its library.

use crate::{
    MissingPart, Player, ProbeOutcome, Protocol, RttMethod, ServerInfo,
    protocols::fixture::{Exchange, assert_is_harmless, assert_is_part_of, mutations, reply_of, truncations},
};

/// Battlefield 2, in three parts. The first one cuts a name, and the second one a score.
const PARTS: [&[u8]; 3] = [
    b"\x00hostname\0Ada's \xc4rena\0gamename\0battlefield2\0gamever\x001.5\0mapname\0Dragon Valley\0gametype\0gpm_cq\0\
numplayers\x003\0maxplayers\x0064\0hostport\x0016567\0password\x001\0bf2_ranked\x000\0\0\x01player_\0\0Ada\0Bo\0",
    b"\x01player_\0\x01Bob\0[BOT] Cy\0\0score_\0\x0012\0-3\0\0ping_\0\x0048\x00999\0\0\0team_\0\x001\x002\0",
    b"\x01team_\0\x002\x002\x001\0\0score_\0\x027\0\0AIBot_\0\x000\x000\x001\0\0\0\x02team_t\0\0MEC\0US\0\0score_t\0\x00100\x0090\0\0\0",
];

const CHALLENGE: &[u8] = b"-1287574694\0";

fn full_query() -> Exchange {
    Exchange::new(Protocol::GameSpy3.players())
}

/// The number of a query.
fn number(query: &[u8]) -> &[u8] {
    &query[3..7]
}

fn challenge(query: &[u8], text: &[u8]) -> Vec<u8> {
    [b"\x09", number(query), text].concat()
}

/// A part of the reply to a query.
fn part(query: &[u8], index: usize, is_last: bool, sections: &[u8]) -> Vec<u8> {
    [b"\0", number(query), b"splitnum\0", &[index as u8 | u8::from(is_last) << 7], sections].concat()
}

fn of_parts(query: &[u8], index: usize) -> Vec<u8> {
    part(query, index, index == PARTS.len() - 1, PARTS[index])
}

/// A server that has sent its challenge, and the query that it got then.
fn challenged() -> (Exchange, Vec<u8>) {
    let mut server = full_query();
    let query = server.queries().remove(0);
    server.receive(&challenge(&query, CHALLENGE));
    let query = server.queries().remove(0);
    (server, query)
}

fn info_of(sections: &[u8]) -> ServerInfo {
    let (mut server, query) = challenged();
    server.receive(&part(&query, 0, true, sections));
    server.reply().info
}

#[test]
fn a_challenge_and_parts_in_any_order_describe_a_server_completely() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut server = full_query();
        let queries = server.queries();
        assert_eq!((queries.len(), &queries[0][..3]), (1, &b"\xfe\xfd\x09"[..]));
        server.receive(&challenge(&queries[0], CHALLENGE));
        let queries = server.queries();
        assert_eq!((queries.len(), &queries[0][7..]), (1, &b"\xb3\x41\x2b\x5a\xff\xff\xff\x01"[..]));
        for index in order {
            server.receive(&of_parts(&queries[0], index));
        }
        let reply = server.reply();
        assert!(reply.is_complete(), "{:?}", reply.missing);
        assert_eq!(reply.round_trip.method, RttMethod::Echo);
        assert_eq!(reply.raw.datagrams().count(), 3, "without the challenge");
        let info = reply.info;
        assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("Ada's Ärena"), Some("Dragon Valley")));
        assert_eq!((info.game.as_deref(), info.mode.as_deref()), (Some("battlefield2"), Some("gpm_cq")));
        assert_eq!((info.version.as_deref(), info.password), (Some("1.5"), Some(true)));
        assert_eq!((info.players, info.bots, info.max_players), (Some(2), Some(1), Some(64)));
        assert_eq!((&*info.rules["bf2_ranked"], &*info.rules["score_t1"]), ("0", "90"));
        assert_eq!(info.extensions[&Protocol::GameSpy3].number("game_port"), Some(16_567));
        assert_eq!([info.team_name(1), info.team_name(2)], [Some("MEC"), Some("US")]);
        let player = |name: &str, score, ping_ms, team| Player {
            name: name.into(),
            score: Some(score),
            ping_ms,
            team: Some(team),
            ..Player::default()
        };
        let expected =
            [player("Ada", 12, Some(48), 2), player("Bob", -3, Some(999), 2), player("[BOT] Cy", 7, None, 1)];
        assert_eq!(info.player_list.unwrap(), expected);
    }
}

/// The challenge of the sample of GameSpy's library, and the parts of its reply, each after its length. The first one cuts a name.
const LIBRARY_CHALLENGE: &[u8] = include_bytes!("../../../tests/captures/gamespy3/qr2-challenge.bin");
const LIBRARY_PARTS: &[u8] = include_bytes!("../../../tests/captures/gamespy3/qr2-parts.bin");

#[test]
fn a_real_server_is_described_completely() {
    for is_reversed in [false, true] {
        let mut server = full_query();
        let query = server.queries().remove(0);
        server.receive(&challenge(&query, &LIBRARY_CHALLENGE[5..]));
        let query = server.queries().remove(0);
        let mut rest = LIBRARY_PARTS;
        let mut parts = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk() {
            let (part, behind) = behind.split_at(u16::from_le_bytes(*length).into());
            parts.push([b"\0", number(&query), &part[5..]].concat());
            rest = behind;
        }
        assert_eq!(parts.len(), 2);
        if is_reversed {
            parts.reverse();
        }
        parts.iter().for_each(|part| server.receive(part));
        let reply = server.reply();
        assert!(reply.is_complete(), "{:?}", reply.missing);
        let info = reply.info;
        assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("GameSpy QR2 Sample"), Some("gmtmap1")));
        assert_eq!((info.players, info.max_players), (Some(16), Some(32)));
        assert_eq!([info.team_name(0), info.team_name(1)], [Some("Red"), Some("Blue")]);
        let list = info.player_list.unwrap();
        let last = list.last().unwrap();
        assert_eq!(list.len(), 16);
        assert!(last.name.starts_with("Leeroy of the clan with the long name 0000") && last.name.ends_with("3375"));
        assert_eq!((last.score, last.ping_ms, last.team), (Some(9), Some(90), Some(1)));
    }
}

#[test]
fn a_server_without_challenges_is_asked_without() {
    // It says so.
    let mut server = full_query();
    let query = server.queries().remove(0);
    server.receive(&challenge(&query, b"0\0"));
    let query = server.queries().remove(0);
    assert_eq!(&query[7..], b"\xff\xff\xff\x01");
    (0..3).for_each(|index| server.receive(&of_parts(&query, index)));
    assert!(server.reply().is_complete());
    // Such a server does not answer the request for a challenge.
    let mut server = full_query();
    server.queries();
    let queries = server.retries();
    assert_eq!(queries.iter().map(|query| (query[2], query.len())).collect::<Vec<_>>(), [(9, 7), (0, 11)]);
    server.receive(&of_parts(&queries[1], 0));
    let queries = server.retries();
    assert_eq!(queries.iter().map(|query| (query[2], query.len())).collect::<Vec<_>>(), [(0, 11)]);
    (0..3).for_each(|index| server.receive(&of_parts(&queries[0], index)));
    assert!(server.reply().is_complete());
}

#[test]
fn a_retry_begins_with_another_challenge_and_its_parts_are_not_mixed() {
    let (mut server, first) = challenged();
    server.receive(&of_parts(&first, 0));
    server.receive(&of_parts(&first, 1));
    let query = server.retries().remove(0);
    assert_eq!(query[2], 9, "a challenge is good for one query");
    server.receive(&challenge(&query, b"7\0"));
    let second = server.queries().remove(0);
    assert_eq!(&second[7..11], [0, 0, 0, 7]);
    server.receive(&of_parts(&second, 2));
    assert!(server.is_waiting(), "the rest is of another reply");
    server.receive(&of_parts(&second, 0));
    server.receive(&of_parts(&second, 0));
    server.receive(&of_parts(&second, 1));
    assert!(server.reply().is_complete());
}

#[test]
fn datagrams_with_another_number_do_not_count() {
    let mut server = full_query();
    let query = server.queries().remove(0);
    server.receive(b"\x09\0\0\0\x0112\0");
    let mut forged = of_parts(&query, 0);
    forged[1] ^= 1;
    server.receive(&forged);
    assert_eq!(server.prober.stats().wrong_echo, 2);
    assert_eq!(server.finish().outcome, ProbeOutcome::TimedOut);
}

#[test]
fn a_challenge_shows_that_a_server_is_there() {
    let mut server = Exchange::new(Protocol::GameSpy3.presence());
    let query = server.queries().remove(0);
    server.receive(&challenge(&query, CHALLENGE));
    assert!(server.reply().is_complete());
    let (server, _) = challenged();
    let reply = server.reply();
    assert_eq!(reply.missing, [MissingPart::Part("reply to the challenge")]);
}

#[test]
fn lost_parts_are_missing_and_nothing_is_cut_off() {
    let described = {
        let (mut server, query) = challenged();
        (0..3).for_each(|index| server.receive(&of_parts(&query, index)));
        server.reply().info
    };
    for lost in 0..3 {
        let (mut server, query) = challenged();
        (0..3).filter(|index| *index != lost).for_each(|index| server.receive(&of_parts(&query, index)));
        let reply = server.reply();
        assert!(reply.missing.contains(&MissingPart::Part("parts of the reply")));
        let names = |info: &ServerInfo| -> Vec<String> {
            info.player_list
                .iter()
                .flatten()
                .map(|player| player.name.clone())
                .filter(|name| !name.is_empty())
                .collect()
        };
        assert!(names(&reply.info).iter().all(|name| names(&described).contains(name)), "{:?}", names(&reply.info));
    }
}

#[test]
fn parts_beyond_the_last_one_do_not_count() {
    let (mut server, query) = challenged();
    server.receive(&part(&query, 5, true, b"\x01player_\0\0Ada\0\0\0"));
    server.receive(&part(&query, 6, false, b"\x01player_\0\0Bob\0\0\0"));
    server.receive(&part(&query, 2, true, b"\x01player_\0\0Bob\0\0\0"));
    assert_eq!(server.prober.stats().redundant, 2);
}

#[test]
fn two_hundred_players_come_in_many_parts() {
    let (mut server, query) = challenged();
    server.receive(&part(&query, 0, false, b"\x00hostname\0x\0numplayers\x00200\0\0"));
    for index in 0..20 {
        let names: String = (0..10).map(|number| format!("player {}\0", index * 10 + number)).collect();
        let sections = [b"\x01player_\0", &[index * 10][..], names.as_bytes(), b"\0\0"].concat();
        server.receive(&part(&query, usize::from(index) + 1, index == 19, &sections));
    }
    let reply = server.reply();
    assert!(reply.is_complete(), "{:?}", reply.missing);
    assert_eq!((reply.info.players, reply.info.player_list.unwrap().len()), (Some(200), 200));
}

#[test]
fn unreal_tournament_has_numbers_for_keys() {
    let info = info_of(
        b"\x00hostname\0owner\0gamename\0ut3pc\0p1073741825\0DM-Deck\0p1073741826\0UTGame.UTDeathmatch\0\
p1073741827\0The server\0p1073741828\0Instagib\x1cLow Gravity\0p268435703\x004\0p268435704\x0025\0numplayers\x000\0maxplayers\x008\0\0",
    );
    assert_eq!((info.name.as_deref(), info.map.as_deref()), (Some("The server"), Some("DM-Deck")));
    assert_eq!((info.mode.as_deref(), info.bots), (Some("UTDeathmatch"), Some(4)));
    assert_eq!(info.mods.iter().flat_map(|one| one.name.as_deref()).collect::<Vec<_>>(), ["Instagib", "Low Gravity"]);
    assert_eq!(info.rules["goal score"], "25");
}

#[test]
fn a_reply_that_is_cut_or_changed_says_nothing_wrong() {
    let with = |index: usize, changed: &[u8]| {
        let mut server = Exchange::without_retries(Protocol::GameSpy3.players());
        let query = server.queries().remove(0);
        server.receive(&challenge(&query, CHALLENGE));
        let query = server.queries().remove(0);
        for (other, sections) in PARTS.into_iter().enumerate() {
            let sections = if other == index { changed } else { sections };
            server.receive(&part(&query, other, other == 2, sections));
        }
        server.finish()
    };
    let described = reply_of(with(0, PARTS[0])).info;
    for (index, whole) in PARTS.into_iter().enumerate() {
        for cut in truncations(whole) {
            let result = with(index, cut);
            assert_is_harmless(&result);
            let mut info = reply_of(result).info;
            // A player whose name is lost has none.
            info.player_list.iter_mut().for_each(|list| list.retain(|player| !player.name.is_empty()));
            assert_is_part_of(&info, &described);
        }
        for changed in mutations(whole) {
            assert_is_harmless(&with(index, &changed));
        }
    }
}
