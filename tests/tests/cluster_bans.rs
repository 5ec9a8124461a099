//! Bans of an operator count at all nodes, whatever happens to the store.

use rallypoint_harness::{
    GameServer, Lobby, RedisServer, eventually, http_get, rallypoint, send_request, stderr, stdout, wait_for,
};
use serde_json::Value;
use std::{collections::BTreeSet, thread};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const KEY: &str = "{rp:rallypoint}:ban";

/// A node with an operator.
fn start(store: &RedisServer, name: &str) -> Lobby {
    let node = Lobby::builder().node(&store.url(), name).variable("RALLYPOINT_WEB_ADMIN_TOKEN", TOKEN).start();
    node.wait_until_logged("joined the cluster");
    node
}

fn administered(store: &RedisServer) -> [Lobby; 2] {
    ["a", "b"].map(|name| start(store, name))
}

/// Runs a command of the operator. Returns its output and its warnings.
#[track_caller]
fn admin(node: &Lobby, args: &[&str]) -> (String, String) {
    let home = tempfile::tempdir().unwrap();
    let mut command = rallypoint(home.path());
    let output = command.env("RALLYPOINT_ADMIN_TOKEN", TOKEN).args(["admin", "--url", &node.url()]).args(args).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    (stdout(&output), stderr(&output))
}

/// Waits until all nodes know of a ban. What it removes from the lists can arrive before it.
#[track_caller]
fn wait_until_banned(nodes: &[Lobby], subject: &str) {
    for node in nodes {
        eventually("the node has the ban", || admin(node, &["bans"]).0.contains(subject));
    }
}

/// An operator's ban at one node counts at all nodes, and so does its end.
#[test]
fn a_ban_at_one_node_counts_at_all() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = administered(&store);
    let server = GameServer::named("banned").from_ip("127.9.9.9");
    nodes[0].register(&server);
    nodes.iter().for_each(|node| node.wait_until_listed(&["banned"]));
    admin(&nodes[1], &["ban", "127.9.9.9"]);
    nodes.iter().for_each(|node| node.wait_until_listed(&[]));
    wait_until_banned(&nodes, "127.9.9.9");
    nodes[0].register(&server);
    nodes[0].settle();
    assert_eq!(nodes[0].names(), [""; 0]);
    admin(&nodes[1], &["unban", "127.9.9.9"]);
    eventually("the server is listed again at both nodes", || {
        nodes[0].register(&server);
        nodes.iter().all(|node| node.names() == ["banned"])
    });
}

/// An operator unlists a server at a node that the server does not register at.
#[test]
fn a_server_that_was_unlisted_at_one_node_is_unlisted_at_all() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = administered(&store);
    let (server, other) = (GameServer::named("unlisted"), GameServer::named("other").port(8191));
    nodes[0].register(&server);
    nodes[0].register(&other);
    nodes.iter().for_each(|node| node.wait_until_listed(&["other", "unlisted"]));
    let id = wait_for("the server has a public ID", || {
        let (_, list) = http_get(nodes[1].http(), "/api/v1/servers?q=unlisted");
        list.split("\"id\":\"").nth(1).map(|rest| rest[..32].to_owned())
    });
    admin(&nodes[1], &["unlist", &id]);
    nodes.iter().for_each(|node| node.wait_until_listed(&["other"]));
    wait_until_banned(&nodes, "server \"unlisted\"");
    for node in &nodes {
        node.register(&server);
        node.settle();
        nodes.iter().for_each(|node| assert_eq!(node.names(), ["other"]));
    }
    admin(&nodes[0], &["unban", &id]);
    eventually("both nodes list the server again", || {
        nodes[1].register(&server);
        nodes.iter().all(|node| node.names() == ["other", "unlisted"])
    });
}

/// Each node accepts the servers that it hears when the ban is over.
#[test]
fn a_ban_for_a_time_ends_at_all_nodes() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = administered(&store);
    let server = |name: &str, port| GameServer::named(name).port(port).from_ip("127.9.9.9");
    let servers = [server("at the first", 8190), server("at the second", 8191)];
    let names = servers.each_ref().map(GameServer::name);
    let register = || nodes.iter().zip(&servers).for_each(|(node, server)| node.register(server));
    register();
    nodes.iter().for_each(|node| node.wait_until_listed(&names.each_ref().map(|name| &**name)));
    admin(&nodes[0], &["ban", "127.9.9.9", "--for", "10s"]);
    nodes.iter().for_each(|node| node.wait_until_listed(&[]));
    wait_until_banned(&nodes, "127.9.9.9");
    register();
    nodes.iter().for_each(|node| {
        node.settle();
        assert_eq!(node.names(), [""; 0]);
    });
    eventually("both nodes accept the servers again", || {
        register();
        nodes.iter().all(|node| node.names() == names)
    });
    for node in &nodes {
        let (bans, _) = admin(node, &["bans"]);
        let is_over = bans.lines().filter(|line| line.contains("127.9.9.9")).all(|line| line.contains("expired"));
        assert!(is_over, "{bans}");
    }
}

/// The store has forgotten that the ban was lifted, and the node that was away never heard of it.
#[test]
fn a_lifted_ban_does_not_come_back_with_a_node_that_was_away() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let [first, mut second] = administered(&store);
    let server = GameServer::named("banned").from_ip("127.9.9.9");
    first.register(&server);
    second.wait_until_listed(&["banned"]);
    admin(&first, &["ban", "127.9.9.9"]);
    second.wait_until_listed(&[]);
    second.kill();
    admin(&first, &["unban", "127.9.9.9"]);
    eventually("the store has the decision", || {
        store.command(&["HGET", "{rp:rallypoint}:ban", "127.9.9.9"]).contains("lifted")
    });
    let _ = store.command(&["FLUSHALL"]);
    eventually("the node has shared the decision again", || {
        store.command(&["HGET", "{rp:rallypoint}:ban", "127.9.9.9"]).contains("lifted")
    });
    second.restart();
    eventually("both nodes list the server", || {
        second.register(&server);
        [&first, &second].iter().all(|node| node.names() == ["banned"])
    });
}

/// Nodes that start later get the bans, and what was lifted, from the store.
#[test]
fn bans_are_written_again_when_their_key_was_deleted() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = administered(&store);
    admin(&nodes[0], &["ban", "127.9.9.8"]);
    admin(&nodes[1], &["ban", "127.9.9.9"]);
    admin(&nodes[1], &["unban", "127.9.9.9"]);
    let is_complete = || {
        store.command(&["HGET", KEY, "127.9.9.8"]).contains("put")
            && store.command(&["HGET", KEY, "127.9.9.9"]).contains("lifted")
    };
    eventually("the store has both", is_complete);
    eventually("both nodes know of both", || {
        nodes.iter().all(|node| {
            let (bans, _) = admin(node, &["bans"]);
            bans.contains("127.9.9.8") && !bans.contains("127.9.9.9")
        })
    });
    // A node notices that bans are gone if it has seen at a tick that they were there.
    let ticked = || store.command(&["HGET", "{rp:rallypoint}:meta", "ticked"]);
    let before = ticked();
    eventually("a node has seen them", || ticked() != before);
    assert_eq!(store.command(&["DEL", KEY]), "1");
    eventually("the store has both again", is_complete);
    let third = start(&store, "c");
    eventually("the new node has the ban", || admin(&third, &["bans"]).0.contains("127.9.9.8"));
}

/// The list does not depend on the bans, nor on the messages: it goes on.
#[test]
fn a_value_of_another_program_in_place_of_bans_or_messages_is_reported_once() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = administered(&store);
    let message_key = "{rp:rallypoint}:msg";
    for key in [KEY, message_key] {
        let _ = store.command(&["DEL", key]);
        assert_eq!(store.command(&["SET", key, "another program's"]), "OK");
    }
    let problems = [("bans are not shared", KEY), ("the results of probes are not shared", message_key)];
    for node in &nodes {
        for (problem, key) in problems {
            node.wait_until_logged(problem);
            assert!(node.log().lines().any(|line| line.contains(problem) && line.contains(key)), "{}", node.log());
        }
        for event in ["malformed", "malformed_messages"] {
            let line = format!("rallypoint_cluster_events_total{{event=\"{event}\"}} 1");
            eventually("it is counted", || http_get(node.http(), "/metrics").1.lines().any(|known| known == line));
        }
    }
    eventually("the node reports it", || {
        let (status, body) = http_get(nodes[0].http(), "/readyz");
        status == 200 && body.contains(r#""status":"degraded""#) && body.contains(r#""code":"bans_not_shared""#)
    });
    let (_, warning) = admin(&nodes[0], &["ban", "127.9.9.9"]);
    assert!(warning.contains("this holds at this node only"), "{warning}");
    nodes[0].register(&GameServer::named("a"));
    nodes.iter().for_each(|node| node.wait_until_listed(&["a"]));
    assert_eq!(store.command(&["GET", KEY]), "another program's", "it is left alone");
    let _ = store.command(&["DEL", KEY]);
    eventually("the messages are the problem", || {
        http_get(nodes[0].http(), "/readyz").1.contains(r#""code":"messages_not_shared""#)
    });
    let _ = store.command(&["DEL", message_key]);
    for node in &nodes {
        node.wait_until_logged("bans are shared with the other nodes again");
        node.wait_until_logged("the results of probes are shared with the other nodes again");
        assert!(!node.log().contains("no contact"), "{}", node.log());
        problems.iter().for_each(|(problem, _)| assert_eq!(node.log().matches(problem).count(), 1, "{}", node.log()));
    }
    eventually("the other node has the ban", || admin(&nodes[1], &["bans"]).0.contains("127.9.9.9"));
    eventually("nothing is wrong", || http_get(nodes[0].http(), "/readyz").1.contains(r#""status":"ready""#));
}

#[test]
fn a_ban_without_the_store_holds_here_and_reaches_the_others_later() {
    let Some(mut store) = RedisServer::start(&[]) else { return };
    let nodes = administered(&store);
    let (text, warning) = admin(&nodes[0], &["ban", "127.9.9.7"]);
    assert!(text.starts_with("banned: 127.9.9.7") && warning.is_empty(), "{text}{warning}");
    store.stop();
    nodes[0].wait_until_logged("no contact with the cluster's store");
    let (text, warning) = admin(&nodes[0], &["ban", "127.9.9.9"]);
    assert!(text.starts_with("banned: 127.9.9.9"), "{text}");
    let warning = warning.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(warning.contains("holds at this node only") && warning.contains("cannot be reached"), "{warning}");
    assert!(!warning.contains("redis://"), "{warning}");
    store.restart();
    eventually("the other node has the ban", || admin(&nodes[1], &["bans"]).0.contains("127.9.9.9"));
}

/// The response of the admin API.
fn request(node: &Lobby, method: &str, path: &str, body: &str) -> Value {
    let length = body.len();
    let request = format!(
        "{method} /api/v1/admin{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let response = String::from_utf8(send_request(node.http(), request.as_bytes())).unwrap();
    let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_default()
}

/// The banned addresses at a node, with the IDs of the bans.
fn bans(node: &Lobby) -> Vec<(String, u64)> {
    let bans = request(node, "GET", "/bans?limit=1000", "");
    let all = bans["bans"].as_array().unwrap_or_else(|| panic!("{bans}"));
    let ban = |ban: &Value| Some((ban["network"].as_str()?.to_owned(), ban["id"].as_u64()?));
    all.iter().filter_map(ban).collect()
}

/// Operators ban and lift the same addresses at both nodes at the same time. The order in which the store gets their decisions counts.
#[test]
fn decisions_of_several_operators_are_the_same_at_all_nodes() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = administered(&store);
    let addresses = ["127.9.9.1", "127.9.9.2", "127.9.9.3"];
    for round in 0..3 {
        thread::scope(|scope| {
            for operator in 0..4_u64 {
                let nodes = &nodes;
                scope.spawn(move || {
                    let mut random = 7 + 4 * round + operator;
                    for _ in 0..12 {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        let choice = (random >> 33) as usize;
                        let (node, address) = (&nodes[choice % 2], addresses[choice / 2 % 3]);
                        let banned = bans(node).into_iter().find(|(network, _)| network == address);
                        match banned.filter(|_| !(choice / 6).is_multiple_of(3)) {
                            Some((_, id)) => drop(request(node, "DELETE", &format!("/bans/{id}"), "")),
                            None => {
                                let reason = format!("{operator} {choice}");
                                let body = format!(r#"{{"network":"{address}","reason":"{reason}"}}"#);
                                drop(request(node, "POST", "/bans", &body));
                            }
                        }
                    }
                });
            }
        });
        let stored = || -> BTreeSet<String> {
            let is_banned = |address: &&&str| store.command(&["HGET", KEY, address]).contains("\"put\"");
            addresses.iter().filter(is_banned).map(ToString::to_string).collect()
        };
        let at = |node: &Lobby| -> BTreeSet<String> { bans(node).into_iter().map(|(network, _)| network).collect() };
        eventually("all nodes have what the store has", || {
            let stored = stored();
            nodes.iter().all(|node| at(node) == stored)
        });
        // Nothing is under way that would change it.
        admin(&nodes[0], &["ban", "127.9.9.200"]);
        wait_until_banned(&nodes, "127.9.9.200");
        let last = stored();
        let known = nodes.each_ref().map(|node| &at(node) - &BTreeSet::from(["127.9.9.200".to_owned()]));
        assert_eq!(known, [last.clone(), last]);
        admin(&nodes[0], &["unban", "127.9.9.200"]);
    }
}
