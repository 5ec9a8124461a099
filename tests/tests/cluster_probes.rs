//! The probe results of one node of a cluster, and its outcomes for owners, are known at all nodes.

use rallypoint_harness::{
    GameServer, Lobby, MockServer, QueryProtocol, RedisServer, TcpPort, eventually, http_get, run, sample_info, stdout,
    wait_for,
};

fn node(store: &RedisServer, name: &str) -> Lobby {
    node_with(store, name, &[])
}

fn node_with(store: &RedisServer, name: &str, settings: &[&str]) -> Lobby {
    let builder = Lobby::builder().node(&store.url(), name);
    let node = settings.iter().fold(builder, |builder, setting| builder.set(setting)).start();
    node.wait_until_logged("joined the cluster");
    node
}

/// W91: each node measures the latency itself; the query for verification is made by one of them.
#[test]
fn w91_a_server_is_verified_for_all_nodes_and_measured_by_each() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = [node(&store, "eu"), node(&store, "us")];
    let mock = MockServer::new(QueryProtocol::Session);
    let queried = GameServer::named("queried").key("x-query", format!("session:{}", mock.addr.port()));
    let port = TcpPort::open("127.0.0.1");
    let connected = GameServer::named("connected").tcp(port.number());
    eventually("both nodes show the result and both latencies", || {
        nodes[0].register(&queried);
        nodes[1].register(&connected);
        nodes.iter().all(|node| {
            let (_, list) = http_get(node.http(), "/api/v1/servers");
            let is_complete = |name: &str| {
                let server = list.split("{\"id\"").find(|server| server.contains(&format!("\"name\":\"{name}\"")));
                server.is_some_and(|server| server.contains("\"pings\":{\"eu\":") && server.contains("\"us\":"))
            };
            // The reply differs from the registration, so it is known that there was one.
            is_complete("queried") && is_complete("connected") && list.contains("\"verified\":\"differs\"")
        })
    });
    // The page of the server shows them, too, and the players that one node has read.
    for node in &nodes {
        let (_, list) = http_get(node.http(), "/api/v1/servers?q=queried");
        let id = list.split("\"id\":\"").nth(1).map(|rest| rest[..32].to_owned()).expect("an ID");
        eventually("the page shows latencies and players", || {
            let (_, page) = http_get(node.http(), &format!("/servers/{id}"));
            page.contains(" from eu</li>") && page.contains(" from us</li>") && page.contains("Online players")
        });
    }
}

/// A node that died verifies nothing: also not what would be its share of new servers.
#[test]
fn servers_that_register_after_the_death_of_a_node_are_verified() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let names = ["eu", "us"];
    let settings = ["checks.enabled=false"];
    let nodes = names.map(|name| node_with(&store, name, &settings));
    let mocks: Vec<_> = (1..=6)
        .map(|n| MockServer::with_info(&format!("127.9.8.{n}:0"), QueryProtocol::Session, &sample_info()))
        .collect();
    let has_nodes = |node: &Lobby, count: usize| {
        http_get(node.http(), "/metrics").1.lines().any(|line| line == format!("rallypoint_cluster_nodes {count}"))
    };
    eventually("the nodes know each other", || has_nodes(&nodes[0], 2));
    nodes[1].kill();
    eventually("the other node counts as gone", || has_nodes(&nodes[0], 1));
    let servers: Vec<_> = mocks
        .iter()
        .map(|mock| {
            let ip = mock.addr.ip().to_string();
            GameServer::named(&ip).from_ip(&ip).port(mock.port()).key("x-query", "session")
        })
        .collect();
    nodes[0].register_all(&servers);
    eventually("all servers are verified by the node that is left", || {
        let (_, list) = http_get(nodes[0].http(), "/api/v1/servers");
        list.matches("\"verified\":\"differs\"").count() == servers.len()
    });
}

/// The owner of a server does not know which node its registrations reach.
#[test]
fn the_reason_for_a_refusal_is_known_at_every_node() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = [node(&store, "eu"), node(&store, "us")];
    let server = GameServer::named("refused").from_ip("127.9.9.9");
    let mut datagram = server.registration();
    datagram.truncate(60);
    eventually("the other node knows the outcome", || {
        nodes[0].send(server.source(), &datagram);
        let (_, outcomes) = http_get(nodes[1].http(), "/api/v1/outcomes?address=127.9.9.9");
        outcomes.contains(r#""node":"eu","code":"malformed""#)
    });
    let (_, page) = http_get(nodes[1].http(), "/why?address=127.9.9.9");
    assert!(page.contains("<td>eu</td>"), "{page}");
    // A node that is gone is named, and does not keep the others from answering.
    nodes[0].kill();
    let (status, outcomes) = http_get(nodes[1].http(), "/api/v1/outcomes?address=127.9.9.9");
    assert_eq!(status, 200);
    assert!(outcomes.contains(r#""silent_nodes":["eu"]"#), "{outcomes}");
}

/// Their reports are old by then, but they are not known to have ended.
#[test]
fn nodes_that_cannot_be_asked_are_named_however_long_the_outage_lasts() {
    let Some(mut store) = RedisServer::start(&[]) else { return };
    let nodes = [node(&store, "eu"), node(&store, "us")];
    let live = |count: u32| {
        let (_, metrics) = http_get(nodes[1].http(), "/metrics");
        metrics.lines().any(|line| line == format!("rallypoint_cluster_nodes {count}"))
    };
    eventually("the nodes know each other", || live(2));
    store.stop();
    eventually("all reports are old", || live(0));
    let (status, outcomes) = http_get(nodes[1].http(), "/api/v1/outcomes?address=127.9.9.9");
    assert_eq!(status, 200);
    assert!(outcomes.contains(r#""silent_nodes":["eu"]"#), "{outcomes}");
}

/// `doctor` at a node that the server does not register at.
#[test]
fn doctor_reports_what_another_node_listed_or_refused() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = [node(&store, "eu"), node(&store, "us")];
    let home = tempfile::tempdir().unwrap();
    let (lobby, api) = (nodes[1].v4().to_string(), nodes[1].url());
    let doctor = |at: &str, transport: &str| {
        let args = ["doctor", "--lobby", &lobby, "--api", &api, at, "--transport", transport, "--timeout", "1s"];
        stdout(&run(home.path(), args))
    };
    let mock = MockServer::new(QueryProtocol::Session);
    nodes[0].register(&GameServer::named("listed").port(mock.port()).key("x-query", "session"));
    nodes[1].wait_until_listed(&["listed"]);
    let text = doctor(&mock.text(), "udp");
    assert!(text.contains(&format!("listed as \"listed\" at {}", mock.text())), "{text}");
    let port = TcpPort::closed("127.9.9.9");
    let refused = GameServer::named("refused").tcp(port.number()).from_ip("127.9.9.9");
    let text = wait_for("the other node knows why", || {
        nodes[0].register(&refused);
        let text = doctor(&format!("127.9.9.9:{}", port.number()), "tcp");
        Some(text).filter(|text| text.contains("problem  outcomes  the lobby reports port_closed"))
    });
    assert!(text.contains("the server is not in the list"), "{text}");
}

/// W45 without checks: a server that has replied to whichever node verifies it is proven at the node that hears it.
#[test]
fn w90_replies_to_the_node_that_verifies_prove_servers_at_another() {
    let Some(store) = RedisServer::start(&[]) else { return };
    let nodes = ["eu", "us"].map(|name| node_with(&store, name, &["checks.enabled=false"]));
    let mocks: Vec<_> = (1..=8)
        .map(|n| MockServer::with_info(&format!("127.9.8.{n}:0"), QueryProtocol::Session, &sample_info()))
        .collect();
    let server = |mock: &MockServer| {
        let (name, ip) = (format!("real {}", mock.addr.ip()), mock.addr.ip().to_string());
        GameServer::named(&name).from_ip(&ip).port(mock.port())
    };
    for node in &nodes {
        eventually("the nodes know each other", || {
            http_get(node.http(), "/metrics").1.lines().any(|line| line == "rallypoint_cluster_nodes 2")
        });
    }
    // Some are verified by the node that hears them, others by the other one.
    let real: Vec<_> = mocks.iter().map(|mock| server(mock).key("x-query", "session")).collect();
    nodes[0].register_all(&real);
    eventually("all have replied", || {
        let (_, list) = http_get(nodes[0].http(), "/api/v1/servers");
        list.matches("\"verified\":\"differs\"").count() == real.len()
    });
    let forged: Vec<_> = mocks.iter().map(|mock| server(mock).renamed("forged")).collect();
    nodes[0].register_all(&forged);
    nodes[0].wait_until_listed(&["forged"; 8]);
    forged.iter().for_each(|server| nodes[0].unregister(server));
    let names: Vec<_> = real.iter().map(GameServer::name).collect();
    for node in &nodes {
        node.wait_until_listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    }
}
