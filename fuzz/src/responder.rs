//! The responder under arbitrary traffic, with any info: it replies to queries only, with valid replies, within its budgets.

use rallypoint_limit::Rate;
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Mod, Player, Protocol, Responder, ResponderConfig, ServerInfo, Team};
use rallypoint_wire::{bloodmasters::Reply, session::ServerDatagram};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Reply budget of one address.
const RATE: Rate = Rate::per_second(10_000, 70_000);

/// The first byte selects the info, the next four are the lengths of texts, followed by the texts. Then steps: time since
/// the previous one, source, length of the datagram (0, 1, 2: a query of one kind), its bytes.
pub fn run(data: &[u8]) {
    let Some((&[switches, ref lengths @ .., count], mut script)) = data.split_first_chunk::<6>() else { return };
    let texts = lengths.map(|length| String::from_utf8_lossy(take(&mut script, length.into())).into_owned());
    let enabled = [(1, Protocol::Session), (2, Protocol::Bloodmasters)].into_iter();
    let config = ResponderConfig {
        protocols: enabled.filter(|(bit, _)| switches & bit == 0).map(|(_, protocol)| protocol).collect(),
        per_address: RATE,
        max_addresses: 64,
        ..ResponderConfig::default()
    };
    let mut responder = Responder::new(config, 7, &info(&texts, count)).expect("the configuration is in range");
    let start = Instant::now();
    let mut now = start;
    let mut drawn = [0u64; 4];
    let mut sent = 0;
    while let Some((&[delay, who, length], rest)) = script.split_first_chunk() {
        script = rest;
        now += Duration::from_millis(u64::from(delay).pow(2));
        let from = SocketAddr::from(([192, 0, 2, who % 4], 1000 + u16::from(who)));
        let datagram = match length {
            0 => &[0x80][..],
            1 => &[0x88],
            2 => &[7, 0, 13, 1, 2, 3, 4],
            _ => take(&mut script, length.into()),
        };
        responder.handle_datagram(now, from, datagram);
        let mut out = Vec::new();
        let mut answers = [0; 3];
        while let Some(transmit) = responder.poll_transmit(now, &mut out) {
            assert_eq!((transmit.to, transmit.len), (from, out.len()));
            assert!(!out.is_empty());
            check(&out, datagram, &mut answers);
            drawn[usize::from(who % 4)] += out.len() as u64;
            sent += out.len() as u64;
            out.clear();
        }
        assert!(answers[0] <= 3_188, "the seven infos");
        assert!(answers[1] <= 16_384, "the players");
        if who == 255 {
            responder.set_info(&info(&texts, delay));
        }
    }
    let most = RATE.burst + RATE.count * (now - start).as_millis() as u64 / 1_000 + 1;
    assert!(drawn.iter().all(|drawn| *drawn <= most), "{drawn:?} of {most}");
    assert_eq!(responder.stats().unproven_bytes, sent);
}

/// Asserts that a reply can be parsed and belongs to the query.
fn check(answer: &[u8], query: &[u8], sizes: &mut [usize; 3]) {
    if query.len() == 1 {
        let kind = match ServerDatagram::parse(answer).expect("a reply can be parsed") {
            ServerDatagram::Info(_) if query == [0x80] => 0,
            ServerDatagram::Team(_) | ServerDatagram::Player(_) if query == [0x88] => 1,
            other => panic!("{other:?} to {query:?}"),
        };
        sizes[kind] += answer.len();
    } else {
        let reply = Reply::parse(answer).expect("a reply can be parsed");
        assert!(reply.is_complete());
        assert!(query.windows(4).any(|bytes| bytes == reply.echo().0), "the echo is the query's");
    }
}

fn info(texts: &[String; 4], count: u8) -> ServerInfo {
    let [a, b, c, d] = texts;
    ServerInfo {
        name: Some(a.clone()),
        description: Some(b.clone()),
        game: Some(c.clone()),
        game_name: (count.is_multiple_of(2)).then(|| d.clone()),
        map: Some(c.repeat(3)),
        version: Some(a.repeat(9)),
        website: Some(d.clone()),
        tags: vec![a.clone(); count.into()],
        mods: vec![Mod { id: Some(b.clone()), name: (count.is_multiple_of(3)).then(|| c.clone()) }; count.into()],
        teams: (0..count / 2).map(|id| Team { id, name: d.clone(), ..Team::default() }).collect(),
        player_list: Some(vec![
            Player { name: b.clone(), spectator: count.is_multiple_of(5), ..Player::default() };
            count.into()
        ]),
        players: Some(u16::from(count) * 7),
        ..ServerInfo::default()
    }
}

fn take<'a>(script: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = script.split_at(count.min(script.len()));
    *script = rest;
    taken
}
