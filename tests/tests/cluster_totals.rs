//! Live events, totals and history of every node count each server once, whichever nodes hear it and whatever happens to the store.

use rallypoint_harness::{GameServer, Lobby, RedisServer, eventually, http_get, wait_for};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::{Arc, Mutex},
    thread,
};

fn node(store: &RedisServer, name: &str) -> Lobby {
    let node = Lobby::builder().node(&store.url(), name).start();
    node.wait_until_logged("joined the cluster");
    node
}

/// The events of a stream so far: the kind of each, and the name of its server.
struct Events(Arc<Mutex<Vec<(String, String)>>>);

impl Events {
    /// Follows the events of a node from now on.
    fn follow(node: &Lobby) -> Self {
        let mut stream = TcpStream::connect(node.http()).unwrap();
        write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let (found, mut kind) = (Arc::clone(&events), String::new());
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "event: hello"), "a stream of events");
        thread::spawn(move || {
            for line in lines {
                if let Some(next) = line.strip_prefix("event: ") {
                    kind = next.to_owned();
                } else if let Some(data) = line.strip_prefix("data: ")
                    && ["listed", "changed", "unlisted"].contains(&&*kind)
                {
                    let name = data.split("\"name\":\"").nth(1).and_then(|rest| rest.split('"').next());
                    found.lock().unwrap().push((kind.clone(), name.unwrap_or_default().to_owned()));
                }
            }
        });
        Self(events)
    }

    /// All events up to the listing of this server, as text.
    fn until_listed(&self, name: &str) -> Vec<String> {
        let end = ("listed".to_owned(), name.to_owned());
        eventually(&format!("{name} is listed"), || self.0.lock().unwrap().contains(&end));
        self.0.lock().unwrap().iter().map(|(kind, name)| format!("{kind} {name}")).collect()
    }
}

#[test]
fn events_and_totals_count_nothing_twice() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = ["a", "b", "c"].map(|name| node(&store, name));
    let streams = nodes.each_ref().map(Events::follow);
    let first = GameServer::named("first");
    let second = GameServer::named("second").port(8191);
    // The same server is heard by all nodes.
    for node in &nodes {
        node.register(&first);
        node.register(&second);
        nodes.iter().for_each(|node| node.wait_until_listed(&["first", "second"]));
    }
    // A change at a node that did not hear it first.
    nodes[2].register(&first.clone().renamed("renamed"));
    nodes.iter().for_each(|node| node.wait_until_listed(&["renamed", "second"]));
    // The store loses everything, and the nodes fill it again.
    let _ = store.command(&["FLUSHALL"]);
    eventually("the store has all servers", || store.command(&["HLEN", "{rp:rallypoint}:entry"]) == "2");
    nodes[1].unregister(&second);
    nodes.iter().for_each(|node| node.wait_until_listed(&["renamed"]));
    nodes[0].register(&GameServer::named("end").port(8192));
    for (node, stream) in nodes.iter().zip(&streams) {
        let mut events = stream.until_listed("end");
        // Events of different servers at about the same time have no order.
        events.sort_unstable();
        assert_eq!(events, ["changed renamed", "listed end", "listed first", "listed second", "unlisted second"]);
        let (_, totals) = http_get(node.http(), "/api/v1/lists");
        assert!(totals.starts_with(r#"{"servers":2,"players":14,"bots":0,"slots":48,"#), "{totals}");
        eventually("the metrics show it", || {
            http_get(node.http(), "/metrics").1.lines().any(|line| line == "rallypoint_servers_listed 2")
        });
    }
}

/// The first sample of a node is taken when it has the servers of the others: before, it would be a gap in their history.
#[test]
fn the_history_of_a_node_that_joins_has_no_gap() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let first = node(&store, "a");
    first.register(&GameServer::named("a"));
    first.register(&GameServer::named("b").port(8191));
    first.wait_until_listed(&["a", "b"]);
    let mut second = node(&store, "b");
    let history = |node: &Lobby| {
        wait_for("there is a history", || {
            let (status, history) = http_get(node.http(), "/api/v1/history?resolution=day");
            Some(history).filter(|history| status == 200 && history.contains(r#""observed":1"#))
        })
    };
    let before = history(&second);
    assert!(
        before.contains(r#""players":{"min":14,"avg":14.0,"max":14}"#) && before.contains(r#""servers":2.0"#),
        "{before}"
    );
    second.kill();
    second.restart();
    second.wait_until_listed(&["a", "b"]);
    let after = history(&second);
    assert!(after.contains(r#""players":{"min":14,"#), "{after}");
}
