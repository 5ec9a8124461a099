//! A server that listens at all addresses of a machine with several answers from the one that was asked.

mod session_support;

use rallypoint_net::{PolledClient, PolledServer, ServerEvent, ServerOptions, SessionEvent};
use rallypoint_query::ServerInfo;
use session_support::*;
use std::net::{SocketAddr, UdpSocket};

/// A server at all addresses, and some of them.
fn everywhere() -> (PolledServer, Vec<SocketAddr>) {
    let any = "0.0.0.0:0".parse().unwrap();
    let server = PolledServer::bind(ServerOptions { listen: vec![any], ..server_options() }).unwrap();
    let port = server.local_addrs().next().unwrap().port();
    (server, ["127.0.0.1", "127.0.0.2", "127.3.2.1"].map(|ip| SocketAddr::new(ip.parse().unwrap(), port)).to_vec())
}

#[test]
fn players_who_came_by_different_addresses() {
    let (mut server, asked) = everywhere();
    for encryption in all_encryptions() {
        for &addr in &asked {
            let mut client = PolledClient::connect(addr, client_options(encryption.clone())).unwrap();
            client.send(b"early").unwrap_err();
            let (mut message, mut is_answered) = (Vec::new(), false);
            until("the client hears its own words", || {
                server.poll();
                client.poll();
                while let Some(event) = server.next(&mut message) {
                    if let ServerEvent::Message(player) = event {
                        // Several at once, so that they leave in one piece where the system can.
                        (0..8).for_each(|_| server.send(player, &message).unwrap());
                    }
                }
                while let Some(event) = client.next(&mut message) {
                    match event {
                        SessionEvent::Connected => client.send(b"hello").unwrap(),
                        SessionEvent::Message => is_answered = message == b"hello",
                        _ => {}
                    }
                }
                is_answered
            });
        }
    }
}

#[test]
fn s9_queries() {
    let (mut server, asked) = everywhere();
    server.set_info(&ServerInfo { name: Some("Bacon Town".into()), ..ServerInfo::default() });
    for addr in asked {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        socket.send_to(&[0x80], addr).unwrap();
        let mut from = None;
        until("it answers", || {
            server.poll();
            from = socket.recv_from(&mut [0; 600]).ok().map(|(_, from)| from);
            from.is_some()
        });
        assert_eq!(from, Some(addr));
    }
}
