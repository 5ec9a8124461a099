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
    // An ID that is listed may pass once more in 5 seconds (W87).
    let accepted = flood(&lobby, &GameServer::named("loud").from_ip("127.66.0.1"), 200);
    assert!((20..=24).contains(&accepted), "{accepted}");
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
fn loopback_is_exempt_by_default() {
    let lobby = Lobby::with(&["limits.host.packets=1/h burst 20"]);
    assert_eq!(flood(&lobby, &GameServer::named("local"), 200), 200);
}
