//! A cluster's store can be reached through Sentinel, with TLS, and can be a Redis Cluster that replaces its master.

use rallypoint_harness::{GameServer, Lobby, LobbyBuilder, RedisCluster, RedisServer, eventually, rallypoint, stderr};
use std::fs;

const SECRET: &str = "the secret of the tests' cluster";

fn node(url: &str, name: &str) -> LobbyBuilder {
    let builder =
        Lobby::builder().variable("RALLYPOINT_CLUSTER_SECRET", SECRET).variable("RALLYPOINT_CLUSTER_URL", url);
    builder.set(&format!("cluster.node={name}"))
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
    let directory = tempfile::tempdir().unwrap();
    let sentinel = RedisServer::start_sentinel(&store, directory.path());
    let url = format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port());
    let nodes = [node(&url, "a").start(), node(&url, "b").start()];
    nodes[0].register(&GameServer::named("a"));
    wait_until_listed(&nodes, &["a"]);
}

#[test]
fn an_encrypted_store_needs_a_certificate_that_is_trusted() {
    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("cert.pem"), certificate.cert.pem()).unwrap();
    fs::write(path("key.pem"), certificate.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let files =
        ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &cert, "--tls-auth-clients", "no"];
    let Some(store) = RedisServer::start(&files) else { return };
    let url = format!("rediss://127.0.0.1:{}", store.port());
    let trusting = |name| node(&url, name).variable("SSL_CERT_FILE", &cert).start();
    let nodes = [trusting("a"), trusting("b")];
    nodes[0].register(&GameServer::named("a"));
    wait_until_listed(&nodes, &["a"]);
    // Without that file the certificate is not trusted.
    let mut command = rallypoint(directory.path());
    command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--cluster", &url]);
    let output = command.env("RALLYPOINT_CLUSTER_SECRET", SECRET).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("SSL_CERT_FILE"), "{}", stderr(&output));
}

/// Only with all seeds, because it takes a quarter of a minute: the servers of the cluster need several seconds to agree that a
/// master has failed.
#[test]
fn servers_stay_listed_while_a_redis_cluster_replaces_its_master() {
    if std::env::var_os("RALLYPOINT_SEEDS").is_some() {
        return;
    }
    let Some(mut store) = RedisCluster::start() else { return };
    let nodes = [node(&store.url(), "a").start(), node(&store.url(), "b").start()];
    let servers: Vec<_> =
        (0..20).map(|number| GameServer::named(&format!("server {number:02}")).port(8_000 + number)).collect();
    for (number, server) in servers.iter().enumerate() {
        nodes[number % 2].register(server);
    }
    eventually("both nodes have all servers", || nodes.iter().all(|node| node.names().len() == 20));
    store.kill_master_of("{rp:rallypoint}:meta");
    let new = GameServer::named("new").port(9_000);
    eventually("a new server is in both lists", || {
        nodes[0].register(&new);
        for (number, server) in servers.iter().enumerate() {
            nodes[number % 2].register(server);
        }
        let lists: Vec<_> = nodes.iter().map(Lobby::names).collect();
        for list in &lists {
            assert!(
                servers.iter().enumerate().all(|(number, _)| list.contains(&format!("server {number:02}"))),
                "{list:?}"
            );
        }
        lists.iter().all(|list| list.iter().any(|name| name == "new"))
    });
    eventually("the nodes are in contact again", || {
        nodes.iter().all(|node| {
            node.log().matches("in contact with the cluster's store again").count()
                == node.log().matches("no contact with").count()
        })
    });
}
