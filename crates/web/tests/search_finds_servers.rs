//! The search and the choice of a game find what players enter, on the page and in the API alike.

use crate::common;

use common::{
    Server, Site,
    game_server::{info, respond},
};
use rallypoint_query_proto::{Player, ServerInfo};

/// Two servers of Gang Garrison 2 and one of Bloodmasters. Of the first, the names of the players are known.
fn site() -> Site {
    let site = Site::with_probing();
    let player = Player { name: "Zoë Sprocket".into(), ..Player::default() };
    let own = ServerInfo { player_list: Some(vec![player]), ..info("Alpha", 1) };
    let x_query = format!("session:{}", respond("127.0.0.1:0", &own).port());
    let gang: &[(&[u8], &[u8])] = &[(b"game", b"Gang Garrison 2"), (b"game_short", b"gg2")];
    let queried: &[(&[u8], &[u8])] = &[gang[0], gang[1], (b"x-query", x_query.as_bytes())];
    let blood: &[(&[u8], &[u8])] = &[(b"game", b"Bloodmasters"), (b"game_short", b"bm")];
    site.register_all(&[
        Server { keys: queried, ..Server::new(1, "Alpha") },
        Server { keys: gang, ..Server::new(2, "Beta") },
        Server { keys: blood, ..Server::new(3, "Gamma") },
    ]);
    site
}

/// Checks which servers a query finds.
fn check(site: &Site, query: &str, expected: &[&str]) {
    let list = site.json(&format!("/api/v1/servers?sort=name&{query}"));
    let names: Vec<_> = list["servers"].as_array().unwrap().iter().map(|server| &server["name"]).collect();
    assert_eq!(names, expected, "API, {query}");
    let html = site.get(&format!("/?sort=name&{query}")).text();
    let shown: Vec<_> =
        ["Alpha", "Beta", "Gamma"].into_iter().filter(|name| html.contains(&format!(">{name}<"))).collect();
    assert_eq!(shown, expected, "page, {query}");
}

#[test]
fn a_game_is_chosen_from_those_listed_with_their_numbers() {
    let site = site();
    let html = site.get("/").text();
    for choice in
        ["<option value=\"gg2\">Gang Garrison 2 (2)</option>", "<option value=\"bm\">Bloodmasters (1)</option>"]
    {
        assert!(html.contains(choice), "{choice}: {html}");
    }
    check(&site, "game=gg2", &["Alpha", "Beta"]);
    check(&site, "game=gang+garrison+2", &["Alpha", "Beta"]);
    check(&site, "game=bm", &["Gamma"]);
    let html = site.get("/?game=bm").text();
    assert!(html.contains("<option value=\"bm\" selected>"), "the form shows the choice: {html}");
}

#[test]
fn the_search_finds_parts_of_games_addresses_and_the_names_of_players() {
    let site = site();
    check(&site, "q=gang", &["Alpha", "Beta"]);
    check(&site, "q=blood", &["Gamma"]);
    check(&site, "q=127.0.0.1:8002", &["Beta"]);
    check(&site, "q=:8003", &["Gamma"]);
    check(&site, "q=127.0.0", &["Alpha", "Beta", "Gamma"]);
    // Names of players are known once the lobby has queried the server.
    site.wait_for("/api/v1/servers?q=sprocket", |list| list["total"] == 1);
    check(&site, "q=zo%C3%AB+SPROCKET", &["Alpha"]);
    check(&site, "q=nobody", &[]);
}
