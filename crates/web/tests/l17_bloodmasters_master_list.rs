//! The master list of Bloodmasters: servers announce themselves there, and are asked before anybody is told.

mod common;

use common::{
    Site, ask,
    responder::{answering, info, respond},
    until,
};
use rallypoint_lobby::LobbyOptions;
use rallypoint_lobby_proto::{Ban, BanList, BanSubject};
use rallypoint_web::WebOptions;
use serde_json::Value;
use std::{
    io::Write,
    net::UdpSocket,
    time::{Instant, SystemTime},
};

const PATH: &str = "/bloodmasterslist.php";

fn site() -> Site {
    Site::probing()
}

fn announce(site: &Site, port: u16) -> common::Answer {
    site.get(&format!("{PATH}?action=update&port={port}&time=1700000000"))
}

fn list(site: &Site) -> Vec<String> {
    let answer = site.get(PATH);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; charset=us-ascii")));
    answer.text().lines().map(str::to_owned).collect()
}

/// What a real server answered to this very question (document 002), with the echo of the one who asks.
fn captured() -> Vec<u8> {
    let captures: Value =
        serde_json::from_str(include_str!("../../wire/tests/vectors/bloodmasters-captures.json")).unwrap();
    let hex = captures["cases"][0]["replies"][0].as_str().expect("a reply");
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

#[test]
fn l17_a_real_answer_lists_a_server_in_a_lobby_of_its_own() {
    let site = site();
    let reply = captured();
    let at = answering("127.0.0.1:0", move |_, query| {
        let mut reply = reply.clone();
        // The echo of the question, behind length and command.
        reply[3..7].copy_from_slice(&query[3..7]);
        vec![reply]
    });
    assert_eq!(list(&site), [""; 0]);
    let answer = announce(&site, at.port());
    assert_eq!((answer.status, answer.text().as_str()), (200, ""), "no bans");
    until("it is listed", || (list(&site) == [at.to_string()]).then_some(()));
    let list = site.wait_for("/api/v1/servers", |list| list["servers"][0]["verified"] == "verified");
    let server = &list["servers"][0];
    assert_eq!((&server["origin"], &server["game_name"]), (&"announced".into(), &"Bloodmasters".into()));
    assert_eq!(server["lobby"], rallypoint_wire::lobby::LobbyId::BLOODMASTERS.to_string());
    assert_ne!(server["name"], "");
}

#[test]
fn l17_who_does_not_answer_is_not_listed_and_learns_why() {
    let site = site();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(announce(&site, closed.port()).status, 200);
    // It speaks another protocol: that is no answer.
    let session = answering("127.0.0.1:0", |_, _| vec![b"\x81nonsense".to_vec()]);
    assert_eq!(announce(&site, session.port()).status, 200);
    assert_eq!(announce(&site, silent.local_addr().unwrap().port()).status, 200);
    assert_eq!(list(&site), [""; 0]);
    let outcomes = site.json("/api/v1/outcomes");
    let last = outcomes["outcomes"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["code"], &last["port"]), (&"unreachable".into(), &silent.local_addr().unwrap().port().into()));
}

#[test]
fn l17_w39_nobody_else_is_asked_than_the_one_who_announces_itself() {
    let site = site();
    let at = respond("127.0.0.1:0", &info("Blood", 1));
    let path = format!("{PATH}?action=update&port={}&ip=192.0.2.7&address=192.0.2.7", at.port());
    assert_eq!(ask(site.addr(), "GET", &path, &[("x-forwarded-for", "192.0.2.7")]).status, 403, "through a proxy");
    assert_eq!(site.get(&path).status, 200);
    until("it is listed", || (list(&site) == [at.to_string()]).then_some(()));
}

#[test]
fn l17_who_goes_away_and_comes_back_at_once_is_asked_once() {
    let site = site();
    let (asked, questions) = std::sync::mpsc::channel();
    // It answers when it is told to.
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let reply = captured();
    let at = answering("127.0.0.1:0", move |from, query| {
        asked.send(from).unwrap();
        let _ = wait.recv();
        let mut reply = reply.clone();
        reply[3..7].copy_from_slice(&query[3..7]);
        vec![reply]
    });
    let mut tcp = common::connect(site.addr());
    write!(tcp, "GET {PATH}?action=update&port={} HTTP/1.1\r\nhost: localhost\r\n\r\n", at.port()).unwrap();
    let first = questions.recv().unwrap();
    drop(tcp);
    for _ in 0..8 {
        assert_eq!(announce(&site, at.port()).status, 200, "it is being looked at");
    }
    drop(go_on);
    until("it is listed", || (list(&site) == [at.to_string()]).then_some(()));
    assert!(questions.try_iter().all(|from| from == first), "every question has a port of its own (W41)");
}

#[test]
fn l17_only_get_announces() {
    let site = site();
    let at = respond("127.0.0.1:0", &info("Blood", 1));
    let path = format!("{PATH}?action=update&port={}", at.port());
    assert_eq!(site.ask("HEAD", &path, &[]).status, 405);
    assert_eq!(site.ask("HEAD", PATH, &[]).status, 200);
    assert_eq!(list(&site), [""; 0]);
}

#[test]
fn l17_who_is_banned_is_not_asked_and_learns_why() {
    let ban =
        Ban { subject: BanSubject::Network("127.0.0.0/8".parse().unwrap()), reason: "floods".into(), until: None };
    let mut options = LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() };
    options.registry.bans = BanList::new([ban], Instant::now(), SystemTime::now());
    let site = Site::at(options, WebOptions::default(), |_| {});
    let (asked, questions) = std::sync::mpsc::channel();
    let at = answering("127.0.0.1:0", move |_, _| {
        asked.send(()).unwrap();
        Vec::new()
    });
    assert_eq!(announce(&site, at.port()).status, 200);
    let outcome = &site.json("/api/v1/outcomes")["outcomes"][0];
    assert_eq!((&outcome["code"], &outcome["port"]), (&"banned".into(), &at.port().into()));
    assert!(outcome.to_string().contains("floods"), "{outcome}");
    assert!(questions.try_recv().is_err(), "nobody has asked it");
}

#[test]
fn l17_mistakes_are_named() {
    let site = site();
    for (query, parameter) in [
        ("action=update", "port"),
        ("action=update&port=0", "port"),
        ("action=update&port=70000", "port"),
        ("action=delete&port=1", "action"),
    ] {
        let answer = site.get(&format!("{PATH}?{query}"));
        assert_eq!((answer.status, &answer.json()["parameter"]), (400, &parameter.into()), "{query}");
    }
    let nobody = Site::start();
    assert_eq!(announce(&nobody, 1).status, 503, "nobody asks, so nobody is listed");
    assert_eq!(list(&nobody), [""; 0]);
}

#[test]
fn l17_a_network_has_a_budget() {
    let mut options = WebOptions::default();
    options.settings.exempt.clear();
    options.settings.requests = None;
    let site = Site::at(LobbyOptions { probe_sockets: 512, ..LobbyOptions::default() }, options, |_| {});
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    until("the budget is used up", || (announce(&site, closed.port()).status == 429).then_some(()));
    assert_eq!(site.get(PATH).status, 200, "the list is for everybody");
}
