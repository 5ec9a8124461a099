//! A server that cannot be checked because the process has no file descriptors left is not unreachable: it is checked again
//! with its next registration.

use crate::common;

use common::{Lobby, eventually, options, registration};
use rallypoint_wire::lobby::Transport;
use std::{
    fs::File,
    net::{TcpListener, UdpSocket},
};

#[test]
fn l12_a_check_that_cannot_be_made_leaves_the_server_undecided() {
    let lobby = Lobby::start(options());
    let server = TcpListener::bind(common::any_v4()).unwrap();
    let datagram = registration("one", server.local_addr().unwrap().port(), Transport::Tcp, &[]);
    let client = UdpSocket::bind(common::any_v4()).unwrap();
    let register = || client.send_to(&datagram, lobby.addr()).unwrap();
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    register();
    eventually("the check is undecided", || lobby.stats().checks.undecided == 1);
    drop(files);
    register();
    lobby.wait_until_listed(&["one"]);
    assert_eq!(lobby.stats().checks.unreachable, 0);
    lobby.shutdown();
}
