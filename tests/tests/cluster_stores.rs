//! A cluster's store can be reached through Sentinel, with TLS, and can be a Redis Cluster that replaces its master.

use rallypoint_harness::{
    CLUSTER_SECRET, GameServer, Lobby, LobbyBuilder, RedisCluster, RedisServer, eventually, rallypoint, stderr,
};
use rallypoint_wire::lobby::Occupancy;
use std::{
    fs,
    net::UdpSocket,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

fn node(url: &str, name: &str) -> LobbyBuilder {
    Lobby::builder().node(url, name)
}

#[track_caller]
fn wait_until_listed(nodes: &[Lobby], names: &[&str]) {
    for node in nodes {
        node.wait_until_listed(names);
    }
}

#[test]
fn sentinel_names_the_store() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let sentinel = RedisServer::start_sentinel(&store);
    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port());
    let nodes = [node(&url, "a").start(), node(&url, "b").start()];
    nodes[0].register(&GameServer::named("a"));
    wait_until_listed(&nodes, &["a"]);
}

/// Sentinel can require the password of the store, or its own, which is then that of the store.
#[test]
fn sentinel_with_a_password_names_the_store() {
    let Some(store) = RedisServer::start(&["--requirepass", "hunter2"]) else { return };
    let sentinel = RedisServer::start_sentinel_with(&store, "sentinel auth-pass main hunter2\nrequirepass hunter2");
    let url = |user: &str| format!("redis+sentinel://{user}127.0.0.1:{}/main", sentinel.port());
    let nodes = ["a", "b"].map(|name| node(&url(":hunter2@"), name).start());
    nodes[0].register(&GameServer::named("a"));
    wait_until_listed(&nodes, &["a"]);
    for user in ["", ":hunter3@"] {
        let text = crate::cluster_unusable_stores::refusal(&url(user));
        assert!(text.contains("user or password: check them in its address"), "{text}");
    }
}

/// Sentinel names the replica that replaces a master; what the master had not replicated is written again.
#[test]
fn sentinel_names_another_store_after_a_failover() {
    let Some(mut master) = RedisServer::start(&[]) else { return };
    let Some(replica) = RedisServer::start(&["--replicaof", "127.0.0.1", &master.port().to_string()]) else { return };
    let sentinel = RedisServer::start_sentinel(&master);
    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port());
    let nodes = [node(&url, "a").start(), node(&url, "b").start()];
    nodes[0].register(&GameServer::named("a"));
    wait_until_listed(&nodes, &["a"]);
    eventually("Sentinel knows the replica, which has everything", || {
        sentinel.command(&["SENTINEL", "REPLICAS", "main"]).contains(&replica.port().to_string())
            && replica.command(&["INFO", "replication"]).contains("master_link_status:up")
    });
    master.stop();
    let new = GameServer::named("b").port(8191);
    eventually("a new server is in both lists", || {
        nodes[1].register(&new);
        let lists: Vec<_> = nodes.iter().map(Lobby::names).collect();
        assert!(lists.iter().all(|list| list.contains(&"a".to_owned())), "{lists:?}");
        lists.iter().all(|list| *list == ["a", "b"])
    });
    eventually("the new master has both servers", || replica.command(&["HLEN", "{rp:rallypoint}:entry"]) == "2");
}

/// A store that accepts only TLS, with a certificate that it has signed itself.
pub struct EncryptedStore {
    pub server: RedisServer,
    /// The file of its certificate.
    pub certificate: String,
    pub directory: tempfile::TempDir,
}

impl EncryptedStore {
    pub fn start() -> Option<Self> {
        Self::start_with("no")
    }

    /// A store whose clients need a certificate (`yes`) or not (`no`).
    pub fn start_with(client_certificates: &str) -> Option<Self> {
        let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        fs::write(path("cert.pem"), certificate.cert.pem()).unwrap();
        fs::write(path("key.pem"), certificate.signing_key.serialize_pem()).unwrap();
        let (cert, key) = (path("cert.pem"), path("key.pem"));
        let files = [
            "--tls-cert-file",
            &cert,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &cert,
            "--tls-auth-clients",
            client_certificates,
        ];
        let server = RedisServer::start(&files)?;
        Some(Self { server, certificate: cert, directory })
    }
}

#[test]
fn an_encrypted_store_needs_a_certificate_that_is_trusted() {
    let Some(EncryptedStore { server: store, certificate: cert, directory }) = EncryptedStore::start() else { return };
    let url = format!("rediss://127.0.0.1:{}", store.port());
    let trusting = |name| node(&url, name).variable("SSL_CERT_FILE", &cert).start();
    let nodes = [trusting("a"), trusting("b")];
    nodes[0].register(&GameServer::named("a"));
    wait_until_listed(&nodes, &["a"]);
    // Without that file the certificate is not trusted.
    let mut command = rallypoint(directory.path());
    command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--cluster", &url]);
    let output = command.env("RALLYPOINT_CLUSTER_SECRET", CLUSTER_SECRET).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("SSL_CERT_FILE"), "{}", stderr(&output));
}

/// Registers servers in turn, each with the same node. Returns the number of registrations per second.
fn send_registrations(nodes: &[Lobby; 2], servers: &[GameServer], rate: u32, is_over: &AtomicBool) -> f64 {
    let addrs = [nodes[0].v4(), nodes[1].v4()];
    let sockets: Vec<_> =
        servers.iter().map(|server| UdpSocket::bind((server.source(), 0)).expect("an address")).collect();
    let begin = Instant::now();
    let mut sent = 0_u32;
    while !is_over.load(Relaxed) {
        let due = (begin.elapsed().as_secs_f64() * f64::from(rate)) as u32;
        while sent < due {
            let number = sent as usize % servers.len();
            let round = sent as usize / servers.len();
            // One in ten rounds of a server is a change.
            let players = ((round + number) / 10 % 16) as u16;
            let occupancy = Occupancy { slots: 16, players, ..Occupancy::default() };
            let datagram = servers[number].clone().occupancy(occupancy).registration();
            let _ = sockets[number].send_to(&datagram, addrs[number % 2]);
            sent += 1;
        }
        thread::sleep(Duration::from_millis(2));
    }
    f64::from(sent) / begin.elapsed().as_secs_f64()
}

/// Takes a minute.
mod full {
    use super::*;

    /// In full runs only, because it takes half a minute: the servers of the cluster need several seconds to agree that a master
    /// has failed. Meanwhile 5,000 registrations arrive per second, of which one in ten is a change.
    #[test]
    fn servers_stay_listed_while_a_redis_cluster_replaces_its_master() {
        const SERVERS: usize = 500;
        const RATE: u32 = 5_000;
        let Some(mut store) = RedisCluster::start() else { return };
        let start = |name| node(&store.url(), name).set("limits.exempt=127.0.0.0/8").start();
        let nodes = [start("a"), start("b")];
        let servers: Vec<_> = GameServer::many(SERVERS).collect();
        for (number, server) in servers.iter().enumerate() {
            nodes[number % 2].register(server);
            thread::sleep(Duration::from_micros(500));
        }
        let is_complete =
            |names: &[String]| servers.iter().all(|server| names.iter().any(|name| *name == server.name()));
        eventually("both nodes have all servers", || nodes.iter().all(|node| is_complete(&node.names())));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let load = scope.spawn(|| send_registrations(&nodes, &servers, RATE, &is_over));
            store.kill_master_of("{rp:rallypoint}:meta");
            let new = GameServer::named("new").port(9_000);
            let mut elected = None;
            eventually("a new server is in both lists", || {
                if elected.is_none() && store.has_master_of("{rp:rallypoint}:meta") {
                    elected = Some(Instant::now());
                }
                nodes[0].register(&new);
                let lists: Vec<_> = nodes.iter().map(Lobby::names).collect();
                for list in &lists {
                    assert!(is_complete(list), "a node lists {} servers", list.len());
                }
                elected.is_some() && lists.iter().all(|list| list.iter().any(|name| name == "new"))
            });
            let time = elected.expect("an election").elapsed();
            is_over.store(true, Relaxed);
            let rate = load.join().expect("the load");
            eprintln!(
                "{rate:.0} registrations per second; a new server was in both lists {time:.1?} after the election"
            );
            assert!(
                time < Duration::from_secs(10),
                "a new server was in both lists only {time:.1?} after the election"
            );
        });
        eventually("the nodes are in contact again", || {
            nodes.iter().all(|node| {
                node.log().matches("in contact with the cluster's store again").count()
                    == node.log().matches("no contact with").count()
            })
        });
    }

    /// In full runs only, because the store is away for a minute.
    #[test]
    fn a_store_that_was_away_for_a_minute_and_is_empty_is_filled_again() {
        let Some(mut store) = RedisServer::start(&[]) else { return };
        let nodes = ["a", "b", "c"].map(|name| node(&store.url(), name).start());
        let servers: Vec<_> = GameServer::many(300).collect();
        let refresh = || {
            for (number, server) in servers.iter().enumerate() {
                nodes[number % 3].register(server);
                thread::sleep(Duration::from_micros(500));
            }
        };
        refresh();
        eventually("all nodes have all servers", || nodes.iter().all(|node| node.names().len() == 300));
        store.stop();
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            refresh();
            thread::sleep(Duration::from_secs(10));
            assert!(nodes.iter().all(|node| node.names().len() == 300), "servers are missing without the store");
        }
        store.restart();
        let restarted = Instant::now();
        eventually("the store has all servers", || {
            assert!(
                nodes.iter().all(|node| node.names().len() == 300),
                "servers are missing while the store is filled"
            );
            store.command(&["HLEN", "{rp:rallypoint}:entry"]) == "300"
        });
        let time = restarted.elapsed();
        eprintln!("the store was full {time:.1?} after its start");
        assert!(time < Duration::from_secs(5), "the store was full only {time:.1?} after its start");
    }
}
