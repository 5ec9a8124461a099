//! Idle connections do not keep players from the list.

use rallypoint_harness::{
    GameServer, Lobby, ParsedServer, connect_from, connect_with_small_buffer, list_request, read_to_end, skip,
};
use rallypoint_wire::lobby::ListId;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
};

/// Opens connections that send nothing, 50 from each address.
fn idle(lobby: &Lobby, count: u32) -> io::Result<Vec<TcpStream>> {
    let from = |number: u32| Ipv4Addr::from_bits(Ipv4Addr::new(127, 77, 0, 1).to_bits() + number / 50);
    (0..count).map(|number| connect_from(from(number).into(), lobby.v4())).collect()
}

/// Raises this process's limit of open files to its maximum, which the lobby inherits; returns that maximum.
fn raise_open_files() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the soft limit can be raised to the hard one");
    limit.maximum.unwrap_or(u64::MAX)
}

#[test]
fn ten_thousand_idle_connections_do_not_block_lists() {
    let files = raise_open_files();
    if files < 10_600 {
        return skip(&format!("the hard limit of open files is {files}, and this test needs 10600"));
    }
    let lobby = Lobby::with(&["list.request_timeout=10m", "list.loopback_exempt=false"]);
    lobby.register(&GameServer::named("Bacon Town"));
    let mut idle = idle(&lobby, 10_000).unwrap();
    lobby.wait_until_listed(&["Bacon Town"]);
    // They are all still open: late requests are answered.
    for client in idle.iter_mut().step_by(500) {
        client.write_all(&list_request(ListId::GANG_GARRISON_2)).unwrap();
        assert_eq!(ParsedServer::parse_all(&read_to_end(client)).len(), 1);
    }
}

#[test]
fn idle_connections_are_closed_when_the_limit_is_reached() {
    let lobby = Lobby::with(&["list.request_timeout=10m", "list.connections=100"]);
    lobby.register(&GameServer::named("Bacon Town"));
    let _idle = idle(&lobby, 400).unwrap();
    lobby.wait_until_listed(&["Bacon Town"]);
}

#[test]
fn l14_clients_that_read_are_not_closed_in_favour_of_idle_ones() {
    let lobby = Lobby::with(&["list.request_timeout=10m", "list.connections=100"]);
    let other = ListId::from_bytes([9; 16]);
    let fill = |server: GameServer| server.key("x-filler", [b'x'; 3_800]);
    // A list that fits into kernel buffers, and one for which the lobby has to wait for its reader.
    lobby.register_all(&GameServer::many(100).map(|server| fill(server).in_lobby(other)).collect::<Vec<_>>());
    lobby.register_all(&GameServer::many(2_000).map(|server| fill(server).port(9_000)).collect::<Vec<_>>());
    let mut readers = [(other, 100), (ListId::GANG_GARRISON_2, 2_000)].map(|(id, count)| {
        let mut reader = connect_with_small_buffer(lobby.v4()).unwrap();
        reader.write_all(&list_request(id)).unwrap();
        let mut reply = vec![0; 100];
        reader.read_exact(&mut reply).unwrap();
        (reader, reply, count)
    });
    let _idle = idle(&lobby, 400).unwrap();
    assert_eq!(lobby.servers_in(other).len(), 100);
    for (reader, reply, count) in &mut readers {
        reply.extend(read_to_end(reader));
        assert_eq!(ParsedServer::parse_all(reply).len(), *count);
    }
}

#[test]
fn one_address_cannot_use_all_connections() {
    let lobby = Lobby::with(&["list.request_timeout=10m", "list.loopback_exempt=false", "list.per_address=50"]);
    lobby.register(&GameServer::named("Bacon Town"));
    let crowd: Vec<_> = idle(&lobby, 50).unwrap();
    // The 51st connection of that address gets no reply; other addresses do.
    let from = crowd[0].local_addr().unwrap().ip();
    let mut one_too_many = connect_from(from, lobby.v4()).unwrap();
    let mut reply = Vec::new();
    let _ = one_too_many.write_all(&list_request(ListId::GANG_GARRISON_2));
    let _ = one_too_many.read_to_end(&mut reply);
    assert_eq!(reply, [0; 0]);
    lobby.wait_until_listed(&["Bacon Town"]);
}
