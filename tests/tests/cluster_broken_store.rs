//! A store that is read-only, full, slow, or has other values than expected: nodes go on, report it once, and agree afterwards.

use rallypoint_harness::{
    CLUSTER_SECRET, GameServer, Lobby, LobbyBuilder, RedisServer, eventually, http_get, rallypoint, stderr,
};
use rustix::process::Signal;

fn builder(store: &RedisServer, name: &str) -> LobbyBuilder {
    Lobby::builder().node(&store.url(), name)
}

/// Two nodes with a server each.
fn nodes(store: &RedisServer) -> [Lobby; 2] {
    let nodes = ["a", "b"].map(|name| builder(store, name).start());
    nodes.iter().for_each(|node| node.wait_until_logged("joined the cluster"));
    nodes[0].register(&GameServer::named("a"));
    nodes[1].register(&GameServer::named("b").port(8191));
    nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b"]));
    nodes
}

/// Breaks the store, and repairs it. Meanwhile the first node accepts a server. `code` and `problem` are the reason as programs and the log
/// have it.
fn break_and_repair(nodes: &[Lobby; 2], code: &str, problem: &str, break_it: impl FnOnce(), repair: impl FnOnce()) {
    break_it();
    let new = GameServer::named("c").port(8192);
    nodes[0].register(&new);
    nodes[0].wait_until_listed(&["a", "b", "c"]);
    nodes[0].wait_until_logged("no contact with the cluster's store");
    assert!(nodes[0].log().contains(problem), "{}", nodes[0].log());
    assert!(nodes[0].log().contains(code), "{}", nodes[0].log());
    let ready = || http_get(nodes[0].http(), "/readyz");
    let is_reported = |(status, body): &(u16, String)| {
        *status == 200
            && body.contains(r#""status":"degraded""#)
            && body.contains(&format!(r#""cluster_problem":{{"code":"{code}""#))
    };
    eventually("the node reports it", || is_reported(&ready()));
    // It tries again and again, and has contact for a moment each time: that is no end of the outage.
    let failures = failures(&nodes[0]);
    eventually("the node has tried again", || {
        let ready = ready();
        assert!(is_reported(&ready) && !ready.1.contains("redis://"), "{ready:?}");
        self::failures(&nodes[0]) >= failures + 3
    });
    repair();
    eventually("the outage has ended", || {
        let (_, body) = ready();
        assert!(!body.contains(r#""code":"loading""#), "the reason stays until the end: {body}");
        body.contains(r#""cluster":"connected""#)
    });
    for node in nodes {
        node.wait_until_listed(&["a", "b", "c"]);
    }
    nodes[0].wait_until_logged("in contact with the cluster's store again");
    for message in ["no contact with the cluster's store", "in contact with the cluster's store again"] {
        assert_eq!(nodes[0].log().matches(message).count(), 1, "{}", nodes[0].log());
    }
    assert!(!ready().1.contains("cluster_problem"), "{:?}", ready());
}

/// Number of requests to the store that have failed.
fn failures(node: &Lobby) -> u64 {
    let (_, metrics) = http_get(node.http(), "/metrics");
    let name = "rallypoint_cluster_events_total{event=\"failures\"} ";
    metrics.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).expect("a counter")
}

fn run(store: &RedisServer, command: &[&str]) {
    let reply = store.command(command);
    assert!(!reply.contains("ERR"), "{command:?}: {reply}");
}

#[test]
fn a_master_that_was_demoted() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    let demote = || run(&store, &["REPLICAOF", "127.0.0.1", "1"]);
    break_and_repair(&nodes, "store_read_only", "refuses changes", demote, || run(&store, &["REPLICAOF", "NO", "ONE"]));
}

#[test]
fn a_store_without_memory() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    let fill = || run(&store, &["CONFIG", "SET", "maxmemory", "1"]);
    break_and_repair(&nodes, "store_read_only", "refuses changes", fill, || {
        run(&store, &["CONFIG", "SET", "maxmemory", "0"]);
    });
}

#[test]
fn a_store_that_hangs() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    let resume = || store.signal(Signal::CONT);
    break_and_repair(&nodes, "store_unreachable", "does not answer in time", || store.signal(Signal::STOP), resume);
}

#[test]
fn keys_with_values_of_another_program() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    let spoil = || {
        run(&store, &["DEL", "{rp:rallypoint}:entry"]);
        run(&store, &["SET", "{rp:rallypoint}:entry", "garbage"]);
    };
    break_and_repair(&nodes, "store_foreign_value", "has other values", spoil, || {
        run(&store, &["DEL", "{rp:rallypoint}:entry"]);
    });
    eventually("the store has all servers", || store.command(&["HLEN", "{rp:rallypoint}:entry"]) == "3");
}

/// The nodes set the store up again and write what they have.
#[test]
fn metadata_that_is_lost_is_written_again() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    for field in ["format", "secret", "epoch", "seq", "token"] {
        run(&store, &["HDEL", "{rp:rallypoint}:meta", field]);
        eventually("the field is there again", || {
            field == "token" || store.command(&["HEXISTS", "{rp:rallypoint}:meta", field]) == "1"
        });
        eventually("the store has all servers", || store.command(&["HLEN", "{rp:rallypoint}:entry"]) == "2");
        nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b"]));
    }
    nodes[0].register(&GameServer::named("c").port(8192));
    nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b", "c"]));
    for node in &nodes {
        eventually("the node is in contact", || {
            http_get(node.http(), "/readyz").1.contains(r#""cluster":"connected""#)
        });
    }
}

/// An operator who sees that nodes are unstable finds the reason in the log.
#[test]
fn what_was_found_and_repaired_is_logged_once() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    let has_all = || store.command(&["HLEN", "{rp:rallypoint}:entry"]) == "2";
    for _ in 0..2 {
        run(&store, &["FLUSHALL"]);
        eventually("the store has all servers", has_all);
    }
    let found =
        [("emptied", "the cluster's store has lost its content"), ("lost_servers", "were deleted or overwritten")];
    nodes.iter().for_each(|node| node.wait_until_logged(found[0].1));
    // A node notices it if it has seen at a tick that they were there.
    eventually("both nodes have noticed that servers are gone", || {
        let _ = store.command(&["DEL", "{rp:rallypoint}:entry"]);
        nodes.iter().all(|node| node.log().contains(found[1].1))
    });
    eventually("the store has all servers again", has_all);
    for node in &nodes {
        for (defect, text) in found {
            let lines: Vec<_> = node.log().lines().filter(|line| line.contains(text)).map(str::to_owned).collect();
            assert!(matches!(&*lines, [line] if line.contains("WARN") && line.contains(defect)), "{lines:?}");
        }
        node.wait_until_listed(&["a", "b"]);
    }
}

#[test]
fn garbage_is_counted_and_the_list_stays() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    let large = "x".repeat(100_000);
    for key in ["entry", "ban", "node", "at"] {
        run(&store, &["HSET", &format!("{{rp:rallypoint}}:{key}"), "garbage", &large]);
    }
    run(&store, &["ZADD", "{rp:rallypoint}:lease", "1", "garbage"]);
    run(&store, &["XADD", "{rp:rallypoint}:msg", "*", "m", &large]);
    // The next number of the log, without anything that a record has.
    let seq: u64 = store.command(&["HGET", "{rp:rallypoint}:meta", "seq"]).parse().unwrap();
    run(&store, &["XADD", "{rp:rallypoint}:log", &format!("{}-0", seq + 1), "x", "y"]);
    run(&store, &["HINCRBY", "{rp:rallypoint}:meta", "seq", "1"]);
    eventually("both nodes have counted it", || {
        nodes.iter().all(|node| {
            let (_, metrics) = http_get(node.http(), "/metrics");
            let count = |event: &str| {
                let name = format!("rallypoint_cluster_events_total{{event=\"{event}\"}} ");
                metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok()).unwrap_or(0)
            };
            count("malformed") > 0 && count("malformed_messages") > 0
        })
    });
    nodes[0].register(&GameServer::named("c").port(8192));
    nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b", "c"]));
}

/// A node that joins would not have these servers.
#[test]
fn servers_that_were_overwritten_are_written_again() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    let spoil = "for _, id in ipairs(redis.call('HKEYS', KEYS[1])) do redis.call('HSET', KEYS[1], id, ARGV[1]) end";
    for garbage in ["", "garbage of another program"] {
        run(&store, &["EVAL", spoil, "1", "{rp:rallypoint}:entry", garbage]);
        let count = "local count = 0 for _, value in ipairs(redis.call('HVALS', KEYS[1])) do \
                     if value ~= '' and string.byte(value, 1) == 1 then count = count + 1 end end return count";
        eventually("the store has all servers", || {
            store.command(&["EVAL", count, "1", "{rp:rallypoint}:entry"]) == "2"
        });
        nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b"]));
    }
    let third = builder(&store, "c").start();
    third.wait_until_listed(&["a", "b"]);
    assert!(nodes.iter().all(|node| !node.log().contains("no contact")), "{}", nodes[0].log());
}

/// Values that are larger than what nodes write are skipped by the store's scripts, or end the connection before they are received.
#[cfg(target_os = "linux")]
#[test]
fn huge_values_are_not_kept() {
    const LARGE: &str = "local large = string.rep('x', 20000000) ";
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    let key = |name: &str| format!("{{rp:rallypoint}}:{name}");
    for (name, command) in [
        ("entry", "return redis.call('HSET', KEYS[1], 'garbage', large)"),
        ("ban", "return redis.call('HSET', KEYS[1], 'garbage', large)"),
        ("node", "return redis.call('HSET', KEYS[1], 'garbage', large)"),
        ("msg", "return redis.call('XADD', KEYS[1], '*', 'm', large)"),
        (
            "log",
            "local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1) return redis.call('XADD', KEYS[1], seq .. '-0', 'k', large)",
        ),
    ] {
        run(&store, &["EVAL", &format!("{LARGE}{command}"), "2", &key(name), &key("meta")]);
    }
    let third = builder(&store, "c").start();
    third.wait_until_logged("joined the cluster");
    nodes[0].register(&GameServer::named("c").port(8192));
    for node in nodes.iter().chain([&third]) {
        node.wait_until_listed(&["a", "b", "c"]);
        let peak = node.process().peak_memory();
        assert!(peak < 64 << 20, "{} MB", peak >> 20);
    }
    eventually("it is counted", || {
        let (_, metrics) = http_get(third.http(), "/metrics");
        // The ban, and the entry if it was not deleted before.
        let count =
            |line: &str| line.strip_prefix("rallypoint_cluster_events_total{event=\"malformed\"} ")?.parse().ok();
        metrics.lines().find_map(count).is_some_and(|count: u64| (1..=2).contains(&count))
    });
    for node in &nodes {
        eventually("the node is in contact", || {
            http_get(node.http(), "/readyz").1.contains(r#""cluster":"connected""#)
        });
    }
}

/// The numbers of later records would be too low for the log.
#[test]
fn a_record_with_a_far_number() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    run(&store, &["XADD", "{rp:rallypoint}:log", "999999999-0", "x", "y"]);
    nodes[0].register(&GameServer::named("c").port(8192));
    nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b", "c"]));
    nodes[1].register(&GameServer::named("d").port(8193));
    nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b", "c", "d"]));
    assert!(nodes.iter().all(|node| !node.log().contains("no contact")), "{}", nodes[0].log());
}

/// A node with another secret can set an emptied store up before the others do.
#[test]
fn nodes_return_when_the_store_accepts_them_again() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = nodes(&store);
    let meta = "{rp:rallypoint}:meta";
    run(&store, &["FLUSHALL"]);
    run(&store, &["HSET", meta, "format", "1", "secret", "x", "epoch", "0123456789abcdef", "seq", "0", "token", ""]);
    nodes.iter().for_each(|node| node.wait_until_logged("the nodes in the store have another secret"));
    nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b"]));
    run(&store, &["FLUSHALL"]);
    eventually("the store has all servers", || store.command(&["HLEN", "{rp:rallypoint}:entry"]) == "2");
    nodes[0].register(&GameServer::named("c").port(8192));
    nodes.iter().for_each(|node| node.wait_until_listed(&["a", "b", "c"]));
}

#[test]
fn a_store_of_a_later_version_is_refused() {
    let Some(store) = RedisServer::start(&[]) else { return };
    run(&store, &["HSET", "{rp:rallypoint}:meta", "format", "9", "secret", "x", "epoch", "0123456789abcdef"]);
    run(&store, &["HSET", "{rp:rallypoint}:meta", "seq", "0", "token", ""]);
    let home = tempfile::tempdir().unwrap();
    let mut command = rallypoint(home.path());
    command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off", "--cluster", &store.url()]);
    let output = command.env("RALLYPOINT_CLUSTER_SECRET", CLUSTER_SECRET).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("later version (format 9"), "{}", stderr(&output));
}

/// It comes back under its name, with the servers that the others have, and takes part again.
#[test]
fn a_node_that_was_killed_and_started_again() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let [first, mut second] = nodes(&store);
    second.kill();
    second.restart();
    second.wait_until_listed(&["a", "b"]);
    second.register(&GameServer::named("c").port(8192));
    first.wait_until_listed(&["a", "b", "c"]);
    let home = tempfile::tempdir().unwrap();
    eventually("the cluster has two nodes", || {
        let mut command = rallypoint(home.path());
        command.args(["cluster", "status", "--json", "--cluster", &store.url()]);
        let json = String::from_utf8(command.output().unwrap().stdout).unwrap();
        json.matches("\"state\": \"live\"").count() == 2 && json.matches("\"name\": \"b\"").count() == 1
    });
}
