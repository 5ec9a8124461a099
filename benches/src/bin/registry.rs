//! `cargo xtask bench registry`: the cost of a datagram between the socket and the list.
#![forbid(unsafe_code)]

use rallypoint_bench::{Micro, REGISTRATION_SIZE, Random, address, registration};
use rallypoint_limit::{Decision, Limiter};
use rallypoint_lobby_proto::{Config, HashKeys, Registry};
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport};
use std::{
    hint::black_box,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU16,
    process::ExitCode,
    time::{Duration, Instant},
};

/// Number of datagrams per system call.
const BATCH: usize = 128;

fn main() -> ExitCode {
    let mut suite = Micro::new();
    let known = |_: &mut Random| Ipv4Addr::new(203, 0, 113, 9).into();
    let one_of_many = |random: &mut Random| Ipv4Addr::from_bits(0x0b00_0000 + random.below(10_000)).into();
    let new_v4 = |random: &mut Random| Ipv4Addr::from_bits(random.below(u32::MAX)).into();
    let new_v6 = |random: &mut Random| {
        Ipv6Addr::from_bits(0x2001 << 112 | u128::from(random.next()) << 48 | u128::from(random.next() >> 16)).into()
    };
    limit(&mut suite, "limit: a known source", known);
    limit(&mut suite, "limit: one of 10,000 known sources", one_of_many);
    limit(&mut suite, "limit: a new IPv4 source", new_v4);
    limit(&mut suite, "limit: a new IPv6 source", new_v6);
    emit(&mut suite, "create a registration, included in everything below");
    refresh(&mut suite, "refresh one of 1,000 servers", 1_000);
    refresh(&mut suite, "refresh one of 100,000 servers", 100_000);
    refresh_batch(&mut suite, "refresh 128 of 1,000 servers as a batch", 1_000);
    refresh_batch(&mut suite, "refresh 128 of 100,000 servers as a batch", 100_000);
    change(&mut suite, "a changed registration, one of 1,000 servers", 1_000);
    many_keys(&mut suite, "a changed registration of 600 keys, from a random source");
    invalid(&mut suite, "a datagram of another protocol, from a random source");
    suite.main()
}

/// Each operation creates its subject on the first run, so that only the measured one exists.
fn limit(suite: &mut Micro<'_>, name: &str, source: impl Fn(&mut Random) -> IpAddr + 'static) {
    let mut limiter = None;
    let mut random = Random::new(1);
    let mut now = Instant::now();
    suite.op(name, 0, move || -> Decision {
        // Slow enough for every rate limit.
        now += Duration::from_millis(100);
        let limiter = limiter.get_or_insert_with(|| Limiter::new(&rallypoint_limit::LimiterConfig::default(), 0x5eed));
        limiter.check(now, source(&mut random), black_box(REGISTRATION_SIZE))
    });
}

fn emit(suite: &mut Micro<'_>, name: &str) {
    let mut random = Random::new(1);
    suite.op(name, REGISTRATION_SIZE, move || datagram(random.below(1_000), 0));
}

fn refresh(suite: &mut Micro<'_>, name: &str, servers: u32) {
    let mut registry = None;
    let mut random = Random::new(1);
    let now = Instant::now();
    suite.op(name, REGISTRATION_SIZE, move || {
        let (from, datagram) = datagram(random.below(servers), 0);
        registry.get_or_insert_with(|| registry_of(servers, now)).handle_datagram(now, from, black_box(&datagram))
    });
}

fn refresh_batch(suite: &mut Micro<'_>, name: &str, servers: u32) {
    let mut registry = None;
    let mut random = Random::new(1);
    let now = Instant::now();
    let mut batch = vec![datagram(0, 0); BATCH];
    suite.op(name, BATCH * REGISTRATION_SIZE, move || {
        batch.fill_with(|| datagram(random.below(servers), 0));
        let registry = registry.get_or_insert_with(|| registry_of(servers, now));
        registry.handle_datagrams(now, black_box(&batch).iter().map(|(from, bytes)| (*from, &bytes[..])));
    });
}

fn change(suite: &mut Micro<'_>, name: &str, servers: u32) {
    let mut registry = None;
    let mut random = Random::new(1);
    let mut now = Instant::now();
    suite.op(name, REGISTRATION_SIZE, move || {
        now += Duration::from_millis(100);
        let (from, datagram) = datagram(random.below(servers), random.below(24) as u16);
        let registry = registry.get_or_insert_with(|| registry_of(servers, now));
        let outcome = registry.handle_datagram(now, from, black_box(&datagram));
        while registry.poll_event().is_some() {}
        outcome
    });
}

/// The most work that one datagram of the default maximum size can cause.
fn many_keys(suite: &mut Micro<'_>, name: &str) {
    let mut registry = None;
    let mut random = Random::new(1);
    let mut now = Instant::now();
    let mut table = TableBuf::new();
    let mut bytes = Vec::new();
    table.push(b"name", b"many").expect("it fits");
    (0..600u16).for_each(|key| table.push(&key.to_be_bytes(), b"x").expect("it fits"));
    let id = ServerId::from_bytes([7; 16]);
    let port = NonZeroU16::MIN;
    let new =
        Registration::new(id, ListId::GANG_GARRISON_2, Transport::Udp, port, Occupancy::default(), table.as_table());
    new.expect("it has a name").emit(&mut bytes);
    suite.op(name, bytes.len(), move || {
        now += Duration::from_millis(1);
        let from = (Ipv4Addr::from_bits(0x0b00_0000 + random.below(1 << 24)), 9).into();
        let registry = registry.get_or_insert_with(|| registry_of(1_000, now));
        let outcome = registry.handle_datagram(now, from, black_box(&bytes));
        while registry.poll_event().is_some() {}
        outcome
    });
}

fn invalid(suite: &mut Micro<'_>, name: &str) {
    let mut registry = None;
    let mut random = Random::new(1);
    let mut now = Instant::now();
    let (_, mut bytes) = datagram(0, 0);
    bytes[3] ^= 1;
    suite.op(name, bytes.len(), move || {
        now += Duration::from_micros(20);
        let from = (Ipv4Addr::from_bits(random.below(u32::MAX)), 9).into();
        registry.get_or_insert_with(|| registry_of(1_000, now)).handle_datagram(now, from, black_box(&bytes))
    });
}

fn datagram(server: u32, players: u16) -> (SocketAddr, [u8; REGISTRATION_SIZE]) {
    ((address(server), 9).into(), registration(server, players))
}

fn registry_of(servers: u32, now: Instant) -> Registry {
    let mut registry =
        Registry::new(Config::default(), HashKeys::default(), now).expect("the default configuration is valid");
    for server in 0..servers {
        let (from, datagram) = datagram(server, 0);
        registry.handle_datagram(now, from, &datagram);
        while registry.poll_event().is_some() {}
    }
    registry.publish(now);
    assert_eq!(registry.stats().listed, servers as usize);
    registry
}
