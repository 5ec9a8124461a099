//! List clients wait while the process has no file descriptors left, and are served afterwards.

use crate::common;

use common::{LOBBY, Lobby, connect, options, read_all, request, server};
use std::{fs::File, io::Write};

#[test]
fn l14_list_clients_wait_until_descriptors_are_available() {
    let lobby = Lobby::start(options());
    lobby.send(&server("one"));
    lobby.wait_until_listed(&["one"]);
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    files.pop();
    let mut client = connect(lobby.addr());
    client.write_all(&request(LOBBY)).unwrap();
    assert!(File::open("/dev/null").is_err(), "no descriptor is left for the lobby");
    drop(files);
    assert_eq!(common::names(&read_all(&mut client)), ["one"]);
    lobby.shutdown();
}
