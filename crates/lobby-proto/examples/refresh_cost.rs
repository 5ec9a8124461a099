//! Measures the cost of a refresh with few and with many servers, and the memory use per server:
//! `cargo run --release -p rallypoint-lobby-proto --example refresh_cost`.
//!
//! The datagrams arrive as from a socket: in batches, in a warm buffer, in random order. The cost of writing them into the
//! buffer is subtracted.
// xtask: not run
#![forbid(unsafe_code)]

use rallypoint_lobby_proto::{Config, HashKeys, RegistrationOutcome, Registry};
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport};
use std::{
    fs,
    hint::black_box,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

const BATCH: usize = 64;
const BATCHES: usize = 3_000;

fn main() {
    println!("  servers   in batches   one by one   memory per server beyond its datagram");
    let sizes: Vec<u32> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    for servers in if sizes.is_empty() { vec![1_000, 10_000, 100_000, 1_000_000] } else { sizes } {
        measure(servers);
    }
}

fn measure(servers: u32) {
    let mut load = Load::new(servers);
    let start = Instant::now();
    let limit_exempt = ["0.0.0.0/0".parse().expect("a network")].into_iter().collect();
    let config = Config { limit_exempt, ..Config::default() };
    let mut registry =
        Registry::new(config, HashKeys { tables: 7, public_ids: [7; 16] }, start).expect("a configuration");
    let empty = resident();
    for server in 0..servers {
        let (from, datagram) = load.datagram(0, server);
        assert_eq!(registry.handle_datagram(start, from, datagram), RegistrationOutcome::Listed);
        while registry.poll_event().is_some() {}
        if server % 1_000 == 0 {
            registry.publish(start);
        }
    }
    registry.publish(start);
    let memory = (resident() - empty) as f64 / f64::from(servers) - load.size() as f64;

    let now = start + Duration::from_secs(30);
    let idle = best(|| {
        load.run(|batch| {
            black_box(batch);
        })
    });
    let together = best(|| {
        load.run(|batch| registry.handle_datagrams(now, batch.iter().map(|(from, bytes)| (*from, &bytes[..]))))
    });
    let alone = best(|| {
        load.run(|batch| {
            for (from, bytes) in batch {
                black_box(registry.handle_datagram(now, *from, bytes));
            }
        })
    });
    println!("{servers:>9} {:9.1} ns {:9.1} ns {memory:9.0} bytes", together - idle, alone - idle);
}

/// The fastest of several runs, per datagram: the others were disturbed.
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
        let lobby = ListId::GANG_GARRISON_2;
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
        let id = (u128::from(mixed(u64::from(server))) << 64) | u128::from(mixed(!u64::from(server)));
        datagram[16..32].copy_from_slice(&id.to_be_bytes());
        (*from, &datagram[..])
    }

    fn run(&mut self, mut handle: impl FnMut(&[(SocketAddr, Vec<u8>)])) -> f64 {
        let start = Instant::now();
        for _ in 0..BATCHES {
            for place in 0..BATCH {
                self.random = self.random.wrapping_add(1);
                let server = ((u128::from(mixed(self.random)) * u128::from(self.servers)) >> 64) as u32;
                self.datagram(place, server);
            }
            handle(&self.batch);
        }
        start.elapsed().as_nanos() as f64 / (BATCHES * BATCH) as f64
    }
}

fn mixed(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Resident memory in bytes.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
