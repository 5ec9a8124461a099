//! The HTTP view of verification: the states in JSON, the badges and players on the pages, and the filters.

use crate::common;

use common::{
    Server, Site,
    game_server::{info, respond},
};
use rallypoint_lobby::LobbyOptions;
use rallypoint_lobby_proto::Mapping;
use rallypoint_query_proto::{Mod, ServerInfo};
use rallypoint_session::{EndpointConfig, PolledServer, ServerOptions, StaticKey};
use rallypoint_web::WebOptions;
use rallypoint_wire::lobby::Occupancy;
use serde_json::{Value, json};
use std::{net::UdpSocket, time::Duration};

/// Registers "Bacon Town" with this number of players and 10 slots.
fn register(site: &Site, players: u16, x_query: &str) {
    let occupancy = Occupancy { players, slots: 10, ..Occupancy::default() };
    let keys: &[(&[u8], &[u8])] = &[(b"map", b"ctf_two"), (b"x-query", x_query.as_bytes())];
    site.register(&Server { occupancy, keys, ..Server::new(1, "Bacon Town") });
}

/// Waits until the first server of the list has this state.
fn wait_for(site: &Site, verified: &str) -> Value {
    let list = site.wait_for("/api/v1/servers", |list| list["servers"][0]["verified"] == verified);
    list["servers"][0].clone()
}

#[test]
fn a_verified_server_has_a_badge_and_its_players_are_shown() {
    let site = Site::with_probing();
    let own = ServerInfo {
        description: Some("Weekly cup on Fridays".into()),
        mods: vec![Mod { id: Some("ho".into()), name: Some("Higher Orders".into()) }],
        tags: vec!["no items".into()],
        ..info("Bacon Town", 2)
    };
    let addr = respond("127.0.0.1:0", &own);
    register(&site, 3, &format!("session:{}", addr.port()));
    let server = wait_for(&site, "verified");
    assert_eq!((&server["differs"], &server["origin"]), (&json!([]), &json!("registered")));
    let id = server["id"].as_str().unwrap();
    let detail = site.json(&format!("/api/v1/servers/{id}"));
    assert_eq!(detail["players"][1]["name"], "player 1", "{detail}");
    let badge = "Verified: the server's reply matches its registration";
    let page = site.get(&format!("/servers/{id}")).text();
    assert!(page.contains("player 1") && page.contains(&badge.replace('\'', "&#39;")), "{page}");
    assert!(page.contains("</span> from the lobby, when last measured"), "{page}");
    for text in ["Weekly cup on Fridays", "Higher Orders", "no items"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let list = site.get("/").text();
    assert!(list.contains(&format!("aria-label=\"{}\"", badge.replace('\'', "&#39;"))), "{list}");
}

#[test]
fn w67_a_key_that_is_only_stated_is_not_called_verified() {
    let site = Site::with_probing();
    let x_query = format!("session:{}", respond("127.0.0.1:0", &info("Bacon Town", 2)).port());
    let key = "ab".repeat(32);
    let keys: &[(&[u8], &[u8])] = &[(b"x-query", x_query.as_bytes()), (b"x-session-key", key.as_bytes())];
    let occupancy = Occupancy { players: 2, slots: 10, ..Occupancy::default() };
    site.register(&Server { occupancy, keys, ..Server::new(1, "Bacon Town") });
    // The server answers queries, but no logins.
    let server = site.wait_for("/api/v1/servers", |list| list["servers"][0]["session_key"] == "unverified");
    let id = server["servers"][0]["id"].as_str().unwrap();
    let page = site.get(&format!("/servers/{id}")).text();
    assert!(page.contains(&format!("{key} <small>(unverified)</small>")), "{page}");
}

/// Runs a session server with this key until the process ends. Its replies to queries agree with its registration.
fn session_server(key: Option<StaticKey>) -> u16 {
    let endpoint = EndpointConfig { static_key: key, ..EndpointConfig::for_game("bm") };
    let options = ServerOptions::from(endpoint).listen("127.0.0.1:0".parse().unwrap());
    let mut server = PolledServer::bind(options).unwrap();
    server.set_info(&info("Bacon Town", 0));
    let port = server.local_addrs()[0].port();
    std::thread::spawn(move || {
        loop {
            server.poll();
            while server.next_event().is_some() {}
            server.wait(Duration::from_millis(10));
        }
    });
    port
}

#[test]
fn w67_page_and_api_call_a_key_verified_when_the_server_has_proved_to_hold_it() {
    let own = StaticKey::from_bytes([9; 32]).unwrap();
    let other = StaticKey::from_bytes([8; 32]).unwrap();
    // The server holds the key; it holds another one; it has none, and refuses the login.
    let cases = [(Some(own.clone()), "verified"), (Some(other), "unverified"), (None, "unverified")];
    for (held, status) in cases {
        let site = Site::with_probing();
        let x_query = format!("session:{}", session_server(held));
        let key = own.public().to_string();
        let keys: &[(&[u8], &[u8])] =
            &[(b"map", b"ctf_two"), (b"x-query", x_query.as_bytes()), (b"x-session-key", key.as_bytes())];
        let occupancy = Occupancy { players: 0, slots: 10, ..Occupancy::default() };
        site.register(&Server { occupancy, keys, ..Server::new(1, "Bacon Town") });
        // The key is checked before the result of the query is published.
        let server = wait_for(&site, "verified");
        assert_eq!(server["session_key"], status, "{server}");
        let id = server["id"].as_str().unwrap();
        assert_eq!(site.json(&format!("/api/v1/servers/{id}"))["session_key"], status);
        let page = site.get(&format!("/servers/{id}")).text();
        assert!(page.contains(&format!("{key} <small>({status})</small>")), "{page}");
    }
}

#[test]
fn a_false_player_count_is_shown_and_can_be_filtered() {
    let site = Site::with_probing();
    let addr = respond("127.0.0.1:0", &info("Bacon Town", 1));
    register(&site, 9, &format!("session:{}", addr.port()));
    assert_eq!(wait_for(&site, "differs")["differs"], json!(["players"]));
    assert!(site.get("/").text().contains("Differs: lists 9 players, answers 1"));
    assert_eq!(site.json("/api/v1/servers?verified=differs")["total"], 1);
    assert_eq!(site.json("/api/v1/servers?verified=verified")["total"], 0);
    assert!(site.get("/?verified=differs").text().contains("Bacon Town"));
    assert!(!site.get("/?verified=verified").text().contains("Bacon Town"));
}

#[test]
fn all_differing_fields_are_named() {
    let site = Site::with_probing();
    let reply = ServerInfo { map: Some("dm_one".into()), max_players: Some(4), ..info("Tofu", 3) };
    let addr = respond("127.0.0.1:0", &reply);
    register(&site, 3, &format!("session:{}", addr.port()));
    assert_eq!(wait_for(&site, "differs")["differs"], json!(["slots", "name", "map"]));
}

#[test]
fn the_internal_address_of_a_mapped_server_is_not_published() {
    let mut options = LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() };
    let outside =
        Mapping { from: "127.0.0.1/32".parse().unwrap(), port: None, to: [203, 0, 113, 5].into(), to_port: None };
    options.registry.address_map = [outside].into_iter().collect();
    let site = Site::with_lobby(options, WebOptions::default(), |_| {});
    let addr = respond("127.0.0.1:0", &info("Bacon Town", 2));
    register(&site, 3, &format!("session:{}", addr.port()));
    let server = wait_for(&site, "verified").to_string();
    assert!(server.contains("203.0.113.5:") && !server.contains("127.0.0.1"), "{server}");
}

#[test]
fn unreachable_and_unqueried_servers_are_distinguished() {
    let mut options = LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() };
    // Otherwise the server would not even be listed (L12).
    options.registry.checks.enabled = false;
    let site = Site::with_lobby(options, WebOptions::default(), |_| {});
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    register(&site, 3, &format!("bloodmasters:{}", silent.local_addr().unwrap().port()));
    wait_for(&site, "unreachable");
    // A server without the key x-query is not probed.
    site.register(&Server::new(2, "Quiet"));
    let list = site.wait_for("/api/v1/servers?q=quiet", |list| list["total"] == 1);
    assert_eq!(list["servers"][0]["verified"], "not_queried");
}
