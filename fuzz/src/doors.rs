//! Every door of the table, in one registry: no input panics, every datagram has one outcome, and no datagram draws more bytes
//! than its budget to an address that is not proven.

use rallypoint_lobby_proto::{
    Config, HashKeys, Registry,
    doors::{DOORS, DatagramDoor, Datagrams, HttpRequest, header_bytes, reflection_budget},
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Each step is the number of a door, the number of a source, a length, and that many bytes.
pub fn run(data: &[u8]) {
    let mut now = Instant::now();
    let mut config = Config::default();
    // Small tables are created faster.
    config.limits.max_entries = 64;
    let keys = HashKeys::default();
    let mut registry = Registry::new(config, keys.clone(), now).expect("a configuration");
    let sockets = || DOORS.iter().filter_map(|door| door.sockets.as_ref());
    let start = |datagrams: Datagrams| match datagrams {
        Datagrams::Protocol(start) => Some(start(&keys)),
        Datagrams::Registrations => None,
    };
    let mut datagrams: Vec<_> = sockets().filter_map(|door| start(door.datagrams?)).collect();
    let requests: Vec<_> = sockets().filter_map(|door| Some(door.requests?())).collect();
    let http: Vec<_> = DOORS.iter().filter_map(|door| Some((door.http?.start)())).collect();
    let lists = registry.lists();
    let mut rest = data;
    let mut count = 0;
    while let [door, source, length, bytes @ ..] = rest {
        let (bytes, after) = bytes.split_at(bytes.len().min(usize::from(*length)));
        rest = after;
        let chosen = usize::from(*door) % datagrams.len();
        let from = SocketAddr::from(([203, 0, 113, source % 8], 1 + u16::from(*source)));
        deliver(&mut *datagrams[chosen], &mut registry, now, from, bytes);
        count += 1;
        for door in &requests {
            let _ = door.reply(now, &lists, bytes);
        }
        for door in &http {
            let query = String::from_utf8_lossy(bytes);
            let _ = door.handle_request(&HttpRequest { method: "GET", query: &query });
            door.list(now, &lists);
        }
        now += Duration::from_millis(100);
        datagrams.iter_mut().for_each(|door| door.handle_timeout(&mut registry, now));
        registry.handle_timeout(now);
        registry.check_invariants();
        assert_eq!(registry.stats().outcomes.iter().sum::<u64>(), count);
    }
}

fn deliver(door: &mut dyn DatagramDoor, registry: &mut Registry, now: Instant, from: SocketAddr, bytes: &[u8]) {
    door.handle_datagram(registry, now, from, bytes);
    let mut out = Vec::new();
    let mut sent = 0;
    while let Some(transmit) = door.poll_transmit(now, &mut out) {
        assert_eq!(transmit.to, from, "only the sender is answered");
        sent += transmit.len + header_bytes(from.ip());
        out.clear();
    }
    assert!(sent <= reflection_budget(from.ip(), bytes.len()), "{sent} bytes in reply to {}", bytes.len());
}
