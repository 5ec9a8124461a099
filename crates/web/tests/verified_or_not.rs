//! Servers that say how they can be asked are asked, and the list says whether they told the truth.

mod common;

use common::{
    Server, Site,
    responder::{info, respond},
};
use rallypoint_lobby::LobbyOptions;
use rallypoint_lobby_proto::Mapping;
use rallypoint_query_proto::ServerInfo;
use rallypoint_web::WebOptions;
use rallypoint_wire::lobby::Occupancy;
use serde_json::{Value, json};
use std::net::UdpSocket;

fn site() -> Site {
    Site::probing()
}

/// Registers a server that says so many players, while it answers something.
fn register(site: &Site, number: u8, players: u16, x_query: &str) {
    let occupancy = Occupancy { players, slots: 10, ..Occupancy::default() };
    let more: &[(&[u8], &[u8])] = &[(b"map", b"ctf_two"), (b"x-query", x_query.as_bytes())];
    site.register(&Server { occupancy, more, ..Server::new(number, "Bacon Town") });
}

fn wait_for(site: &Site, verified: &str) -> Value {
    let list = site.wait_for("/api/v1/servers", |list| list["servers"][0]["verified"] == verified);
    list["servers"][0].clone()
}

#[test]
fn who_tells_the_truth_is_verified_and_its_players_are_shown() {
    for protocol in ["bloodmasters", "session"] {
        let (site, at) = (site(), respond("127.0.0.1:0", &info("Bacon Town", 2)));
        register(&site, 1, 3, &format!("{protocol}:{}", at.port()));
        let server = wait_for(&site, "verified");
        assert_eq!((&server["differs"], &server["origin"]), (&Value::Null, &json!("registered")), "{protocol}");
        let id = server["id"].as_str().unwrap();
        let one = site.json(&format!("/api/v1/servers/{id}"));
        assert_eq!(one["players"][1]["name"], "player 1", "{protocol}: {one}");
        let page = site.get(&format!("/servers/{id}")).text();
        assert!(
            page.contains("player 1") && page.contains("Verified: the answer of the server matches its registration"),
            "{page}"
        );
        assert!(page.contains("</span> from the lobby, when last measured"), "{page}");
        assert!(
            site.get("/")
                .text()
                .contains(r#"aria-label="Verified: the answer of the server matches its registration""#)
        );
    }
}

#[test]
fn a_fake_player_count_is_told() {
    let (site, at) = (site(), respond("127.0.0.1:0", &info("Bacon Town", 1)));
    register(&site, 1, 9, &format!("session:{}", at.port()));
    assert_eq!(wait_for(&site, "differs")["differs"], json!(["players"]));
    let words = "Differs: the server reports other values for players";
    assert!(site.get("/").text().contains(words));
    assert_eq!(site.json("/api/v1/servers?verified=differs")["total"], 1);
    assert_eq!(site.json("/api/v1/servers?verified=verified")["total"], 0);
    assert!(site.get("/?verified=differs").text().contains("Bacon Town"));
    assert!(!site.get("/?verified=verified").text().contains("Bacon Town"));
}

#[test]
fn other_lies_are_told_by_name() {
    let site = site();
    let at =
        respond("127.0.0.1:0", &ServerInfo { map: Some("dm_one".into()), max_players: Some(4), ..info("Tofu", 3) });
    register(&site, 1, 3, &format!("session:{}", at.port()));
    assert_eq!(wait_for(&site, "differs")["differs"], json!(["slots", "name", "map"]));
}

#[test]
fn a_server_behind_the_address_map_is_asked_where_the_lobby_reaches_it() {
    let mut options = LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() };
    // Nobody is at the outer address, as for a lobby whose router does not let it back in.
    let outside =
        Mapping { from: "127.0.0.1/32".parse().unwrap(), port: None, to: [203, 0, 113, 5].into(), to_port: None };
    options.registry.address_map = [outside].into_iter().collect();
    let site = Site::at(options, WebOptions::default(), |_| {});
    let at = respond("127.0.0.1:0", &info("Bacon Town", 2));
    register(&site, 1, 3, &format!("session:{}", at.port()));
    let server = wait_for(&site, "verified").to_string();
    assert!(server.contains("203.0.113.5:") && !server.contains("127.0.0.1"), "{server}");
}

#[test]
fn who_does_not_answer_any_more_is_unreachable() {
    let mut options = LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() };
    // Otherwise it would not even be listed (L12).
    options.registry.checks.enabled = false;
    let site = Site::at(options, WebOptions::default(), |_| {});
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    register(&site, 1, 3, &format!("bloodmasters:{}", silent.local_addr().unwrap().port()));
    wait_for(&site, "unreachable");
    // Somebody else, who says not how, is not asked.
    site.register(&Server::new(2, "Quiet"));
    let list = site.wait_for("/api/v1/servers?q=quiet", |list| list["total"] == 1);
    assert_eq!(list["servers"][0]["verified"], "unasked");
}
