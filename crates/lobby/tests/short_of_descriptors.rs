//! When the system has no more descriptors, clients wait; when it has again, they are served.

mod common;

use common::{LOBBY, Lobby, connect, options, read_all, request, server};
use std::{fs::File, io::Write};

#[test]
fn list_clients_wait_until_there_are_descriptors_again() {
    let lobby = Lobby::start(options());
    lobby.send(&server("one"));
    lobby.until_listed(&["one"]);
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    files.pop();
    let mut client = connect(lobby.addr());
    client.write_all(&request(LOBBY)).unwrap();
    assert!(File::open("/dev/null").is_err(), "there are none for the lobby");
    drop(files);
    assert_eq!(common::names(&read_all(&mut client)), ["one"]);
    lobby.shutdown();
}
