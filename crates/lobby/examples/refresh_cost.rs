//! What a refresh costs with few and with many servers, and what a server costs in memory:
//! `cargo run --release -p rallypoint-lobby --example refresh_cost`.
//!
//! The datagrams arrive as from a socket: in batches, in a buffer that is warm, in random order.
// xtask: not run
#![forbid(unsafe_code)]

use rallypoint_lobby::{Config, Outcome, Registry, Seed};
use rallypoint_wire::lobby::{LobbyId, Occupancy, Registration, ServerId, TableBuf, Transport};
use std::{
    fs,
    hint::black_box,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

const BATCH: usize = 64;

fn main() {
    println!("servers | a loop that only writes the datagrams | refresh | bytes per server beyond its datagram");
    let sizes: Vec<u32> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    for servers in if sizes.is_empty() { vec![1_000, 10_000, 100_000, 1_000_000] } else { sizes } {
        let before = resident();
        let mut load = Load::new(servers);
        let now = Instant::now();
        let config = Config {
            limit_exempt: ["0.0.0.0/0".parse().expect("a network")].into_iter().collect(),
            ..Config::default()
        };
        let mut registry =
            Registry::new(config, Seed { tables: 7, public_ids: [7; 16] }, now).expect("a configuration");
        let empty = resident();
        for server in 0..servers {
            let (from, datagram) = load.datagram(0, server);
            assert_eq!(registry.handle_datagram(now, from, datagram), Outcome::Listed);
            while registry.poll_event().is_some() {}
            if server % 1_000 == 0 {
                registry.publish(now);
            }
        }
        registry.publish(now);
        let used = (resident() - empty) as f64 / f64::from(servers) - load.size() as f64;
        let now = now + Duration::from_secs(30);

        let rounds = 200_000 / BATCH;
        let idle = best(|| {
            load.run(rounds, |batch| {
                black_box(batch);
            })
        });
        let refresh = best(|| {
            load.run(rounds, |batch| {
                registry.handle_datagrams(now, batch.iter().map(|(from, bytes)| (*from, &bytes[..])));
            })
        });
        let alone = best(|| {
            load.run(rounds, |batch| {
                for (from, bytes) in batch {
                    assert_eq!(registry.handle_datagram(now, *from, bytes), Outcome::Refreshed);
                }
            })
        });
        println!(
            "{servers:>9} | {idle:5.1} ns | {:5.1} ns | one by one {:5.1} ns | {used:6.0}  ({} MB in all)",
            refresh - idle,
            alone - idle,
            (resident() - before) >> 20,
        );
    }
}

/// The fastest of a few runs, per datagram: the others were disturbed.
fn best(mut run: impl FnMut() -> f64) -> f64 {
    (0..60).map(|_| run()).fold(f64::INFINITY, f64::min)
}

struct Load {
    batch: Vec<(SocketAddr, Vec<u8>)>,
    servers: u32,
    random: u64,
}

impl Load {
    fn new(servers: u32) -> Self {
        let mut table = TableBuf::new();
        for (key, value) in [
            ("name", "Bacon Town 24/7"),
            ("game", "Gang Garrison 2"),
            ("game_short", "gg2"),
            ("game_ver", "v2.9.2"),
            ("game_url", "http://www.ganggarrison.com"),
            ("map", "ctf_truefort"),
            ("protocol_id", "0123456789abcdef"),
        ] {
            table.push(key.as_bytes(), value.as_bytes()).expect("it fits");
        }
        let (id, port) = (ServerId::from_bytes([0; 16]), 8190.try_into().expect("a port"));
        let lobby = LobbyId::GANG_GARRISON_2;
        let occupancy = Occupancy { slots: 24, ..Occupancy::default() };
        let new = Registration::new(id, lobby, Transport::Udp, port, occupancy, table.as_table());
        let mut datagram = Vec::new();
        new.expect("a registration").emit(&mut datagram);
        Self { batch: vec![(([0, 0, 0, 0], 9).into(), datagram); BATCH], servers, random: 1 }
    }

    fn size(&self) -> usize {
        self.batch[0].1.len()
    }

    fn datagram(&mut self, place: usize, server: u32) -> (SocketAddr, &[u8]) {
        let (from, datagram) = &mut self.batch[place];
        from.set_ip(Ipv4Addr::from_bits(0x0b00_0000 + server).into());
        let id = u128::from(mixed(u64::from(server))) << 64 | u128::from(mixed(!u64::from(server)));
        datagram[16..32].copy_from_slice(&id.to_be_bytes());
        (*from, &datagram[..])
    }

    fn run(&mut self, rounds: usize, mut handle: impl FnMut(&[(SocketAddr, Vec<u8>)])) -> f64 {
        let start = Instant::now();
        for _ in 0..rounds {
            for place in 0..BATCH {
                self.random = self.random.wrapping_add(1);
                let server = (u128::from(mixed(self.random)) * u128::from(self.servers) >> 64) as u32;
                self.datagram(place, server);
            }
            handle(&self.batch);
        }
        start.elapsed().as_nanos() as f64 / (rounds * BATCH) as f64
    }
}

fn mixed(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Bytes of memory in use.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
