//! The front page of 10,000 servers is small, and so is its live traffic.

use crate::common;

use common::{EventStream, LOBBY, Site, connect, read_response, wait_until};
use rallypoint_history::{History, HistoryOptions, Observation, ObservedServer, ServerSource};
use rallypoint_lobby::unix_now;
use rallypoint_lobby_proto::PublicId;
use rallypoint_web::WebOptions;
use rallypoint_wire::lobby::{Occupancy, Registration, ServerId, TableBuf, Transport, Unregister};
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, UdpSocket},
    sync::Arc,
};

const SERVERS: u16 = 10_000;

/// Maximum size of the front page in bytes, as it is sent to a browser.
const MAX_PAGE: usize = 100_000;

/// Number of changes: ten seconds of 100 changes per second.
const CHANGES: u16 = 1_000;

/// Maximum number of bytes that a page receives for these changes: 20 kB per second.
const MAX_LIVE: usize = 10 * 20_000;

fn server_id(number: u16) -> ServerId {
    let mut id = [7; 16];
    id[..2].copy_from_slice(&number.to_be_bytes());
    ServerId::from_bytes(id)
}

/// Registers a server from an address of its own.
fn register(site: &Site, number: u16, players: u16) {
    let mut table = TableBuf::new();
    let name = format!("Server number {number} with {} and other words", number.wrapping_mul(31_337));
    let map = format!("ctf_map_{}", number % 50);
    for (key, value) in
        [("name", &*name), ("map", &*map), ("game", "Gang Garrison 2"), ("game_short", "gg2"), ("game_ver", "2.9")]
    {
        table.push(key.as_bytes(), value.as_bytes()).unwrap();
    }
    let occupancy = Occupancy { players, bots: 0, slots: 24, password: false };
    let port = 8_190.try_into().unwrap();
    let mut datagram = Vec::new();
    Registration::new(server_id(number), LOBBY, Transport::Udp, port, occupancy, table.as_table())
        .unwrap()
        .emit(&mut datagram);
    let [high, low] = number.to_be_bytes();
    let socket = UdpSocket::bind(SocketAddr::from(([127, 9, high, low], 0))).unwrap();
    socket.send_to(&datagram, site.lobby_addr()).unwrap();
}

/// Servers with a number of players per hour that has no pattern, so that their sparklines do not compress well.
#[derive(Debug)]
struct Past {
    ids: Arc<[PublicId]>,
    time: i64,
}

impl ServerSource for Past {
    fn for_each(&self, show: &mut dyn FnMut(ObservedServer<'_>)) {
        for (number, id) in (0_u64..).zip(&*self.ids) {
            let players = (number * 31 + self.time as u64 / 3_600).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59;
            let players = (players as u16).min(24);
            show(ObservedServer { id: *id, list: LOBBY, players, bots: 0, slots: 24, name: "Server", map: "map" });
        }
    }
}

/// Records the last day.
fn record_day(history: &History, ids: &Arc<[PublicId]>) {
    let now = unix_now() as i64;
    for minute in (1..=25 * 60).rev() {
        let time = now - 60 * minute;
        history.record(Observation {
            time,
            servers: Arc::new(Past { ids: Arc::clone(ids), time }),
            changes: Vec::new(),
        });
        // The queue of the history is short.
        if minute % 4 == 0 {
            history.flush();
        }
    }
    history.flush();
}

#[test]
fn the_front_page_and_its_live_traffic_are_small() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::start(HistoryOptions::new(dir.path().join("history.db"))).unwrap();
    let reader = history.reader();
    let site = Site::with_sources(WebOptions::default(), |sources| sources.history = Some(reader));
    for number in 0..SERVERS {
        register(&site, number, number % 20);
        // The socket of the lobby has room for some hundreds.
        if number % 200 == 199 {
            site.wait_for("/api/v1/servers?limit=1", |list| list["total"] == number + 1);
        }
    }
    let shown = site.json("/api/v1/servers?sort=-players&limit=200");
    let ids: Arc<[PublicId]> =
        shown["servers"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().parse().unwrap()).collect();
    record_day(&history, &ids);
    let sparklines = || site.get("/").text().matches("class=\"spark\"").count();
    wait_until("every row has a sparkline", || (sparklines() == 200).then_some(()));
    let page = site.request("GET", "/", &[("accept-encoding", "gzip")]);
    assert!(page.body.len() < MAX_PAGE, "the front page has {} bytes", page.body.len());
    let html = site.get("/").text();
    let ids: Vec<_> = html.split("<tr role=\"row\" data-id=\"").skip(1).map(|row| &row[..8]).collect();
    assert_eq!(ids.len(), 200);
    let cursor = html.split("data-cursor=\"").nth(1).unwrap().split('"').next().unwrap();
    let mut page_stream = connect(site.addr());
    write!(page_stream, "GET /api/v1/events?ids={}&after={cursor} HTTP/1.1\r\nhost: localhost\r\n\r\n", ids.join(","))
        .unwrap();
    let mut lines = BufReader::new(page_stream);
    assert_eq!(read_response(&mut lines, false).unwrap().status, 200);
    // The stream of all events shows when the last change has been published.
    let mut all = EventStream::new(site.addr(), &format!("/api/v1/events?after={cursor}"), &[]);
    for number in 0..CHANGES {
        // Every row of the page is among those that change.
        register(&site, number * 10 + 9, 20);
        if number % 200 == 199 {
            for _ in 0..200 {
                assert_eq!(all.next().unwrap().name, "changed");
            }
        }
    }
    // An event that the page receives after all of them.
    let id = html.split("<tr role=\"row\" data-id=\"").nth(1).unwrap().split('"').next().unwrap();
    let name = site.json(&format!("/api/v1/servers/{id}"))["name"].clone();
    let number: u16 = name.as_str().unwrap().split(' ').nth(2).unwrap().parse().unwrap();
    let mut datagram = Vec::new();
    Unregister { server_id: server_id(number) }.emit(&mut datagram);
    site.send(&datagram);
    let mut received = 0;
    let mut changed = 0;
    loop {
        let mut line = String::new();
        received += lines.read_line(&mut line).unwrap();
        changed += usize::from(line.starts_with("event: changed"));
        if line.starts_with("event: unlisted") {
            break;
        }
    }
    assert!(received < MAX_LIVE, "{received} bytes for {CHANGES} changes, {changed} of them on the page");
}
