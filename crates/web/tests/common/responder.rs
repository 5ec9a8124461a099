//! Servers that answer questions, on real sockets.

use rallypoint_machine::Machine;
use rallypoint_query_proto::{Player, Responder, ResponderConfig, ServerInfo};
use std::{
    net::{SocketAddr, UdpSocket},
    time::Instant,
};

/// What a server answers.
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

/// Answers in both protocols for as long as the test runs, at this address.
pub fn respond(at: &str, info: &ServerInfo) -> SocketAddr {
    let config = ResponderConfig { bloodmasters: true, session: true, ..ResponderConfig::default() };
    let mut responder = Responder::new(config, 7, info).unwrap();
    answering(at, move |from, datagram| {
        let (now, mut answers, mut bytes) = (Instant::now(), Vec::new(), Vec::new());
        responder.handle_datagram(now, from, datagram);
        while let Some(sent) = responder.poll_transmit(now, &mut bytes) {
            answers.push(bytes[bytes.len() - sent.len..].to_vec());
        }
        answers
    })
}

/// A socket with something behind it.
pub fn answering(at: &str, mut answer: impl FnMut(SocketAddr, &[u8]) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind(at).unwrap();
    let addr = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            for datagram in answer(from, &buffer[..length]) {
                let _ = socket.send_to(&datagram, from);
            }
        }
    });
    addr
}
