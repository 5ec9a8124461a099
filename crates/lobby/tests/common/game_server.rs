//! Game servers that reply to queries, on real sockets.

use rallypoint_machine::Machine;
use rallypoint_query_proto::{Player, Responder, ResponderConfig, ServerInfo};
use std::{
    net::{SocketAddr, UdpSocket},
    time::Instant,
};

/// A reply with this name and number of players, 24 slots and the map `ctf_two`.
pub fn info(name: &str, players: u16) -> ServerInfo {
    ServerInfo {
        name: Some(name.into()),
        map: Some("ctf_two".into()),
        players: Some(players),
        max_players: Some(24),
        player_list: Some(vec![Player::default(); players.into()]),
        ..ServerInfo::default()
    }
}

/// Starts a server that replies in both protocols until the process ends.
pub fn respond(info: &ServerInfo) -> SocketAddr {
    let config = ResponderConfig::default();
    let mut responder = Responder::new(config, 7, info).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let now = Instant::now();
            responder.handle_datagram(now, from, &buffer[..length]);
            let mut reply = Vec::new();
            while responder.poll_transmit(now, &mut reply).is_some() {
                let _ = socket.send_to(&reply, from);
                reply.clear();
            }
        }
    });
    addr
}
