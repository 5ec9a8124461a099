//! The cost of a datagram for an endpoint with one player and with 255, counted in instructions.

use crate::library::numbered;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Endpoint, EndpointConfig, ServerEvent};
use rallypoint_wire::session::{
    ClientData, Grant, LoginSuccess, MessageNumber, Payload, Rand, ServerDatagram, SlotIndex, Uid,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

struct Player {
    at: SocketAddr,
    index: SlotIndex,
    uid: Uid,
    rand: Rand,
    next: MessageNumber,
}

/// An endpoint whose players send in turn, 60 times per second each.
pub struct Crowd {
    endpoint: Endpoint,
    players: Vec<Player>,
    now: Instant,
    next: usize,
    out: Vec<u8>,
}

impl Crowd {
    /// An endpoint with `count` players.
    pub fn new(count: usize) -> Self {
        let config = EndpointConfig { max_players: 255, max_per_address: 255, ..EndpointConfig::for_game("tag") };
        let endpoint = Endpoint::new(config, [1; 32]).expect("the configuration is valid");
        let mut crowd =
            Self { endpoint, players: Vec::new(), now: Instant::now(), next: 0, out: Vec::with_capacity(65_536) };
        for number in 0..count {
            crowd.join(number);
        }
        assert_eq!(crowd.endpoint.stats().players, count);
        crowd
    }

    /// One message arrives, is received, and is acknowledged when due.
    pub fn step(&mut self) {
        self.now += Duration::from_nanos(1_000_000_000 / 60) / self.players.len() as u32;
        self.next = (self.next + 1) % self.players.len();
        self.send(self.next);
    }

    fn join(&mut self, number: usize) {
        let at = SocketAddr::from(([10, 0, (number / 200) as u8, (number % 200) as u8], 1000));
        self.endpoint.handle_datagram(self.now, at, b"\x03\x00bench\x00tag");
        self.out.clear();
        let transmit = self.endpoint.poll_transmit(self.now, &mut self.out).expect("a reply");
        let Ok(ServerDatagram::LoginSuccess(LoginSuccess { index, uid, grant: Grant::Plain(rand) })) =
            ServerDatagram::parse(&self.out[..transmit.len])
        else {
            panic!("the login failed");
        };
        self.players.push(Player { at, index, uid, rand, next: MessageNumber::FIRST });
        self.send(number);
    }

    fn send(&mut self, number: usize) {
        let player = &mut self.players[number];
        let message = numbered(number as u32, 100);
        let payload = Payload::new(if player.next == MessageNumber::FIRST { &[] } else { &message[..] });
        let payload = payload.expect("it is short");
        self.out.clear();
        let Player { index, uid, rand, next, .. } = *player;
        ClientData { number: next, index, uid, rand, payload }.emit(&mut self.out);
        player.next = next.next();
        self.endpoint.handle_datagram(self.now, player.at, &self.out);
        if self.endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
            self.endpoint.handle_timeout(self.now);
        }
        while let Some(event) = self.endpoint.poll_event() {
            if let ServerEvent::Message(player) = event {
                while self.endpoint.recv(player).is_some() {}
            }
        }
        self.out.clear();
        while self.endpoint.poll_transmit(self.now, &mut self.out).is_some() {
            self.out.clear();
        }
    }
}
