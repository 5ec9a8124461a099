//! Servers registered over UDP are served over HTTP: in the API, as live events, and after a restart.

use rallypoint_harness::{GameServer, Lobby, connect, eventually, send_request};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
};

fn get(http: SocketAddr, path: &str) -> Value {
    try_get(http, path).unwrap_or_else(|head| panic!("{head}"))
}

/// The body of a response with status 200, or the head of another one.
fn try_get(http: SocketAddr, path: &str) -> Result<Value, String> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let response = String::from_utf8(send_request(http, request.as_bytes())).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    if !head.starts_with("HTTP/1.1 200") {
        return Err(head.to_owned());
    }
    Ok(serde_json::from_str(body).unwrap())
}

fn wait_until_served(lobby: &Lobby, names: &[&str]) -> Value {
    let mut list = Value::Null;
    eventually("the API has the servers", || {
        list = get(lobby.http(), "/api/v1/servers?sort=name");
        let servers = list["servers"].as_array().unwrap();
        servers.iter().map(|server| server["name"].as_str().unwrap()).eq(names.iter().copied())
    });
    list
}

#[test]
fn registered_servers_are_in_the_api() {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("Bacon Town").from_ip("127.1.2.3").port(8190));
    lobby.register(&GameServer::named("Dusk").from_ip("127.1.2.4"));
    let list = wait_until_served(&lobby, &["Bacon Town", "Dusk"]);
    assert_eq!(list["servers"][0]["connect"], "127.1.2.3:8190");
    let id = list["servers"][0]["id"].as_str().unwrap();
    assert_eq!(get(lobby.http(), &format!("/api/v1/servers/{id}"))["list_name"], "Gang Garrison 2");
    let outcomes = get(lobby.http(), "/api/v1/outcomes?address=127.1.2.3");
    assert_eq!(outcomes["outcomes"][0]["code"], "listed");
    eventually("the history has data", || {
        try_get(lobby.http(), "/api/v1/history").is_ok_and(|history| history["kind"] == "total")
    });
}

#[test]
fn changes_are_sent_as_live_events() {
    let lobby = Lobby::start();
    let mut stream = connect(lobby.http());
    stream.write_all(b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "event: hello"));
    lobby.register(&GameServer::named("Bacon Town"));
    assert!(lines.any(|line| line == "event: listed"));
    assert!(lines.any(|line| line.starts_with("data: ") && line.contains("\"name\":\"Bacon Town\"")));
}

#[test]
fn a_restart_keeps_servers_and_their_ids() {
    let mut lobby = Lobby::start();
    lobby.register(&GameServer::named("Bacon Town"));
    let before = wait_until_served(&lobby, &["Bacon Town"])["servers"][0]["id"].clone();
    lobby.stop();
    lobby.restart();
    assert_eq!(wait_until_served(&lobby, &["Bacon Town"])["servers"][0]["id"], before);
}
