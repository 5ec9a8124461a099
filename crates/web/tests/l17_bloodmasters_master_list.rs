//! The Bloodmasters master list: a server that announces itself is probed before it is listed.

use crate::common;

use common::{
    Site, connect,
    game_server::{info, reply_with, respond},
    read_response, request, wait_until,
};
use rallypoint_lobby::LobbyOptions;
use rallypoint_lobby_proto::{Ban, BanList, BanSubject};
use rallypoint_web::WebOptions;
use serde_json::Value;
use std::{
    io::{BufReader, Write},
    net::UdpSocket,
    time::{Instant, SystemTime},
};

const PATH: &str = "/bloodmasterslist.php";

fn site() -> Site {
    Site::with_probing()
}

fn announce(site: &Site, port: u16) -> common::Response {
    site.get(&format!("{PATH}?action=update&port={port}&time=1700000000"))
}

fn list(site: &Site) -> Vec<String> {
    let response = site.get(PATH);
    assert_eq!((response.status, response.header("content-type")), (200, Some("text/plain; charset=us-ascii")));
    response.text().lines().map(str::to_owned).collect()
}

/// The captured reply of a real server to this query (document 002), with the echo of the captured query.
fn captured() -> Vec<u8> {
    let captures: Value =
        serde_json::from_str(include_str!("../../wire/tests/vectors/bloodmasters-captures.json")).unwrap();
    let hex = captures["cases"][0]["replies"][0].as_str().expect("a reply");
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

#[test]
fn l17_a_captured_reply_lists_the_server_in_the_bloodmasters_lobby() {
    let site = site();
    let reply = captured();
    let at = reply_with("127.0.0.1:0", move |_, query| {
        let mut reply = reply.clone();
        // The echo of the query, after length and command.
        reply[3..7].copy_from_slice(&query[3..7]);
        vec![reply]
    });
    assert_eq!(list(&site), [""; 0]);
    let response = announce(&site, at.port());
    assert_eq!((response.status, response.text().as_str()), (200, ""), "no bans");
    wait_until("the server is listed", || (list(&site) == [at.to_string()]).then_some(()));
    let list = site.wait_for("/api/v1/servers", |list| list["servers"][0]["verified"] == "verified");
    let server = &list["servers"][0];
    assert_eq!((&server["origin"], &server["game_name"]), (&"announced".into(), &"Bloodmasters".into()));
    assert_eq!(server["list"], rallypoint_wire::lobby::ListId::BLOODMASTERS.to_string());
    assert_ne!(server["name"], "");
}

#[test]
fn l17_a_server_that_does_not_reply_is_not_listed_and_the_outcome_says_so() {
    let site = site();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(announce(&site, closed.port()).status, 200);
    // A reply in another protocol does not count.
    let other_protocol = reply_with("127.0.0.1:0", |_, _| vec![b"\x81nonsense".to_vec()]);
    assert_eq!(announce(&site, other_protocol.port()).status, 200);
    assert_eq!(announce(&site, silent.local_addr().unwrap().port()).status, 200);
    assert_eq!(list(&site), [""; 0]);
    let outcomes = site.json("/api/v1/outcomes");
    let last = outcomes["outcomes"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["code"], &last["port"]), (&"unreachable".into(), &silent.local_addr().unwrap().port().into()));
}

#[test]
fn l17_w39_only_the_announcing_address_is_probed() {
    let site = site();
    let at = respond("127.0.0.1:0", &info("Blood", 1));
    let path = format!("{PATH}?action=update&port={}&ip=192.0.2.7&address=192.0.2.7", at.port());
    assert_eq!(request(site.addr(), "GET", &path, &[("x-forwarded-for", "192.0.2.7")]).status, 403, "through a proxy");
    // A server on the lobby's own machine knows it by its public name.
    let mut tcp = connect(site.addr());
    write!(tcp, "GET {path} HTTP/1.1\r\nhost: lobby.example.org\r\n\r\n").unwrap();
    assert_eq!(read_response(&mut BufReader::new(tcp), false).unwrap().status, 200);
    assert_eq!(site.get(&path).status, 200);
    wait_until("the server is listed", || (list(&site) == [at.to_string()]).then_some(()));
}

#[test]
fn l17_repeated_announcements_share_one_probe() {
    let site = site();
    let (query_tx, queries) = std::sync::mpsc::channel();
    // The server replies only after the announcements below.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let reply = captured();
    let at = reply_with("127.0.0.1:0", move |from, query| {
        query_tx.send(from).unwrap();
        let _ = released.recv();
        let mut reply = reply.clone();
        reply[3..7].copy_from_slice(&query[3..7]);
        vec![reply]
    });
    let mut tcp = connect(site.addr());
    write!(tcp, "GET {PATH}?action=update&port={} HTTP/1.1\r\nhost: localhost\r\n\r\n", at.port()).unwrap();
    let first = queries.recv().unwrap();
    drop(tcp);
    for _ in 0..8 {
        assert_eq!(announce(&site, at.port()).status, 200, "the probe is in progress");
    }
    drop(release);
    wait_until("the server is listed", || (list(&site) == [at.to_string()]).then_some(()));
    assert!(queries.try_iter().all(|from| from == first), "each probe has its own source port (W41)");
}

#[test]
fn l17_head_does_not_announce() {
    let site = site();
    let at = respond("127.0.0.1:0", &info("Blood", 1));
    let path = format!("{PATH}?action=update&port={}", at.port());
    assert_eq!(site.request("HEAD", &path, &[]).status, 405);
    assert_eq!(site.request("HEAD", PATH, &[]).status, 200);
    assert_eq!(list(&site), [""; 0]);
}

#[test]
fn l17_a_banned_server_is_not_probed_and_the_outcome_says_so() {
    let ban =
        Ban { subject: BanSubject::Network("127.0.0.0/8".parse().unwrap()), reason: "floods".into(), until: None };
    let mut options = LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() };
    options.registry.bans = BanList::new([ban], Instant::now(), SystemTime::now());
    let site = Site::with_lobby(options, WebOptions::default(), |_| {});
    let (query_tx, queries) = std::sync::mpsc::channel();
    let at = reply_with("127.0.0.1:0", move |_, _| {
        query_tx.send(()).unwrap();
        Vec::new()
    });
    assert_eq!(announce(&site, at.port()).status, 200);
    let outcome = &site.json("/api/v1/outcomes")["outcomes"][0];
    assert_eq!((&outcome["code"], &outcome["port"]), (&"banned".into(), &at.port().into()));
    assert!(outcome.to_string().contains("floods"), "{outcome}");
    assert!(queries.try_recv().is_err(), "the server was not probed");
}

#[test]
fn l17_invalid_parameters_are_named() {
    let site = site();
    for (query, parameter) in [
        ("action=update", "port"),
        ("action=update&port=0", "port"),
        ("action=update&port=70000", "port"),
        ("action=delete&port=1", "action"),
    ] {
        let response = site.get(&format!("{PATH}?{query}"));
        assert_eq!((response.status, &response.json()["parameter"]), (400, &parameter.into()), "{query}");
    }
    let without_probing = Site::start();
    assert_eq!(announce(&without_probing, 1).status, 503, "without probing, no server is listed");
    assert_eq!(list(&without_probing), [""; 0]);
}

#[test]
fn l17_announcements_per_network_are_rate_limited() {
    let mut options = WebOptions::default();
    options.settings.exempt.clear();
    options.settings.requests = None;
    let site = Site::with_lobby(LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() }, options, |_| {});
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    wait_until("the rate limit is reached", || (announce(&site, closed.port()).status == 429).then_some(()));
    assert_eq!(site.get(PATH).status, 200, "reading the list is not limited");
}
