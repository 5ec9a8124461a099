//! Several nodes serve one list, through a real redis-server.

use rallypoint_harness::{
    CLUSTER_SECRET, GameServer, Lobby, LobbyBuilder, RedisServer, TcpPort, eventually, has_ipv6, http_get, rallypoint,
    run, skip, stderr, stdout, wait_for,
};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

fn node(store: &RedisServer, name: &str) -> LobbyBuilder {
    Lobby::builder().node(&store.url(), name)
}

/// Nodes that have joined.
fn nodes<const N: usize>(store: &RedisServer) -> [Lobby; N] {
    let nodes = std::array::from_fn(|number| node(store, &format!("node{number}")).start());
    nodes.iter().for_each(|node: &Lobby| node.wait_until_logged("joined the cluster"));
    nodes
}

#[track_caller]
fn wait_until_listed(nodes: &[Lobby], names: &[&str]) {
    for node in nodes {
        node.wait_until_listed(names);
    }
}

#[test]
fn a_change_at_one_node_is_in_the_list_of_every_node() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes::<3>(&store);
    let server = GameServer::named("first");
    nodes[0].register(&server);
    wait_until_listed(&nodes, &["first"]);
    // The reply is the same, byte for byte.
    assert_eq!(nodes[1].list_reply(), nodes[0].list_reply());
    // L8: another server at the same address, at another node.
    nodes[1].register(&GameServer::named("second"));
    wait_until_listed(&nodes, &["second"]);
    let server = GameServer::named("third").port(8191);
    nodes[2].register(&server);
    wait_until_listed(&nodes, &["second", "third"]);
    // L11: an unregistration at a node that did not hear the server.
    nodes[0].unregister(&server);
    wait_until_listed(&nodes, &["second"]);
}

#[test]
fn l10_a_lease_ends_at_all_nodes_and_a_refresh_at_any_node_extends_it() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let settings = |builder: LobbyBuilder| builder.set("lobby.lease=12s").start();
    let nodes = [settings(node(&store, "a")), settings(node(&store, "b"))];
    nodes.iter().for_each(|node| node.wait_until_logged("joined the cluster"));
    // Leases do not end in the first ten seconds of a store, in which nodes can renew them.
    let (kept, left) = (GameServer::named("kept"), GameServer::named("left").port(8191));
    nodes[0].register(&kept);
    nodes[0].register(&left);
    wait_until_listed(&nodes, &["kept", "left"]);
    let start = Instant::now();
    eventually("the server that is not refreshed is gone", || {
        nodes[start.elapsed().as_secs() as usize % 2].register(&kept);
        std::thread::sleep(Duration::from_millis(100));
        nodes.iter().all(|node| node.names() == ["kept"])
    });
    assert!(start.elapsed() > Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn nodes_go_on_without_the_store_and_fill_an_empty_one() {
    let Some(mut store) = RedisServer::start(&[]) else { return };
    let nodes = nodes::<2>(&store);
    nodes[0].register(&GameServer::named("a"));
    nodes[1].register(&GameServer::named("b").port(8191));
    wait_until_listed(&nodes, &["a", "b"]);
    store.stop();
    nodes[0].wait_until_logged("no contact with the cluster's store");
    let (status, body) = http_get(nodes[0].http(), "/readyz");
    assert_eq!(status, 200, "{body}");
    assert!(body.contains(r#""status":"degraded""#) && body.contains(r#""cluster":"disconnected""#), "{body}");
    assert!(http_get(nodes[0].http(), "/metrics").1.contains("rallypoint_cluster_connected 0"));
    assert!(http_get(nodes[0].http(), "/").1.contains("no contact with its cluster"));
    // New servers are listed where they register.
    nodes[0].register(&GameServer::named("c").port(8192));
    nodes[0].wait_until_listed(&["a", "b", "c"]);
    nodes[1].wait_until_listed(&["a", "b"]);
    store.restart();
    wait_until_listed(&nodes, &["a", "b", "c"]);
    eventually("the store has all servers", || store.command(&["HLEN", "{rp:rallypoint}:entry"]) == "3");
    nodes[0].wait_until_logged("in contact with the cluster's store again");
    assert_eq!(nodes[0].log().matches("no contact with the cluster's store").count(), 1);
    eventually("the node is ready", || http_get(nodes[0].http(), "/readyz").1.contains(r#""cluster":"connected""#));
}

#[test]
fn a_node_that_starts_after_all_others_were_killed_has_everything() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes::<2>(&store);
    nodes[0].register(&GameServer::named("a"));
    nodes[1].register(&GameServer::named("b").port(8191));
    wait_until_listed(&nodes, &["a", "b"]);
    drop(nodes);
    let third = node(&store, "node2").start();
    third.wait_until_listed(&["a", "b"]);
}

/// Public IDs are the same at every node, and the secret ID is nowhere in the store (L13).
#[test]
fn l13_public_ids_agree_and_server_ids_stay_secret() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes::<2>(&store);
    nodes[0].register(&GameServer::named("a").with_id(*b"a secret ID here"));
    wait_until_listed(&nodes, &["a"]);
    let list = |node: &Lobby| http_get(node.http(), "/api/v1/servers").1;
    let id = |list: &str| list.split("\"id\":\"").nth(1).map(|rest| rest[..32].to_owned());
    let lists = [0, 1]
        .map(|node| wait_for("the server is shown", || Some(list(&nodes[node])).filter(|list| id(list).is_some())));
    assert_eq!(id(&lists[0]), id(&lists[1]), "{lists:?}");
    // Other writes of nodes: the result of a check, the remains of a server that is gone, and messages.
    let port = TcpPort::open("127.0.0.1");
    let gone = GameServer::named("gone").tcp(port.number()).with_id(*b"another ID there");
    nodes[0].register(&gone);
    wait_until_listed(&nodes, &["a", "gone"]);
    nodes[0].unregister(&gone);
    wait_until_listed(&nodes, &["a"]);
    eventually("the other node has answered", || {
        http_get(nodes[1].http(), "/api/v1/outcomes?address=127.0.0.1").1.contains(r#""node":"node0""#)
    });
    let contents = contents(&store);
    for name in ["entry", "at", "lease", "log", "tomb", "meta", "node", "msg", "check"] {
        let is_there = contents.iter().any(|(key, _)| key.starts_with(&format!("{{rp:rallypoint}}:{name}")));
        assert!(is_there, "no {name}: {contents:?}");
    }
    for id in ["a secret ID here", "another ID there"] {
        let hex: String = id.bytes().map(|byte| format!("{byte:02x}")).collect();
        for (key, content) in &contents {
            let is_secret = [id, &hex].iter().all(|id| !key.contains(id) && !content.to_lowercase().contains(id));
            assert!(is_secret && !content.contains(id), "{key}: {content}");
        }
    }
}

/// All keys of a store and their values, as redis-cli prints them.
fn contents(store: &RedisServer) -> Vec<(String, String)> {
    let keys = store.command(&["KEYS", "*"]);
    let read = |key: &str| match &*store.command(&["TYPE", key]) {
        "string" => store.command(&["GET", key]),
        "hash" => store.command(&["HGETALL", key]),
        "zset" => store.command(&["ZRANGE", key, "0", "-1", "WITHSCORES"]),
        "stream" => store.command(&["XRANGE", key, "-", "+"]),
        "set" => store.command(&["SMEMBERS", key]),
        "list" => store.command(&["LRANGE", key, "0", "-1"]),
        // It has expired meanwhile.
        "none" => String::new(),
        kind => panic!("{key} has the unknown type {kind}"),
    };
    keys.lines().map(|key| (key.to_owned(), read(key))).collect()
}

#[test]
fn cluster_status_shows_nodes_and_store() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let _nodes = nodes::<2>(&store);
    let home = tempfile::tempdir().unwrap();
    let status = |args: &[&str]| {
        let mut command = rallypoint(home.path());
        command.args(["cluster", "status", "--cluster", &store.url()]).args(args);
        command.output().unwrap()
    };
    eventually("both nodes have reported that they have everything", || {
        let text = stdout(&status(&[]));
        text.contains("node0") && text.contains("node1") && text.matches(" live ").count() == 2
    });
    let output = status(&["--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json = stdout(&output);
    assert!(json.contains(r#""state": "live""#) && json.contains(r#""role": "master""#), "{json}");
}

#[test]
fn a_node_that_cannot_take_part_exits_with_one_sentence() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let _node = nodes::<1>(&store);
    let home = tempfile::tempdir().unwrap();
    let serve = |url: &str, secret: Option<&str>| {
        let mut command = rallypoint(home.path());
        command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--cluster", url]);
        command.envs(secret.map(|secret| ("RALLYPOINT_CLUSTER_SECRET", secret)));
        let output = command.output().unwrap();
        let text = stderr(&output);
        let last = text.lines().last().unwrap_or_default().to_owned();
        assert!(!output.status.success(), "{text}");
        (output.status.code(), last)
    };
    for (url, secret, code, expected) in [
        (&*store.url(), Some("another secret of the tests"), 1, "another secret"),
        (&store.url(), None, 2, "RALLYPOINT_CLUSTER_SECRET"),
        (&store.url(), Some("short"), 2, "16 to 1024"),
        ("redis://127.0.0.1:1", Some(CLUSTER_SECRET), 1, "cannot reach the store"),
        ("http://127.0.0.1:1", Some(CLUSTER_SECRET), 2, "redis://host:6379"),
    ] {
        let (found, message) = serve(url, secret);
        assert_eq!(found, Some(code), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    let output = run(home.path(), ["cluster", "status"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Other programs, and clusters with other names, can use the same store.
#[test]
fn other_keys_in_the_store_are_left_alone() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let keys = ["meta", "entry", "{rp:other}:note", "rp"];
    keys.iter().for_each(|key| assert_eq!(store.command(&["SET", key, "mine"]), "OK"));
    let named = |name: &str| node(&store, name).set(&format!("cluster.name={name}")).start();
    let nodes = [named("one"), named("two")];
    nodes.iter().for_each(|node| node.wait_until_logged("joined the cluster"));
    nodes[0].register(&GameServer::named("a"));
    nodes[1].register(&GameServer::named("b"));
    eventually("both are in the store", || {
        ["one", "two"].iter().all(|name| store.command(&["HLEN", &format!("{{rp:{name}}}:entry")]) == "1")
    });
    assert_eq!((nodes[0].names(), nodes[1].names()), (vec!["a".to_owned()], vec!["b".to_owned()]));
    keys.iter().for_each(|key| assert_eq!(store.command(&["GET", key]), "mine", "{key}"));
}

/// L9 across nodes: each family at another one.
#[test]
fn l9_both_families_of_a_server_reach_different_nodes() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes::<2>(&store);
    let server = GameServer::named("both");
    nodes[0].register(&server);
    nodes[1].register(&server.clone().from_ip("::1"));
    eventually("both nodes list one server with both addresses", || {
        nodes.iter().all(|node| {
            let servers = node.servers();
            servers.len() == 1 && servers[0].v4.is_some() && servers[0].v6.is_some()
        })
    });
    assert_eq!(nodes[0].list_reply(), nodes[1].list_reply());
}

/// A browser that a proxy sends to another node reads the list again, instead of missing what happened.
#[test]
fn an_event_stream_is_resumed_at_another_node_with_a_reset() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes::<2>(&store);
    nodes[0].register(&GameServer::named("a"));
    wait_until_listed(&nodes, &["a"]);
    let first = first_event(&nodes[0], None);
    let id = first.strip_prefix("id: ").and_then(|rest| rest.lines().next()).expect("an ID");
    assert!(first.contains("event: hello"), "{first}");
    assert!(first_event(&nodes[1], Some(id)).contains("event: reset"));
}

/// The first event of a stream.
fn first_event(node: &Lobby, last_id: Option<&str>) -> String {
    let mut stream = TcpStream::connect(node.http()).unwrap();
    let resume = last_id.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
    write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n{resume}\r\n").unwrap();
    let lines = BufReader::new(stream).lines().map(|line| line.expect("an event stream"));
    let event = lines.skip_while(|line| !line.starts_with("id: ")).take_while(|line| !line.is_empty());
    event.collect::<Vec<_>>().join("\n")
}
