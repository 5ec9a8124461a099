//! A list that many ask for is sent from a copy: every client gets the same bytes, and a changed list has no old copy.

mod common;

use common::{LOBBY, Lobby, connect, eventually, options, request};
use rallypoint_wire::lobby::Transport;
use std::{fs, io::Write};

/// More than it takes for a copy.
const CLIENTS: usize = 20;

fn register(lobby: &Lobby, map: &str) {
    let server = |number: u16| {
        let name = format!("server {number:03}");
        common::registration(
            &name,
            1_000 + number,
            Transport::Udp,
            &[("map", map.as_bytes()), ("filler", &[b'x'; 200])],
        )
    };
    lobby.send_all((0..400).map(server));
    eventually("all are published", || {
        let list = lobby.lists().lobby(&LOBBY);
        list.count() == 400 && list.servers().all(|listing| listing.block().table.get(b"map") == Some(map.as_bytes()))
    });
}

/// How many files there are that exist only in memory.
fn copies() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("/memfd:list")).count()
}

#[test]
fn l14_every_client_gets_the_same_list_however_many_there_are() {
    let mut options = options();
    options.registry.caps.per_address = 1_000;
    let lobby = Lobby::start(options);
    for map in ["ctf_truefort", "arena_lumberyard", "koth_valley"] {
        register(&lobby, map);
        let list: Vec<u8> = lobby.lists().lobby(&LOBBY).pieces().flatten().copied().collect();
        assert!(list.len() > 100_000);
        for client in 0..CLIENTS {
            assert!(lobby.list() == list, "client {client} of {map}");
        }
        // Those who go away before they have it do no harm to the others.
        for _ in 0..CLIENTS {
            connect(lobby.addr()).write_all(&request(LOBBY)).unwrap();
        }
        assert!(lobby.list() == list);
        eventually("only the last version has a copy", || copies() == 1);
    }
    lobby.shutdown();
}
