use super::*;
use Phase::{Drain, Reply as Reading, Request as Asking};
use std::io::Read;

/// A connection of which the test has the other end.
fn pair() -> (Arc<Socket>, Socket) {
    let (near, far) = Socket::pair(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    (Arc::new(near), far)
}

fn places(connections: usize, held_bytes: usize) -> Arc<Places> {
    let limits = ListLimits { connections, held_bytes, per_address: 2, ..ListLimits::default() };
    Arc::new(Places::new(&limits))
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn is_cut(far: &Socket) -> bool {
    far.set_nonblocking(true).unwrap();
    matches!((&*far).read(&mut [0]), Ok(0))
}

/// Connections of these addresses in these phases, that last got on so many seconds before `now`. The other ends come with
/// them.
fn connections(places: &Arc<Places>, now: Instant, all: &[(&str, Phase, u64)]) -> Vec<(Place, Socket)> {
    let connect = |&(from, phase, seconds): &(&str, Phase, u64)| {
        let (near, far) = pair();
        let moved = now.checked_sub(Duration::from_secs(seconds)).unwrap();
        let mut place = places.admit(&near, ip(from), moved).unwrap();
        place.enter(phase, moved);
        (place, far)
    };
    all.iter().map(connect).collect()
}

/// In which order all of them have to go.
fn order(places: &Places, now: Instant, there: &[(Place, Socket)]) -> Vec<usize> {
    let mut order = Vec::new();
    for _ in there {
        places.make_room(now);
        let is_new = |&at: &usize| !there[at].0.is_there() && !order.contains(&at);
        let gone: Vec<_> = (0..there.len()).filter(is_new).collect();
        assert!(gone.iter().all(|&at| is_cut(&there[at].1)));
        assert_eq!(gone.len(), 1);
        order.extend(gone);
    }
    order
}

#[test]
fn who_is_done_goes_first_then_who_never_asked_then_who_reads() {
    let now = Instant::now() + Duration::from_secs(600);
    let places = places(100, usize::MAX);
    let there = connections(
        &places,
        now,
        &[
            ("203.0.113.1", Reading, 90),
            ("203.0.114.1", Asking, 4),
            ("203.0.115.1", Asking, 0),
            ("203.0.116.1", Drain, 1),
            ("203.0.117.1", Drain, 2),
        ],
    );
    assert_eq!(order(&places, now, &there), [4, 3, 1, 2, 0]);
    assert_eq!(places.evicted(), 5);
    drop(there);
    assert_eq!(places.open(), 0, "a place is given back once");
}

#[test]
fn of_those_who_read_one_of_the_largest_network_goes_the_one_that_is_stuck_for_longest() {
    let now = Instant::now() + Duration::from_secs(600);
    let places = places(100, usize::MAX);
    let there = connections(
        &places,
        now,
        &[
            ("203.0.113.1", Reading, 50),
            ("198.51.100.1", Reading, 3),
            ("198.51.100.2", Reading, 9),
            ("198.51.100.3", Reading, 6),
            ("2001:db8:0:a0::1", Reading, 2),
            ("2001:db8:0:af::1", Reading, 5),
            // Has only just come, and its network has most.
            ("198.51.100.4", Asking, 0),
        ],
    );
    // Where two networks have as many, who is stuck for longest.
    assert_eq!(order(&places, now, &there), [6, 2, 3, 5, 0, 1, 4]);
    drop(there);
    assert!(places.state().per_network.is_empty());
}

#[test]
fn who_gets_on_is_not_stuck() {
    let now = Instant::now() + Duration::from_secs(600);
    let places = places(100, usize::MAX);
    let mut there = connections(&places, now, &[("203.0.113.1", Reading, 50), ("203.0.113.2", Reading, 40)]);
    there[0].0.hold(&Reply::legacy(Arc::new([1])), now);
    assert_eq!(order(&places, now, &there), [1, 0]);
}

#[test]
fn a_network_that_takes_all_places_loses_them_one_by_one_to_whoever_comes() {
    let now = Instant::now();
    let limits = ListLimits { connections: 256, per_address: 2, ..ListLimits::default() };
    let places = Arc::new(Places::new(&limits));
    let crowd: Vec<_> = (0..256u32).map(|number| (format!("203.0.113.{}", number / 2), Reading, 0)).collect();
    let crowd: Vec<_> = crowd.iter().map(|(from, phase, seconds)| (&**from, *phase, *seconds)).collect();
    let crowd = connections(&places, now, &crowd);
    let others: Vec<_> = (0..100u8).map(|number| format!("198.51.{number}.1")).collect();
    let others: Vec<_> = others.iter().map(|from| (&**from, Reading, 0)).collect();
    let others = connections(&places, now, &others);
    assert!(others.iter().all(|(place, _)| place.is_there()));
    assert_eq!(crowd.iter().filter(|(place, _)| place.is_there()).count(), 156);
}

#[test]
fn an_address_or_a_64_has_so_many() {
    let now = Instant::now();
    let places = places(100, usize::MAX);
    let mut kept = Vec::new();
    let mut admit = |text: &str| {
        let (near, far) = pair();
        let place = places.admit(&near, ip(text), now);
        let refused = place.as_ref().err().copied();
        kept.push((place, far));
        refused
    };
    for (first, second, third, other) in [
        ("203.0.113.1", "203.0.113.1", "::ffff:203.0.113.1", "203.0.113.2"),
        ("2001:db8::1", "2001:db8::2", "2001:db8::ffff:1", "2001:db8:0:1::1"),
    ] {
        assert_eq!([first, second, third, other].map(&mut admit), [None, None, Some(Refused), None]);
    }
    assert_eq!(["127.0.0.1", "127.0.0.1", "127.0.0.1", "::1", "::1", "::1"].map(&mut admit), [None; 6]);
    drop(kept);
    assert!(places.state().per_address.is_empty());
}

#[test]
fn what_slow_readers_share_counts_once() {
    let now = Instant::now();
    let places = places(100, 250);
    let lists: [Arc<[u8]>; 3] = [Arc::new([1; 100]), Arc::new([2; 100]), Arc::new([3; 100])];
    let mut readers: Vec<_> = [0, 0, 0, 1, 1]
        .map(|list| {
            let (near, far) = pair();
            let mut place = places.admit(&near, ip("127.0.0.1"), now).unwrap();
            place.enter(Phase::Reply, now);
            place.hold(&Reply::legacy(lists[list].clone()), now);
            place.hold(&Reply::legacy(lists[list].clone()), now);
            (place, far)
        })
        .into();
    assert_eq!((places.state().held_bytes, places.evicted()), (200, 0));
    let (near, _far) = pair();
    let mut newest = places.admit(&near, ip("127.0.0.1"), now).unwrap();
    newest.enter(Phase::Reply, now);
    newest.hold(&Reply::legacy(lists[2].clone()), now);
    assert_eq!((places.state().held_bytes, places.evicted()), (200, 3), "the readers of the oldest have gone");
    readers[3].0.enter(Drain, now);
    drop(readers.remove(4));
    assert_eq!(places.state().held_bytes, 100);
    drop((readers, newest));
    assert!(places.state().held.is_empty() && places.open() == 0);
}
