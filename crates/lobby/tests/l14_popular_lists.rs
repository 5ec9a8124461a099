//! A list that many clients request is sent from a file, where the system has files in memory: all clients get the same bytes, and
//! files of old versions are released.

use crate::common;

use common::{LOBBY, Lobby, connect, eventually, options, request};
use rallypoint_wire::lobby::Transport;
use std::{fs, io::Write};

/// Their list is large enough for a file.
const SERVERS: u16 = 500;

/// Number of clients: more than it takes until a list gets a file.
const CLIENTS: usize = 20;

fn register(lobby: &Lobby, map: &str) {
    let server = |number: u16| {
        let name = format!("server {number:03}");
        common::registration(
            &name,
            1_000 + number,
            Transport::Udp,
            &[("map", map.as_bytes()), ("filler", &[b'x'; 1_000])],
        )
    };
    lobby.send_all((0..SERVERS).map(server));
    eventually("all servers are published", || {
        let list = lobby.lists().list(&LOBBY);
        list.count() == usize::from(SERVERS)
            && list.servers().all(|listing| listing.block().table.get(b"map") == Some(map.as_bytes()))
    });
}

/// Number of memory-backed files of lists that this process has open.
fn reply_files() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("/memfd:list")).count()
}

#[test]
fn l14_all_clients_of_a_popular_list_get_the_same_bytes() {
    let mut options = options();
    options.registry.caps.per_address = 1_000;
    let lobby = Lobby::start(options);
    for map in ["ctf_truefort", "arena_lumberyard", "koth_valley"] {
        register(&lobby, map);
        let list: Vec<u8> = lobby.lists().list(&LOBBY).pieces().flatten().copied().collect();
        assert!(list.len() > 512 << 10, "a list of this size gets a file");
        for client in 0..CLIENTS {
            assert!(lobby.list() == list, "client {client} of {map}");
        }
        // Clients that disconnect before they have read the reply do not affect others.
        for _ in 0..CLIENTS {
            connect(lobby.addr()).write_all(&request(LOBBY)).unwrap();
        }
        assert!(lobby.list() == list);
        if cfg!(all(target_os = "linux", not(rallypoint_portable))) {
            eventually("only the latest version has a file", || reply_files() == 1);
        }
    }
    lobby.shutdown();
}
