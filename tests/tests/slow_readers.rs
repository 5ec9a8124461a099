//! A client that reads slowly gets the complete list as of its request (L14).

use rallypoint_harness::{
    GameServer, Lobby, ParsedServer, connect, connect_with_small_buffer, list_request, read_to_end,
};
use rallypoint_wire::lobby::ListId;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

/// With their size, more than the kernel buffers for a connection: the lobby has to wait for its readers.
const SERVERS: usize = 2_000;

fn crowd(word: &str) -> Vec<GameServer> {
    // The same servers every time.
    let id = |number: usize| (number as u128 + 1).to_be_bytes();
    let with_word = |(number, server): (_, GameServer)| server.with_id(id(number)).key("x-word", word.repeat(3_800));
    GameServer::many(SERVERS).enumerate().map(with_word).collect()
}

fn slow_reader(to: SocketAddr) -> TcpStream {
    let mut stream = connect_with_small_buffer(to).unwrap();
    stream.write_all(&list_request(ListId::GANG_GARRISON_2)).unwrap();
    stream
}

/// Reads one block, as Gang Garrison 2 does in each frame.
fn read_block(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut block = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut block).unwrap();
    [&length[..], &block].concat()
}

#[test]
fn l14_slow_readers_get_the_complete_list_of_their_request() {
    let lobby = Lobby::start();
    lobby.register_all(&crowd("a"));
    let mut readers: Vec<_> = (0..8).map(|_| slow_reader(lobby.v4())).collect();
    for reader in &mut readers {
        let mut count = [0; 4];
        reader.read_exact(&mut count).unwrap();
        assert_eq!(u32::from_be_bytes(count) as usize, SERVERS);
    }
    // While they read block by block, every server changes, and other clients are served.
    let mut replies = vec![(SERVERS as u32).to_be_bytes().to_vec(); readers.len()];
    let changes = crowd("b");
    for at in 0..SERVERS {
        if at % 32 == 0 {
            lobby.register_all(&changes[at..SERVERS.min(at + 32)]);
        }
        for (reader, reply) in readers.iter_mut().zip(&mut replies) {
            reply.extend(read_block(reader));
        }
    }
    for (reader, reply) in readers.iter_mut().zip(&replies) {
        assert_eq!(read_to_end(reader), [0; 0]);
        let servers = ParsedServer::parse_all(reply);
        assert_eq!(servers.len(), SERVERS);
        assert!(servers.iter().all(|server| server.key("x-word").unwrap()[0] == b'a'), "the list of the request");
    }
    assert!(lobby.servers().iter().all(|server| server.key("x-word").unwrap()[0] == b'b'), "the current list");
}

#[test]
fn l14_only_the_request_has_a_timeout() {
    let lobby = Lobby::with(&["list.request_timeout=200ms"]);
    lobby.register_all(&GameServer::many(200).collect::<Vec<_>>());
    let mut reader = slow_reader(lobby.v4());
    let mut reply = vec![0; 4];
    reader.read_exact(&mut reply).unwrap();
    for _ in 0..5 {
        // A connection without a request times out meanwhile, so that much time has passed.
        assert_eq!(read_to_end(&mut connect(lobby.v4())), [0; 0]);
        reply.extend(read_block(&mut reader));
    }
    reply.extend(read_to_end(&mut reader));
    assert_eq!(ParsedServer::parse_all(&reply).len(), 200);
}

#[test]
fn l14_clients_that_never_read_do_not_delay_others() {
    let lobby = Lobby::start();
    lobby.register_all(&crowd("a"));
    let stuck: Vec<_> = (0..20).map(|_| slow_reader(lobby.v4())).collect();
    assert_eq!(lobby.servers().len(), SERVERS);
    // Clients that disconnect in the middle are harmless.
    drop(stuck);
    lobby.register(&GameServer::named("zz"));
    lobby.settle();
    assert_eq!(lobby.servers().len(), SERVERS + 1);
}
