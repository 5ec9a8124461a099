//! Many hostile players of the message layer at once, while the server sends one small message per frame to everyone, which
//! needs no queue: memory is bounded, nothing panics, and honest players notice nothing (W112).

use crate::common;

use common::{
    channels::{ChannelPair, EXPIRING, ORDERED, SEQUENCED, UNORDERED, table},
    forge::*,
    *,
};
use rallypoint_netsim::{Link, Rng};
use rallypoint_session_proto::{ChannelIndex, ClientConfig, EndpointConfig, ONLY_CHANNEL};
use rallypoint_wire::session::channels::{RecordWriter, TableEntry};
use std::time::Duration;

const SIZE: usize = 5_000;

fn channel(rng: &mut Rng) -> ChannelIndex {
    ChannelIndex::new(if rng.chance(0.97) { rng.below(4) as u8 } else { rng.below(32) as u8 }).unwrap()
}

/// Records that are well-formed, and contradict everything else.
fn records(rng: &mut Rng, next: &mut [u16; 4]) -> Vec<u8> {
    let mut writer = RecordWriter::new(464);
    // Few of them are faults, which end the session.
    let kind = if rng.chance(0.01) { 36 + rng.below(4) } else { rng.below(36) };
    for _ in 0..1 + rng.below(6) {
        let own = if kind < 36 { ChannelIndex::new(rng.below(4) as u8).unwrap() } else { channel(rng) };
        let position = usize::from(own.get() % 4);
        let sequence = if own == SEQUENCED || own == EXPIRING {
            // Just ahead, the same again, half the range away, or anywhere.
            match rng.below(5) {
                0 => next[position].wrapping_add(0x7fff),
                1 => next[position].wrapping_add(0x8000),
                2 => next[position].wrapping_sub(1),
                3 => rng.below(65_536) as u16,
                _ => next[position],
            }
        } else {
            next[position]
        };
        let length = rng.below(60) as usize;
        let written = match kind {
            0..=24 => writer.message(own, sequence, &vec![1; length]),
            25..=35 if own == SEQUENCED || own == EXPIRING => {
                let count = 2 + rng.below(9) as u16;
                writer.fragment(own, sequence, rng.below(u64::from(count)) as u16, count, &[2; 464 - 7])
            }
            25..=36 => writer.message(own, sequence, &vec![1; length]),
            37 => writer.credit(own, rng.below(65_536) as u16),
            38 => writer.receipt(own, (0..rng.below(20) as u16).map(|n| n * 7)) > 0,
            _ => writer.fragment(own, sequence, 0, 2, &[3; 464 - 7]),
        };
        if written {
            next[position] = sequence.wrapping_add(1);
        } else {
            break;
        }
    }
    writer.finish().to_vec()
}

#[test]
fn w112_a_crowd_of_hostile_players_takes_bounded_memory_and_disturbs_nobody() {
    const CROWD: u16 = 254;
    let mut server = EndpointConfig::for_game("tag").channels(table(SIZE));
    server.max_players = 255;
    let client = ClientConfig::new("alice", "tag").channels(table(SIZE));
    let mut pair = ChannelPair::start(1, Link::default().delay(ms(5)), server, client);
    pair.wait_for_player();
    let honest = pair.server().player();
    let entries = [0, 1, 2, 3].map(|mode| TableEntry { mode, max_to_server: SIZE as u32, max_to_client: SIZE as u32 });
    let mut rng = Rng::new(7);
    let mut crowd = Vec::new();
    for number in 0..CROWD {
        let now = pair.net.now();
        let config = ClientConfig::new("mallory", "tag+m1");
        let mut seed = ClientApp::new(now, SERVER.into(), config, number as u8);
        // Some of them never read.
        seed.is_busy = number % 5 == 0;
        let addr = ([10, 1, (number / 250) as u8, (number % 250) as u8 + 1], 2_000);
        crowd.push((addr, pair.net.add(addr, seed), [0_u16; 4]));
        pair.net.run_for(ms(12));
    }
    pair.net.run_for(secs(1));
    for (_, node, _) in &crowd {
        let mut writer = RecordWriter::new(464);
        assert!(writer.hello(&entries, &[]));
        let hello = writer.finish().to_vec();
        let _ = pair.net.with(*node, |app, now| app.client.send(now, ONLY_CHANNEL, &hello));
    }
    pair.net.run_for(secs(1));
    let joined = pair.server().server.players().count();
    let mut most = 0;
    for frame in 0..600_u32 {
        let own = [SEQUENCED, EXPIRING, SEQUENCED, ORDERED, UNORDERED][(frame / 100) as usize % 5];
        pair.net.with(pair.server, |app, now| {
            let players: Vec<_> = app.server.players().collect();
            for player in players {
                let result = app.server.send(now, player, own, &numbered(frame, 40));
                if player == honest {
                    result.unwrap();
                }
            }
        });
        pair.net.with(pair.client, |app, now| app.client.send(now, own, &numbered(frame, 40))).unwrap();
        for (addr, node, next) in &mut crowd {
            if rng.chance(0.3) {
                let payload = records(&mut rng, next);
                let _ = pair.net.with(*node, |app, now| app.client.send(now, ONLY_CHANNEL, &payload));
            }
            if rng.chance(0.1) {
                let first = frame.saturating_sub(rng.below(80) as u32);
                let list: Vec<u32> = (0..1 + rng.below(63)).map(|_| first + rng.below(20) as u32).collect();
                pair.net.inject(*addr, SERVER, &number_list(if rng.chance(0.8) { ACK } else { RESEND }, list));
            }
        }
        pair.net.run_for(Duration::from_micros(16_667));
        most = most.max(pair.server().server.stats().memory);
    }
    pair.net.run_for(secs(3));
    let server = pair.server();
    let left = server.server.players().count();
    assert!(joined > 200 && most < 8_000_000, "{joined} players, {most} bytes");
    println!("joined {joined}, left {left}, most memory {most}, faults {}", server.server.stats().channel_faults);
    let numbers = |list: &[channels::Received]| list.iter().map(|r| number_of(&r.bytes)).collect::<Vec<_>>();
    assert!(numbers(&pair.client().received).into_iter().eq(0..600));
    assert_eq!(server.server.players().filter(|player| *player == honest).count(), 1);
    for player in server.server.players() {
        let stats = server.server.connection(player).unwrap().stats();
        assert!((0.0..=1.0).contains(&stats.loss) && stats.rtt.is_none_or(|rtt| rtt < secs(60)), "{stats:?}");
    }
}

#[test]
fn w112_small_messages_without_a_queue_pass_the_end_of_the_sequence_range() {
    let mut pair = ChannelPair::connect(1, Link::default().delay(ms(5)).loss(0.02), &table(SIZE));
    for own in [SEQUENCED, EXPIRING, ORDERED, UNORDERED] {
        pair.net.with(pair.client, |app, _| app.received.clear());
        for frame in 0..65_700_u32 {
            pair.net.with(pair.server, |app, now| {
                let player = app.player();
                let _ = app.server.send(now, player, own, &numbered(frame, 20));
            });
            pair.net.run_for(ms(2));
        }
        pair.net.run_for(secs(2));
        let received: Vec<u32> = pair.client().received.iter().map(|r| number_of(&r.bytes)).collect();
        println!("{own:?}: {} of 65700, last {:?}", received.len(), received.last());
        assert_eq!(received.last(), Some(&65_699));
        assert!(received.len() > 50_000);
        if own == ORDERED || own == UNORDERED {
            assert_eq!(received.len(), 65_700);
        }
    }
}
