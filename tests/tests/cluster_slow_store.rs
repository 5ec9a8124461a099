//! A store that answers late: lists stay complete, and the outage is reported once, not again and again.

use rallypoint_harness::{GameServer, Lobby, RedisServer, eventually};
use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// A long way to a store: everything arrives late, in both directions.
struct SlowLink {
    addr: SocketAddr,
    latency_ms: Arc<AtomicU64>,
}

impl SlowLink {
    fn to(store: &RedisServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = Self { addr: listener.local_addr().unwrap(), latency_ms: Arc::default() };
        let (port, latency_ms) = (store.port(), link.latency_ms.clone());
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    forward(from.try_clone().unwrap(), to.try_clone().unwrap(), latency_ms.clone());
                }
            }
        });
        link
    }

    fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    fn set_latency(&self, latency: Duration) {
        self.latency_ms.store(latency.as_millis() as u64, Relaxed);
    }
}

/// Passes on what arrives, each part when it is due, until one side closes the connection.
fn forward(mut from: TcpStream, mut to: TcpStream, latency_ms: Arc<AtomicU64>) {
    let (sender, parts) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let due = Instant::now() + Duration::from_millis(latency_ms.load(Relaxed));
            if sender.send((due, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, part) in parts {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&part).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Two nodes behind a slow link, with a server each.
fn nodes(link: &SlowLink) -> [Lobby; 2] {
    let nodes = ["a", "b"].map(|name| Lobby::builder().node(&link.url(), name).start());
    nodes.iter().for_each(|node| node.wait_until_logged("joined the cluster"));
    nodes[0].register(&GameServer::named("a"));
    nodes[1].register(&GameServer::named("b").port(8191));
    nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b"]));
    nodes
}

fn outages(node: &Lobby) -> (usize, usize) {
    let count = |text: &str| node.log().matches(text).count();
    (count("no contact with the cluster's store"), count("in contact with the cluster's store again"))
}

/// As far away as the other side of the world, over a bad line.
#[test]
fn a_store_that_answers_after_half_a_second_is_no_outage() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let link = SlowLink::to(&store);
    let nodes = nodes(&link);
    link.set_latency(Duration::from_millis(250));
    for (number, name) in ["c", "d", "e"].into_iter().enumerate() {
        let server = GameServer::named(name).port(8_192 + number as u16);
        nodes[number % 2].register(&server);
        nodes.iter().for_each(|node| {
            eventually("the server is in both lists", || {
                let names = node.names();
                assert!(names.starts_with(&["a".to_owned(), "b".to_owned()]), "{names:?}");
                names.iter().any(|known| known == name)
            });
        });
    }
    nodes.iter().for_each(|node| assert_eq!(outages(node), (0, 0), "{}", node.log()));
}

/// Requests are given up after three seconds: some still succeed, others do not.
#[test]
fn a_store_that_answers_after_three_seconds_is_one_outage_and_no_server_is_missing() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let link = SlowLink::to(&store);
    let nodes = nodes(&link);
    link.set_latency(Duration::from_millis(1_500));
    let late = GameServer::named("c").port(8192);
    nodes[0].register(&late);
    nodes[0].wait_until_listed(&["a", "b", "c"]);
    let end = Instant::now() + Duration::from_secs(25);
    while Instant::now() < end {
        assert_eq!(nodes[0].names(), ["a", "b", "c"]);
        let names = nodes[1].names();
        assert!(names == ["a", "b"] || names == ["a", "b", "c"], "{names:?}");
        thread::sleep(Duration::from_millis(100));
    }
    nodes.iter().for_each(|node| assert!(outages(node).0 <= 1, "{}", node.log()));
    link.set_latency(Duration::ZERO);
    nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b", "c"]));
    eventually("the nodes are in contact", || {
        nodes.iter().all(|node| {
            let (lost, found) = outages(node);
            assert!(lost <= 1, "{}", node.log());
            lost == found
        })
    });
}
