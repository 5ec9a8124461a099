use super::*;
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

#[test]
fn who_is_done_goes_first_then_who_never_asked_then_who_reads_for_ever() {
    let now = Instant::now();
    let places = places(3, usize::MAX);
    let connections: [_; 3] = std::array::from_fn(|_| pair());
    let [mut reading, asking, mut done] = connections.each_ref().map(|(near, _)| {
        let n = places.open() as u8;
        places.admit(near, [203, 0, 113, n].into(), now).unwrap()
    });
    reading.enter(Phase::Reply, now);
    done.enter(Phase::Drain, now);
    let late = now + SERVED_AT_LEAST * 2;
    let mut new = Vec::new();
    for (step, when) in [(2, now), (1, now)] {
        let (near, far) = pair();
        let mut place = places.admit(&near, ip("198.51.100.1"), when).unwrap();
        place.enter(Phase::Reply, when);
        new.push((place, far));
        assert!(is_cut(&connections[step].1), "{step}");
        assert_eq!(places.open(), 3);
    }
    assert!(!done.is_there() && !asking.is_there() && reading.is_there());
    let (near, _far) = pair();
    assert_eq!(places.admit(&near, ip("198.51.100.9"), now).unwrap_err(), Refused::Total, "all are being served");
    let _place = places.admit(&near, ip("198.51.100.9"), late).unwrap();
    assert!(!reading.is_there() && is_cut(&connections[0].1));
    assert_eq!(places.evicted(), 3);
    drop((reading, asking, done));
    assert_eq!(places.open(), 3, "a place is given back once");
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
        assert_eq!([first, second, third, other].map(&mut admit), [None, None, Some(Refused::Address), None]);
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
            place.hold(&Reply::legacy(lists[list].clone()));
            place.hold(&Reply::legacy(lists[list].clone()));
            (place, far)
        })
        .into();
    assert_eq!((places.state().held_bytes, places.evicted()), (200, 0));
    let (near, _far) = pair();
    let mut newest = places.admit(&near, ip("127.0.0.1"), now).unwrap();
    newest.enter(Phase::Reply, now);
    newest.hold(&Reply::legacy(lists[2].clone()));
    assert_eq!((places.state().held_bytes, places.evicted()), (200, 3), "the readers of the oldest have gone");
    readers[3].0.enter(Phase::Drain, now);
    drop(readers.remove(4));
    assert_eq!(places.state().held_bytes, 100);
    drop((readers, newest));
    assert!(places.state().held.is_empty() && places.open() == 0);
}
