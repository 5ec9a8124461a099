//! Slow readers get the complete list as of their request, and the memory that they hold is limited.

use crate::common;

use common::{LOBBY, Lobby, connect, eventually, options, read_all, request};
use rallypoint_lobby::LobbyOptions;
use rallypoint_wire::lobby::{ListBlock, Transport, blocks};
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::Duration,
};

/// Number of servers. Their list is larger than the system's buffers for a connection, so the reply waits for the reader.
const SERVERS: u16 = 4_000;

fn lobby(mut options: LobbyOptions) -> Lobby {
    options.registry.caps.per_address = 10_000;
    let lobby = Lobby::start(options);
    register(&lobby, 'a');
    lobby
}

fn register(lobby: &Lobby, round: char) {
    let filler = vec![round as u8; 3_900];
    let server = |number: u16| {
        let name = format!("server {number:04}");
        common::registration(&name, 1_000 + number, Transport::Udp, &[("filler", &filler)])
    };
    lobby.send_all((0..SERVERS).map(server));
    eventually("all servers are published", || {
        let list = lobby.lists().list(&LOBBY);
        let is_new = |listing: &std::sync::Arc<rallypoint_lobby_proto::ListedServer>| {
            listing.block().table.get(b"filler").is_some_and(|filler| filler[0] == round as u8)
        };
        list.count() == usize::from(SERVERS) && list.servers().all(is_new)
    });
}

/// Requests the list, and reads only its number of servers.
fn begin(lobby: &Lobby) -> TcpStream {
    let mut client = connect(lobby.addr());
    client.write_all(&request(LOBBY)).unwrap();
    let mut count = [0; 4];
    client.read_exact(&mut count).unwrap();
    assert_eq!(u32::from_be_bytes(count), u32::from(SERVERS));
    client
}

#[test]
fn l14_a_slow_reader_gets_the_list_as_of_its_request() {
    let lobby = lobby(options());
    // Enough readers that the last of them are served from a file.
    let mut slow: Vec<TcpStream> = (0..12).map(|_| begin(&lobby)).collect();
    register(&lobby, 'b');
    for reader in &mut slow {
        let reply = [&u32::from(SERVERS).to_be_bytes()[..], &read_all(reader)].concat();
        let is_old = |block: ListBlock<'_>| block.table.get(b"filler").is_some_and(|filler| filler[0] == b'a');
        assert_eq!(blocks(&reply).filter(|block| is_old(block.unwrap())).count(), usize::from(SERVERS));
    }
    assert_eq!(lobby.list_stats().evicted, 0);
    lobby.shutdown();
}

#[test]
fn l14_memory_for_slow_readers_is_bounded() {
    let mut options = options();
    // Room for one list, but not for two.
    options.list.held_bytes = 24 << 20;
    let lobby = lobby(options);
    let mut first: Vec<TcpStream> = (0..4).map(|_| begin(&lobby)).collect();
    register(&lobby, 'b');
    assert_eq!(lobby.list_stats().evicted, 0, "all readers share one list");
    let mut second = begin(&lobby);
    eventually("the slowest readers are evicted", || lobby.list_stats().evicted == 4);
    assert!(read_all(&mut second).len() > 15_000_000);
    first.iter_mut().for_each(assert_reset);
    lobby.shutdown();
}

#[test]
fn l14_a_reader_that_times_out_is_reset_and_frees_the_systems_memory() {
    let mut options = options();
    options.list.reply_timeout = Duration::from_secs(1);
    let lobby = lobby(options);
    let mut reader = begin(&lobby);
    eventually("the reader times out", || lobby.list_stats().reply_timeouts == 1);
    assert_reset(&mut reader);
    lobby.shutdown();
}

/// Asserts that the connection was reset. With an orderly close, the system would continue to deliver what it has buffered.
fn assert_reset(reader: &mut TcpStream) {
    let end = reader.read_to_end(&mut Vec::new());
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}
