//! Game servers that reply to queries, on real sockets.

use rallypoint_machine::Machine;
use rallypoint_query_proto::{Player, Responder, ResponderConfig, ServerInfo};
use std::{
    net::{SocketAddr, UdpSocket},
    time::Instant,
};

/// A reply with this name and number of players, 10 slots and the map `ctf_two`.
pub fn info(name: &str, players: u16) -> ServerInfo {
    let player = |number| Player { name: format!("player {number}"), ping_ms: Some(35), ..Player::default() };
    ServerInfo {
        name: Some(name.into()),
        game: Some("bm".into()),
        map: Some("ctf_two".into()),
        players: Some(players),
        max_players: Some(10),
        player_list: Some((0..players).map(player).collect()),
        ..ServerInfo::default()
    }
}

/// Binds a socket and replies in both protocols until the process ends.
pub fn respond(bind_addr: &str, info: &ServerInfo) -> SocketAddr {
    let config = ResponderConfig::default();
    let mut responder = Responder::new(config, 7, info).unwrap();
    reply_with(bind_addr, move |from, datagram| {
        let now = Instant::now();
        let mut replies = Vec::new();
        let mut bytes = Vec::new();
        responder.handle_datagram(now, from, datagram);
        while let Some(sent) = responder.poll_transmit(now, &mut bytes) {
            replies.push(bytes[bytes.len() - sent.len..].to_vec());
        }
        replies
    })
}

/// Binds a socket and replies to each datagram with those that `reply` returns, until the process ends.
pub fn reply_with(
    bind_addr: &str,
    mut reply: impl FnMut(SocketAddr, &[u8]) -> Vec<Vec<u8>> + Send + 'static,
) -> SocketAddr {
    let socket = UdpSocket::bind(bind_addr).unwrap();
    let addr = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            for datagram in reply(from, &buffer[..length]) {
                let _ = socket.send_to(&datagram, from);
            }
        }
    });
    addr
}
