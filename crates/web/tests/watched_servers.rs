//! The HTTP view of watched servers, which the lobby queries instead of waiting for their registrations.

use crate::common;

use common::{
    LOBBY, Site,
    game_server::{info, reply_with, respond},
};
use rallypoint_lobby::WatchTarget;
use rallypoint_query_proto::Protocol;
use std::net::SocketAddr;

fn target(addr: SocketAddr, protocol: Protocol) -> WatchTarget {
    WatchTarget { host: "127.0.0.1".into(), port: addr.port().try_into().unwrap(), protocol, list: LOBBY }
}

#[test]
fn a_watched_server_is_in_the_api_and_has_a_page_with_its_players() {
    let site = Site::with_probing();
    let addr = respond("127.0.0.1:0", &info("Blood", 3));
    site.runtime.block_on(site.lobby.set_watched_servers(&[target(addr, Protocol::Bloodmasters)]));
    let list = site.wait_for("/api/v1/servers", |list| list["servers"][0]["verified"] == "verified");
    let blood = &list["servers"][0];
    assert_eq!((&blood["name"], &blood["numplayers"], &blood["maxplayers"]), (&"Blood".into(), &3.into(), &10.into()));
    assert_eq!((&blood["origin"], &blood["connect"]), (&"watched".into(), &addr.to_string().into()));
    assert_eq!((&blood["game_name"], &blood["raw"]["x-query"]), (&"Bloodmasters".into(), &"bloodmasters".into()));
    let page = site.get(&format!("/servers/{}", blood["id"].as_str().unwrap())).text();
    assert!(page.contains("player 2") && page.contains("Verified: the lobby queried the server itself"), "{page}");
    site.runtime.block_on(site.lobby.set_watched_servers(&[]));
    site.wait_for("/api/v1/servers", |list| list["total"] == 0);
}

#[test]
fn hostile_replies_are_escaped_and_invalid_replies_are_not_listed() {
    let site = Site::with_probing();
    let hostile = respond("127.0.0.1:0", &info("<script>alert(1)</script>\u{202e}", 1));
    let invalid = reply_with("127.0.0.1:0", |_, _| vec![b"nonsense".to_vec()]);
    let targets = [hostile, invalid].map(|addr| target(addr, Protocol::Session));
    site.runtime.block_on(site.lobby.set_watched_servers(&targets));
    site.wait_for("/api/v1/servers", |list| list["total"] == 1);
    let page = site.get("/").text();
    assert!(page.contains("&#60;script&#62;") && !page.contains("<script>alert"), "{page}");
    assert!(!page.contains('\u{202e}'));
}
