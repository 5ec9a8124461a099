//! Players get the list while other clients request it, never read it, and so occupy all connections (L14).

use rallypoint_harness::{GameServer, Lobby, connect_with_minimal_buffers, list_request, skip};
use rallypoint_wire::lobby::ListId;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::{
    io::Write,
    net::{Ipv4Addr, TcpStream},
};

/// With their size, more than the kernel buffers for a client that does not read: the lobby has to wait for it.
const SERVERS: usize = 50;

fn lobby(connections: &str) -> Lobby {
    let lobby = Lobby::with(&[connections, "list.loopback_exempt=false"]);
    let servers = GameServer::many(SERVERS).map(|server| server.key("x-filler", [b'x'; 3_800]));
    lobby.register_all(&servers.collect::<Vec<_>>());
    assert_eq!(lobby.servers().len(), SERVERS);
    lobby
}

/// Sends a request and does not read. It may be disconnected while it sends.
fn request_without_reading(lobby: &Lobby, from: Ipv4Addr) -> TcpStream {
    let mut client = connect_with_minimal_buffers(from.into(), lobby.v4()).unwrap();
    let _ = client.write_all(&list_request(ListId::GANG_GARRISON_2));
    client
}

#[test]
fn l14_clients_of_one_network_that_never_read_do_not_block_lists() {
    let lobby = lobby("list.connections=1000");
    let holding: Vec<_> = (0..2_000u32)
        .map(|number| request_without_reading(&lobby, Ipv4Addr::new(127, 77, 0, (number / 50) as u8)))
        .collect();
    for _ in 0..50 {
        assert_eq!(lobby.servers().len(), SERVERS);
    }
    drop(holding);
}

#[test]
fn l14_ten_thousand_clients_that_never_read_do_not_block_lists() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the soft limit can be raised to the hard one");
    let files = limit.maximum.unwrap_or(u64::MAX);
    if files < 10_600 {
        return skip(&format!("the hard limit of open files is {files}, and this test needs 10600"));
    }
    // Each from its own network.
    let lobby = lobby("list.connections=4000");
    let from = |number: u32| Ipv4Addr::from_bits(Ipv4Addr::new(127, 64, 0, 1).to_bits() + 256 * number);
    let mut holding = Vec::new();
    for number in 0..10_000 {
        holding.push(request_without_reading(&lobby, from(number)));
        if number % 500 == 0 {
            assert_eq!(lobby.servers().len(), SERVERS);
        }
    }
    for _ in 0..50 {
        assert_eq!(lobby.servers().len(), SERVERS);
    }
    drop(holding);
}
