//! Rate limits affect only the sources that exceed them; the traffic of ordinary servers stays within them.

use rallypoint_harness::{GameServer, Lobby};

/// Sends `rounds` changes of a server; returns the last one that was accepted.
fn flood(lobby: &Lobby, server: &GameServer, rounds: usize) -> usize {
    let all: Vec<_> = (1..=rounds).map(|round| server.clone().key("x-round", round.to_string())).collect();
    lobby.register_all(&all);
    let shown = lobby.servers().into_iter().find_map(|server| server.key("x-round").map(<[u8]>::to_vec));
    String::from_utf8(shown.unwrap()).unwrap().parse().unwrap()
}

#[test]
fn an_address_over_its_limit_is_rejected_and_its_neighbours_are_not() {
    let lobby = Lobby::with(&["limits.exempt=off", "limits.host.packets=1/h burst 20"]);
    assert_eq!(flood(&lobby, &GameServer::named("loud").from_ip("127.66.0.1"), 200), 20);
    let neighbours =
        (2..=20).map(|host| GameServer::named(&format!("neighbour {host:02}")).from_ip(&format!("127.66.0.{host}")));
    lobby.register_all(&neighbours.collect::<Vec<_>>());
    assert_eq!(lobby.names().len(), 20);
    // Another server at that address is rejected, too.
    lobby.register(&GameServer::named("another loud one").from_ip("127.66.0.1").port(9_000));
    lobby.settle();
    assert_eq!(lobby.server("another loud one"), None);
}

#[test]
fn a_network_over_its_limit_is_rejected_and_others_are_not() {
    let lobby = Lobby::with(&["limits.exempt=off", "limits.net.packets=3/h burst 50"]);
    let loud: Vec<_> = (1..=200).map(|host| GameServer::named("loud").from_ip(&format!("127.66.1.{host}"))).collect();
    lobby.register_all(&loud);
    assert_eq!(lobby.names().len(), 50);
    lobby.register(&GameServer::named("quiet").from_ip("127.66.2.1"));
    lobby.settle();
    assert!(lobby.server("quiet").is_some());
}

#[test]
fn bytes_are_limited_as_well() {
    let lobby = Lobby::with(&["limits.exempt=off", "limits.host.bytes=2000/h burst 40000"]);
    let large = GameServer::named("large").key("x-filler", [b'x'; 3_800]);
    assert_eq!(flood(&lobby, &large, 100), 10);
}

#[test]
fn w16_a_refresh_costs_nothing() {
    let lobby = Lobby::with(&["limits.exempt=off", "limits.host.packets=1/h burst 2", "lobby.lease=2s"]);
    let (steady, silent) = (GameServer::named("steady"), GameServer::named("silent").port(8_191));
    lobby.register(&steady);
    lobby.register(&silent);
    lobby.wait_until_listed(&["silent", "steady"]);
    rallypoint_harness::eventually("the lease of the silent server has expired", || {
        lobby.register(&steady);
        lobby.names() == ["steady"]
    });
}

#[test]
fn loopback_is_exempt_by_default() {
    let lobby = Lobby::with(&["limits.host.packets=1/h burst 20"]);
    assert_eq!(flood(&lobby, &GameServer::named("local"), 200), 200);
}

#[test]
fn hundreds_of_servers_in_one_network_are_not_limited() {
    let lobby = Lobby::with(&["limits.exempt=off"]);
    let server = |number: u16| {
        let host = format!("127.66.0.{}", 1 + number % 250);
        GameServer::named(&format!("server {number:03}")).port(9_000 + number).from_ip(&host)
    };
    let servers: Vec<_> = (0..500).map(server).collect();
    lobby.register_all(&servers);
    // A new map everywhere.
    let changed: Vec<_> = servers.into_iter().map(|server| server.key("map", "koth_valley")).collect();
    lobby.register_all(&changed);
    let shown = lobby.servers();
    assert_eq!(shown.len(), 500);
    assert!(shown.iter().all(|server| server.key("map") == Some(b"koth_valley")));
}
