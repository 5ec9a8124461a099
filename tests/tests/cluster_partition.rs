//! A node that cannot reach the store while others can keeps what it knows and what it hears, and returns.

use rallypoint_harness::{GameServer, Lobby, RedisServer, eventually};
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

/// A network between a node and the store that can lose everything, without closing connections: as if packets were dropped.
struct Network {
    port: u16,
    is_cut: Arc<AtomicBool>,
}

impl Network {
    fn to(store: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", store)) else { continue };
                let (Ok(client_half), Ok(server_half)) = (client.try_clone(), server.try_clone()) else { continue };
                forward(client, server, Arc::clone(&cut));
                forward(server_half, client_half, Arc::clone(&cut));
            }
        });
        Self { port, is_cut }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, is_cut: Arc<AtomicBool>) {
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok(size @ 1..) = from.read(&mut buffer) {
            // Dropped packets are not seen again: a connection that lost some is of no use.
            if is_cut.load(Relaxed) || to.write_all(&buffer[..size]).is_err() {
                break;
            }
        }
        while is_cut.load(Relaxed) {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Only with all seeds, because leases have to end.
#[test]
fn one_node_is_cut_off_from_the_store() {
    if std::env::var_os("RALLYPOINT_SEEDS").is_some() {
        return;
    }
    let Some(store) = RedisServer::start(&[]) else { return };
    let network = Network::to(store.port());
    let start = |port: u16, name: &str| {
        let builder = Lobby::builder().variable("RALLYPOINT_CLUSTER_SECRET", "the secret of the tests' cluster");
        let builder =
            builder.set(&format!("cluster.url=redis://127.0.0.1:{port}")).set(&format!("cluster.node={name}"));
        builder.set("lobby.lease=12s").start()
    };
    let near = start(store.port(), "near");
    let far = start(network.port, "far");
    let (a, b, c) = (GameServer::named("a"), GameServer::named("b").port(8191), GameServer::named("c").port(8192));
    let refresh = |with_c: bool| {
        near.register(&a);
        far.register(&b);
        if with_c {
            far.register(&c);
        }
        thread::sleep(Duration::from_millis(100));
    };
    eventually("both nodes list both servers", || {
        refresh(false);
        near.names() == ["a", "b"] && far.names() == ["a", "b"]
    });
    network.is_cut.store(true, Relaxed);
    eventually("the node that reaches the store drops what it does not hear of", || {
        refresh(true);
        assert!(far.names().starts_with(&["a".to_owned(), "b".to_owned()]), "the other node keeps what it knew");
        near.names() == ["a"]
    });
    assert_eq!(far.names(), ["a", "b", "c"]);
    network.is_cut.store(false, Relaxed);
    eventually("both nodes list everything", || {
        refresh(true);
        near.names() == ["a", "b", "c"] && far.names() == ["a", "b", "c"]
    });
}
