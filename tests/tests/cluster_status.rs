//! `rallypoint cluster status` tells a stopped node from a lost one, and a store that cannot be used from a cluster without nodes.

use rallypoint_harness::{Lobby, RedisCluster, RedisServer, eventually, rallypoint, stderr, stdout};
use serde_json::Value;
use std::process::Output;

const META: &str = "{rp:rallypoint}:meta";
const NODE: &str = "{rp:rallypoint}:node";

fn nodes<const N: usize>(store: &str) -> [Lobby; N] {
    let nodes = std::array::from_fn(|number| Lobby::builder().node(store, &format!("node{number}")).start());
    nodes.iter().for_each(|node: &Lobby| node.wait_until_logged("joined the cluster"));
    nodes
}

fn status(store: &str, args: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = rallypoint(home.path());
    command.args(["cluster", "status", "--cluster", store]).args(args).output().unwrap()
}

/// The exit code and the document.
fn status_json(store: &str) -> (Option<i32>, Value) {
    let output = status(store, &["--json"]);
    let document = serde_json::from_str(&stdout(&output));
    (output.status.code(), document.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output))))
}

fn state_of<'a>(document: &'a Value, name: &str) -> Option<&'a str> {
    document["nodes"].as_array()?.iter().find(|node| node["name"] == name)?["state"].as_str()
}

#[track_caller]
fn run(store: &RedisServer, command: &[&str]) -> String {
    let reply = store.command(command);
    assert!(!reply.contains("ERR"), "{command:?}: {reply}");
    reply
}

/// Writes the report of a node that has not reported for some time.
fn report(store: &RedisServer, seconds_ago: u64, report: &str) {
    let time = run(store, &["TIME"]);
    let seconds: u64 = time.lines().next().and_then(|line| line.parse().ok()).expect("a time");
    let row = format!("{} {report}", (seconds - seconds_ago) * 1_000);
    run(store, &["HSET", NODE, "77", &row]);
}

#[test]
fn a_node_that_was_stopped_is_not_missed() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let [first, second] = nodes::<2>(&store.url());
    eventually("both nodes have reported", || {
        let (code, document) = status_json(&store.url());
        code == Some(0) && ["node0", "node1"].iter().all(|name| state_of(&document, name) == Some("live"))
    });
    assert!(second.stop().status.success());
    let (code, document) = status_json(&store.url());
    assert_eq!((code, &document["problem"]), (Some(0), &Value::Null));
    assert_eq!((state_of(&document, "node0"), state_of(&document, "node1")), (Some("live"), None));
    assert!(first.stop().status.success());
    let output = status(&store.url(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("all were stopped"), "{}", stderr(&output));
}

#[test]
fn a_node_that_died_is_lost_and_the_text_says_since_when() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let _nodes = nodes::<1>(&store.url());
    report(&store, 12 * 60, r#"{"name":"node7","version":"0.1.0"}"#);
    eventually("the running node has reported", || {
        let (code, document) = status_json(&store.url());
        assert_eq!((code, state_of(&document, "node7")), (Some(1), Some("lost")));
        state_of(&document, "node0") == Some("live")
    });
    let output = status(&store.url(), &[]);
    assert!(stdout(&output).contains("node7  0.1.0    lost 12 min ago"), "{}", stdout(&output));
    assert!(stderr(&output).contains("no longer report: node7 (12 min ago)"), "{}", stderr(&output));
}

#[test]
fn a_node_that_loses_contact_again_and_again_is_not_healthy() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let _nodes = nodes::<1>(&store.url());
    for count in 1..=3 {
        run(&store, &["CLIENT", "KILL", "TYPE", "normal"]);
        eventually("the node has reported the outage", || {
            status_json(&store.url()).1["nodes"][0]["outages"].as_u64().is_some_and(|outages| outages >= count)
        });
    }
    let (code, document) = status_json(&store.url());
    assert_eq!((code, state_of(&document, "node0")), (Some(1), Some("unstable")));
    assert!(document["problem"].as_str().unwrap().contains("again and again: node0"), "{document}");
}

/// In JSON too, where a program expects a document.
#[test]
fn a_store_that_cannot_be_reached_is_the_problem() {
    let Some(mut store) = RedisServer::start(&[]) else { return };
    store.stop();
    let (code, document) = status_json(&store.url());
    assert_eq!((code, &document["is_reachable"]), (Some(1), &Value::Bool(false)));
    assert_eq!(document["store"], store.url());
    assert!(document["problem"].as_str().unwrap().contains("cannot reach the store"), "{document}");
    let output = status(&store.url(), &[]);
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains("cannot reach the store"), "{}", stderr(&output));
}

/// A store that can be read, but not changed, makes all nodes silent.
#[test]
fn a_store_that_refuses_changes_is_the_problem() {
    let Some(store) = RedisServer::start(&[]) else { return };
    drop(nodes::<1>(&store.url()));
    report(&store, 60, r#"{"name":"node7"}"#);
    run(&store, &["CONFIG", "SET", "maxmemory", "1"]);
    let (code, document) = status_json(&store.url());
    assert_eq!((code, &document["is_writable"]), (Some(1), &Value::Bool(false)));
    assert_eq!(state_of(&document, "node7"), Some("unknown"));
    assert!(document["problem"].as_str().unwrap().contains("refuses changes"), "{document}");
}

#[test]
fn broken_metadata_are_the_problem() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let unused = stderr(&status(&store.url(), &[]));
    assert!(unused.contains("no node of a cluster with this name"), "{unused}");
    run(&store, &["HSET", META, "format", "1", "secret", "x", "epoch", "0123456789abcdef", "token", ""]);
    let output = status(&store.url(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("{rp:rallypoint}:meta: it has no seq"), "{}", stderr(&output));
    run(&store, &["DEL", META]);
    run(&store, &["SET", META, "garbage"]);
    assert!(stderr(&status(&store.url(), &[])).contains("has other values"), "the key has another type");
}

/// A monitoring program needs no right to change anything.
#[test]
fn a_user_who_may_only_read_is_enough() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let _nodes = nodes::<1>(&store.url());
    run(&store, &["ACL", "SETUSER", "monitor", "on", ">hunter2", "~{rp:*", "+@read", "+time", "+client", "+hello"]);
    let url = store.url().replace("://", "://monitor:hunter2@");
    eventually("the node has reported", || {
        let (code, document) = status_json(&url);
        assert_eq!((&document["is_writable"], &document["server"]), (&Value::Null, &Value::Null), "{document}");
        code == Some(0)
    });
}

/// Not those of the server that happens to answer.
#[test]
fn the_figures_of_a_redis_cluster_are_those_of_the_master_with_the_keys() {
    let Some(store) = RedisCluster::start() else { return };
    for (number, server) in store.servers().iter().enumerate() {
        let limit = format!("{}", (number + 1) * 100_000_000);
        run(server, &["CONFIG", "SET", "maxmemory", &limit]);
    }
    let _nodes = nodes::<1>(&store.url());
    let master = store.master_of(META).expect("a master with the keys of the cluster");
    let limit: u64 = run(master, &["CONFIG", "GET", "maxmemory"]).lines().last().unwrap().parse().unwrap();
    for _ in 0..4 {
        let (_, document) = status_json(&store.url());
        assert_eq!((&document["max_memory"], &document["role"]), (&limit.into(), &"master".into()), "{document}");
    }
    // One address would do until the next failover, but only one.
    let (code, document) = status_json(&master.url());
    assert_eq!(code, Some(1));
    assert!(document["problem"].as_str().unwrap().contains("is part of a Redis Cluster"), "{document}");
}

/// Evicting one key would take a part of all servers with it.
#[test]
fn a_store_that_evicts_keys_is_worth_a_warning() {
    let Some(store) = RedisServer::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]) else {
        return;
    };
    let [node] = nodes::<1>(&store.url());
    assert_eq!(node.log().matches("set maxmemory-policy noeviction").count(), 1, "{}", node.log());
    let output = status(&store.url(), &[]);
    assert!(stdout(&output).contains("maxmemory-policy allkeys-lru"), "{}", stdout(&output));
    // Nothing else is evicted by this one.
    run(&store, &["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    assert!(!stdout(&status(&store.url(), &[])).contains("warning"));
}

#[test]
fn another_node_with_the_same_name_is_worth_a_warning() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let [first] = nodes::<1>(&store.url());
    let second = Lobby::builder().node(&store.url(), "node0").start();
    for node in [&first, &second] {
        node.wait_until_logged("another node of the cluster is called \"node0\" too");
    }
    eventually("the state of the cluster shows it", || {
        let (code, document) = status_json(&store.url());
        code == Some(1) && document["problem"].as_str().is_some_and(|text| text.contains("the same name: node0"))
    });
    assert!(second.stop().status.success());
    eventually("nothing is wrong any more", || status_json(&store.url()).0 == Some(0));
}
