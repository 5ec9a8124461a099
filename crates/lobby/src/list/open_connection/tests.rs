use super::*;
use Phase::{Drain, Reply as Replying, Request as Requesting};
use std::io::Read;

/// A connection and its other end.
fn pair() -> (Arc<Socket>, Socket) {
    let (near, far) = Socket::pair(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    (Arc::new(near), far)
}

fn table(limit: usize, held_bytes: usize) -> OpenConnections {
    let limits = ListLimits { connections: limit, held_bytes, per_address: 2, ..ListLimits::default() };
    OpenConnections::new(&limits)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn is_closed(far: &Socket) -> bool {
    far.set_nonblocking(true).unwrap();
    matches!((&*far).read(&mut [0]), Ok(0))
}

/// Opens connections, given as address, phase and seconds between the last progress and `now`. Returns them with their other
/// ends.
fn connect_all(table: &OpenConnections, now: Instant, all: &[(&str, Phase, u64)]) -> Vec<(ConnectionGuard, Socket)> {
    let connect = |&(from, phase, seconds): &(&str, Phase, u64)| {
        let (near, far) = pair();
        let progress_at = now.checked_sub(Duration::from_secs(seconds)).unwrap();
        let mut guard = table.admit(&near, ip(from), progress_at).unwrap();
        guard.set_phase(phase, progress_at);
        (guard, far)
    };
    all.iter().map(connect).collect()
}

/// Evicts all connections and returns their indices in the order of eviction.
fn evict_all(table: &OpenConnections, now: Instant, connections: &[(ConnectionGuard, Socket)]) -> Vec<usize> {
    let mut order = Vec::new();
    for _ in connections {
        table.evict_one(now);
        let is_new = |&index: &usize| !connections[index].0.is_open() && !order.contains(&index);
        let evicted: Vec<_> = (0..connections.len()).filter(is_new).collect();
        assert!(evicted.iter().all(|&index| is_closed(&connections[index].1)));
        assert_eq!(evicted.len(), 1);
        order.extend(evicted);
    }
    order
}

/// Opens connections, as [`connect_all`] does, and evicts all of them. Returns their indices in the order of eviction.
fn eviction_order(all: &[(&str, Phase, u64)]) -> Vec<usize> {
    let now = Instant::now() + Duration::from_secs(600);
    let table = table(100, usize::MAX);
    let connections = connect_all(&table, now, all);
    let order = evict_all(&table, now, &connections);
    assert_eq!(table.evicted(), all.len() as u64);
    drop(connections);
    assert_eq!(table.len(), 0, "an evicted connection is removed once");
    order
}

#[test]
fn draining_connections_are_evicted_first_then_those_without_a_request_then_readers() {
    let order = eviction_order(&[
        ("203.0.113.1", Replying, 90),
        ("203.0.114.1", Requesting, 4),
        ("203.0.115.1", Requesting, 0),
        ("203.0.116.1", Drain, 1),
        ("203.0.117.1", Drain, 2),
    ]);
    assert_eq!(order, [4, 3, 1, 2, 0]);
}

#[test]
fn of_the_readers_the_one_of_the_largest_network_with_the_oldest_progress_is_evicted() {
    let order = eviction_order(&[
        ("203.0.113.1", Replying, 50),
        ("198.51.100.1", Replying, 3),
        ("198.51.100.2", Replying, 9),
        ("198.51.100.3", Replying, 6),
        ("2001:db8:0:a0::1", Replying, 2),
        ("2001:db8:0:af::1", Replying, 5),
        // It is new, but its network has the most connections.
        ("198.51.100.4", Requesting, 0),
    ]);
    // Where two networks have the same number, the connection with the oldest progress is evicted.
    assert_eq!(order, [6, 2, 3, 5, 0, 1, 4]);
}

#[test]
fn a_site_with_one_reader_in_each_of_many_networks_is_evicted_first() {
    let order = eviction_order(&[
        ("203.0.113.1", Replying, 50),
        ("203.0.113.2", Replying, 50),
        ("2001:db8:7:100::1", Replying, 1),
        ("2001:db8:7:200::1", Replying, 2),
        ("2001:db8:7:300::1", Replying, 3),
    ]);
    // Then both sites have two, and in their largest network one has one and the other two.
    assert_eq!(order, [4, 0, 3, 1, 2]);
}

#[test]
fn a_reader_that_makes_progress_is_evicted_later() {
    let now = Instant::now() + Duration::from_secs(600);
    let table = table(100, usize::MAX);
    let mut connections = connect_all(&table, now, &[("203.0.113.1", Replying, 50), ("203.0.113.2", Replying, 40)]);
    connections[0].0.hold(&Reply::bytes(Arc::new([1])), now);
    assert_eq!(evict_all(&table, now, &connections), [1, 0]);
}

#[test]
fn a_network_that_fills_the_table_loses_one_connection_for_each_new_one_of_others() {
    let now = Instant::now();
    let limits = ListLimits { connections: 256, per_address: 2, ..ListLimits::default() };
    let table = OpenConnections::new(&limits);
    let crowd: Vec<_> = (0..256u32).map(|number| (format!("203.0.113.{}", number / 2), Replying, 0)).collect();
    let crowd: Vec<_> = crowd.iter().map(|(from, phase, seconds)| (&**from, *phase, *seconds)).collect();
    let crowd = connect_all(&table, now, &crowd);
    let others: Vec<_> = (0..100u8).map(|number| format!("198.51.{number}.1")).collect();
    let others: Vec<_> = others.iter().map(|from| (&**from, Replying, 0)).collect();
    let others = connect_all(&table, now, &others);
    assert!(others.iter().all(|(guard, _)| guard.is_open()));
    assert_eq!(crowd.iter().filter(|(guard, _)| guard.is_open()).count(), 156);
}

#[test]
fn connections_per_ipv4_address_and_ipv6_64_are_limited() {
    let now = Instant::now();
    let table = table(100, usize::MAX);
    let mut kept = Vec::new();
    let mut admit = |text: &str| {
        let (near, far) = pair();
        let guard = table.admit(&near, ip(text), now);
        let is_admitted = guard.is_some();
        kept.push((guard, far));
        is_admitted
    };
    for (first, second, third, other) in [
        ("203.0.113.1", "203.0.113.1", "::ffff:203.0.113.1", "203.0.113.2"),
        ("2001:db8::1", "2001:db8::2", "2001:db8::ffff:1", "2001:db8:0:1::1"),
    ] {
        assert_eq!([first, second, third, other].map(&mut admit), [true, true, false, true]);
    }
    assert_eq!(["127.0.0.1", "127.0.0.1", "127.0.0.1", "::1", "::1", "::1"].map(&mut admit), [true; 6]);
    drop(kept);
    assert_eq!(table.len(), 0);
}

#[test]
fn memory_that_slow_readers_share_counts_once() {
    let now = Instant::now();
    let table = table(100, 250);
    let lists: [Arc<[u8]>; 3] = [Arc::new([1; 100]), Arc::new([2; 100]), Arc::new([3; 100])];
    let mut readers: Vec<_> = [0, 0, 0, 1, 1]
        .map(|list| {
            let (near, far) = pair();
            let mut guard = table.admit(&near, ip("127.0.0.1"), now).unwrap();
            guard.set_phase(Phase::Reply, now);
            guard.hold(&Reply::bytes(lists[list].clone()), now);
            guard.hold(&Reply::bytes(lists[list].clone()), now);
            (guard, far)
        })
        .into();
    assert_eq!((table.held.bytes(), table.evicted()), (200, 0));
    let (near, _far) = pair();
    let mut newest = table.admit(&near, ip("127.0.0.1"), now).unwrap();
    newest.set_phase(Phase::Reply, now);
    newest.hold(&Reply::bytes(lists[2].clone()), now);
    assert_eq!((table.held.bytes(), table.evicted()), (200, 3), "the readers of the oldest list are evicted");
    readers[3].0.set_phase(Drain, now);
    drop(readers.remove(4));
    assert_eq!(table.held.bytes(), 100);
    drop((readers, newest));
    assert_eq!((table.held.bytes(), table.len()), (0, 0));
}
