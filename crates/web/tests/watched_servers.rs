//! Servers that cannot register are asked, and are in the list while they answer.

mod common;

use common::{
    LOBBY, Server, Site,
    responder::{answering, info, respond},
};
use rallypoint_lobby::WatchTarget;
use rallypoint_query_proto::Protocol;
use std::net::SocketAddr;

fn target(at: SocketAddr, host: &str, protocol: Protocol) -> WatchTarget {
    WatchTarget { host: host.into(), port: at.port().try_into().unwrap(), protocol, lobby: LOBBY }
}

#[test]
fn they_are_in_every_list_and_go_when_nobody_wants_them_any_more() {
    let site = Site::probing();
    let (one, other) = (respond("127.0.0.1:0", &info("Blood", 3)), respond("127.0.0.1:0", &info("Session", 2)));
    let all = [target(one, "127.0.0.1", Protocol::Bloodmasters), target(other, "localhost", Protocol::Session)];
    site.runtime.block_on(site.lobby.set_watched_servers(&all));
    let list = site.wait_for("/api/v1/servers?sort=name", |list| {
        list["total"] == 2
            && list["servers"][0]["verified"] == "verified"
            && list["servers"][1]["verified"] == "verified"
    });
    let blood = &list["servers"][0];
    assert_eq!((&blood["name"], &blood["numplayers"], &blood["maxplayers"]), (&"Blood".into(), &3.into(), &10.into()));
    assert_eq!((&blood["origin"], &blood["connect"]), (&"watched".into(), &one.to_string().into()));
    assert_eq!((&blood["game_name"], &blood["raw"]["x-query"]), (&"Bloodmasters".into(), &"bloodmasters".into()));
    let page = site.get(&format!("/servers/{}", blood["id"].as_str().unwrap())).text();
    assert!(page.contains("player 2") && page.contains("Verified: the lobby queried the server itself"), "{page}");
    assert_eq!(site.lobby.lists().lobby(&LOBBY).count(), 2, "in the list of clients, too");

    site.runtime.block_on(site.lobby.set_watched_servers(&all[..1]));
    site.wait_for("/api/v1/servers", |list| list["total"] == 1 && list["servers"][0]["name"] == "Blood");
}

#[test]
fn w38_a_registration_does_not_take_its_place() {
    let site = Site::probing();
    let at = respond("127.0.0.1:8001", &info("Watched", 3));
    site.runtime.block_on(site.lobby.set_watched_servers(&[target(at, "127.0.0.1", Protocol::Bloodmasters)]));
    site.wait_for("/api/v1/servers", |list| list["servers"][0]["name"] == "Watched");
    site.register(&Server { more: &[(b"x-query", b"session:9")], ..Server::new(1, "Bait") });
    let outcomes = site.wait_for("/api/v1/outcomes", |past| past["outcomes"][0]["code"] == "known_by_asking");
    assert_eq!(outcomes["outcomes"][0]["port"], 8_001);
    let list = site.json("/api/v1/servers");
    assert_eq!((&list["total"], &list["servers"][0]["origin"]), (&1.into(), &"watched".into()));
}

#[test]
fn what_they_say_is_shown_as_harmless_as_everything_else() {
    let site = Site::probing();
    let at = respond("127.0.0.1:0", &info("<script>alert(1)</script>\u{202e}", 1));
    let deaf = answering("127.0.0.1:0", |_, _| vec![b"nonsense".to_vec()]);
    let protocol = Protocol::Session;
    site.runtime.block_on(
        site.lobby.set_watched_servers(&[target(at, "127.0.0.1", protocol), target(deaf, "127.0.0.1", protocol)]),
    );
    site.wait_for("/api/v1/servers", |list| list["total"] == 1);
    let page = site.get("/").text();
    assert!(page.contains("&#60;script&#62;") && !page.contains("<script>alert"), "{page}");
    assert!(!page.contains('\u{202e}'));
}
