//! SIGTERM: the lobby accepts nothing new, completes open replies, saves, and exits with 0.

use rallypoint_harness::{
    GameServer, Lobby, ParsedServer, Process, Signal, connect, connect_with_small_buffer, eventually, list_request,
    rallypoint, read_to_end, stderr,
};
use rallypoint_wire::lobby::ListId;
use std::{
    io::{Read, Write},
    net::TcpStream,
};

#[test]
fn open_replies_are_completed() {
    // More than the kernel buffers for a connection: the lobby has to wait for this reader.
    let lobby = Lobby::start();
    let servers: Vec<_> = GameServer::many(3_000).map(|server| server.key("x-filler", [b'x'; 3_800])).collect();
    lobby.register_all(&servers);
    let mut reader = connect(lobby.v4());
    reader.write_all(&list_request(ListId::GANG_GARRISON_2)).unwrap();
    let mut reply = vec![0; 4];
    reader.read_exact(&mut reply).unwrap();

    lobby.process().signal(Signal::TERM);
    eventually("it accepts no more connections", || TcpStream::connect(lobby.v4()).is_err());
    reply.extend(read_to_end(&mut reader));
    assert_eq!(ParsedServer::parse_all(&reply).len(), 3_000);
    drop(reader);
    assert_eq!(lobby.process().wait().status.code(), Some(0));
}

#[test]
fn a_slow_reader_gets_the_complete_reply_after_the_exit() {
    let lobby = Lobby::start();
    let servers: Vec<_> = GameServer::many(100).map(|server| server.key("x-filler", [b'x'; 3_800])).collect();
    lobby.register_all(&servers);
    let mut reader = connect_with_small_buffer(lobby.v4()).unwrap();
    reader.write_all(&list_request(ListId::GANG_GARRISON_2)).unwrap();
    let mut reply = vec![0; 4];
    reader.read_exact(&mut reply).unwrap();
    assert_eq!(lobby.stop().status.code(), Some(0));
    // The complete reply is in kernel buffers, and is still delivered.
    reply.extend(read_to_end(&mut reader));
    assert_eq!(ParsedServer::parse_all(&reply).len(), 100);
}

#[test]
fn connections_without_a_request_do_not_delay_the_exit() {
    let lobby = Lobby::with(&["list.request_timeout=10m"]);
    let mut silent: Vec<_> = (0..10).map(|_| connect(lobby.v4())).collect();
    silent.iter_mut().take(5).for_each(|client| client.write_all(&[0x29]).unwrap());
    assert_eq!(lobby.names(), [""; 0]);
    assert_eq!(lobby.stop().status.code(), Some(0));
}

#[test]
fn its_ports_are_free_immediately() {
    let lobby = Lobby::start();
    let addr = lobby.v4().to_string();
    let _clients: Vec<_> = (0..10).map(|_| connect(lobby.v4())).collect();
    assert_eq!(lobby.names(), [""; 0]);
    lobby.stop();
    let home = tempfile::tempdir().unwrap();
    let next =
        Process::spawn(rallypoint(home.path()).args(["serve", "--lobby", &addr, "--legacy", "off", "--http", "off"]));
    eventually("the next lobby serves", || next.stdout().contains(&addr));
}

#[test]
fn a_failed_save_is_an_error() {
    let lobby = Lobby::start();
    lobby.register(&GameServer::named("Bacon Town"));
    lobby.wait_until_listed(&["Bacon Town"]);
    // A file of the same name prevents the directory from being created again.
    let lock = lobby.data("lock");
    let data = lock.parent().unwrap();
    // The lobby may be creating a file in it.
    eventually("the directory is removed", || {
        std::fs::remove_dir_all(data).is_ok() && std::fs::write(data, "").is_ok()
    });
    let output = lobby.stop();
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("ERROR") && stderr(&output).contains("could not be saved"), "{}", stderr(&output));
}
