//! Nodes of neighbouring versions work together: what only a later version knows is ignored, and what an earlier one does not write is
//! not needed. A store with the layout of another version is refused and left as it is.

use rallypoint_harness::{
    CLUSTER_SECRET, GameServer, Lobby, RedisServer, eventually, http_get, rallypoint, stderr, stdout,
};

const META: &str = "{rp:rallypoint}:meta";

/// The writes of a node of a later version: an entry with further flags and an unknown origin, and its record with further fields.
const LATER_PUT: &str = "
    local id = redis.call('HKEYS', KEYS[1])[1]
    local old = redis.call('HGET', KEYS[1], id)
    local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
    local body = 13 + string.byte(old, 12) + 1
    local value = string.sub(old, 1, 1) .. struct.pack('>I8', seq) .. '\\9' .. string.sub(old, 11, body + 23)
        .. '\\254' .. string.sub(old, body + 25)
    redis.call('HSET', KEYS[1], id, value)
    local previous = redis.call('HGET', KEYS[2], 'token')
    redis.call('HSET', KEYS[2], 'token', 'later' .. seq, 'of_a_later_version', 'x')
    redis.call('XADD', KEYS[3], seq .. '-0', 'k', 'put', 'x', 'y', 'i', id, 'v', value, 'c', 'later' .. seq, 'p', previous)
    return #value";

/// A record of some kind about the first server.
const LATER_RECORD: &str = "
    local id = redis.call('HKEYS', KEYS[1])[1]
    local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
    local previous = redis.call('HGET', KEYS[2], 'token')
    redis.call('HSET', KEYS[2], 'token', 'later' .. seq)
    redis.call('XADD', KEYS[3], seq .. '-0', 'k', ARGV[1], 'i', id, 'v', ARGV[2], 'z', '', 'c', 'later' .. seq, 'p', previous)
    if ARGV[1] == 'del' then redis.call('HDEL', KEYS[1], id) end
    return seq";

fn nodes(store: &RedisServer) -> [Lobby; 2] {
    ["a", "b"].map(|name| {
        let node = Lobby::builder().node(&store.url(), name).start();
        node.wait_until_logged("joined the cluster");
        node
    })
}

#[track_caller]
fn eval(store: &RedisServer, script: &str, args: &[&str]) {
    let keys = ["3", "{rp:rallypoint}:entry", META, "{rp:rallypoint}:log"];
    let reply = store.command(&[&["EVAL", script], &keys[..], args].concat());
    assert!(reply.parse::<u64>().is_ok(), "{reply}");
}

#[track_caller]
fn command(store: &RedisServer, command: &[&str]) {
    let reply = store.command(command);
    assert!(!reply.contains("ERR"), "{command:?}: {reply}");
}

fn counter(node: &Lobby, event: &str) -> u64 {
    let name = format!("rallypoint_cluster_events_total{{event=\"{event}\"}} ");
    let (_, metrics) = http_get(node.http(), "/metrics");
    metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).expect("the counter")
}

#[test]
fn what_only_a_later_version_knows_is_ignored() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    nodes[0].register(&GameServer::named("old"));
    nodes.iter().for_each(|node| node.wait_until_listed(&["old"]));
    let (_, list) = http_get(nodes[0].http(), "/api/v1/servers");
    let id = list.split("\"id\":\"").nth(1).expect("a server")[..32].to_owned();

    eval(&store, LATER_PUT, &[]);
    eval(&store, LATER_RECORD, &["later", "x"]);
    let latencies = format!(r#"{{"from":5,"name":"later","v":9,"latencies":[["{id}",12000]],"x":{{}}}}"#);
    for message in [r#"{"from":5,"name":"later","gossip":[1,2]}"#, &latencies] {
        command(&store, &["XADD", "{rp:rallypoint}:msg", "*", "n", "x", "m", message]);
    }
    let now = store.command(&["TIME"]).lines().next().expect("seconds").to_owned() + "000";
    let report = r#"{"name":"later","version":"99.0.0","format":7,"mood":["good"]}"#;
    command(&store, &["HSET", "{rp:rallypoint}:node", "77", &format!("{now} {report}")]);
    command(&store, &["HSET", "{rp:rallypoint}:node", "78", &format!(r#"{now} {{"name":"earlier"}}"#)]);
    for node in &nodes {
        node.wait_until_listed(&["old"]);
        eventually("the latency of a later node is shown", || {
            http_get(node.http(), "/api/v1/servers").1.contains(r#""later":12"#)
        });
        // The record of an unknown kind is counted.
        eventually("the log was read", || counter(node, "malformed") == 1);
        assert_eq!(counter(node, "malformed_messages"), 0);
        assert_eq!(counter(node, "loads"), 1, "the log was followed without a gap");
    }
    // The server can still change and be changed.
    nodes[1].register(&GameServer::named("new").port(8191));
    nodes.iter().for_each(|node| node.wait_until_listed(&["new", "old"]));
    eval(&store, LATER_RECORD, &["del", "retired"]);
    nodes.iter().for_each(|node| eventually("a server is gone", || node.names().len() == 1));
    assert_eq!(store.command(&["HGET", META, "of_a_later_version"]), "x", "fields of later versions stay");

    let home = tempfile::tempdir().unwrap();
    let output = rallypoint(home.path()).args(["cluster", "status", "--json", "--cluster", &store.url()]).output();
    let json = stdout(&output.unwrap());
    assert!(json.contains(r#""version": "99.0.0""#) && json.contains(r#""name": "earlier""#), "{json}");
}

/// Whether the format is later or too old, the program says what to do, and changes nothing.
#[test]
fn a_store_with_an_unknown_layout_is_refused_and_left_as_it_is() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let home = tempfile::tempdir().unwrap();
    for (format, expected) in [("2", "later version (format 2"), ("0", "earlier version (format 0")] {
        command(&store, &["HSET", META, "format", format, "secret", "x", "epoch", "0123456789abcdef"]);
        command(&store, &["HSET", META, "seq", "0", "token", ""]);
        command(&store, &["DEL", "{rp:rallypoint}:log"]);
        command(&store, &["XADD", "{rp:rallypoint}:log", "5-0", "of", "another version"]);
        let mut serve = rallypoint(home.path());
        serve.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--cluster", &store.url()]);
        let output = serve.env("RALLYPOINT_CLUSTER_SECRET", CLUSTER_SECRET).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        assert_eq!(store.command(&["XLEN", "{rp:rallypoint}:log"]), "1");
    }
    command(&store, &["HSET", META, "format", "2"]);
    let output = rallypoint(home.path()).args(["cluster", "status", "--cluster", &store.url()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("update this program"), "{}", stderr(&output));
}

/// A node that runs when a later version takes the store over is told so, keeps its list, and says it once.
#[test]
fn a_running_node_is_refused_when_the_layout_changes() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    nodes[0].register(&GameServer::named("a"));
    nodes.iter().for_each(|node| node.wait_until_listed(&["a"]));
    command(&store, &["HSET", META, "format", "2", "epoch", "fedcba9876543210"]);
    for node in &nodes {
        node.wait_until_logged("later version (format 2");
        node.wait_until_listed(&["a"]);
        assert!(http_get(node.http(), "/readyz").1.contains(r#""status":"degraded""#));
        assert_eq!(node.log().matches("later version (format 2").count(), 1, "{}", node.log());
    }
    assert_eq!(store.command(&["HGET", META, "format"]), "2");
}
