//! One address cannot occupy all slots, and joining and leaving keeps no player out (W35, S17).

use crate::common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, ClientEvent, Encryption, LoginError};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

struct Server {
    now: Instant,
    app: ServerApp,
    seed: u8,
}

impl Server {
    /// A server with eight slots, of which an address can have three.
    fn new() -> Self {
        let mut config = server_config();
        config.max_players = 8;
        config.max_per_address = 3;
        Self { now: Instant::now(), app: ServerApp::new(config), seed: 0 }
    }

    /// Delivers datagrams between a client and the server for a while.
    fn run_for(&mut self, client: &mut Client, from: SocketAddr, duration: Duration) {
        let until = self.now + duration;
        let mut datagram = Vec::new();
        while self.now < until {
            self.now += ms(50);
            client.handle_timeout(self.now);
            while client.poll_transmit(self.now, &mut datagram).is_some() {
                self.app.handle_datagram(self.now, from, &datagram);
                datagram.clear();
            }
            self.app.handle_timeout(self.now);
            self.app.poll(self.now);
            while let Some(transmit) = self.app.poll_transmit(self.now, &mut datagram) {
                if transmit.to == from {
                    client.handle_datagram(self.now, SERVER.into(), &datagram);
                }
                datagram.clear();
            }
        }
    }

    /// Logs a client in. Fails with the reason of a refusal.
    fn log_in(&mut self, from: SocketAddr) -> Result<Client, String> {
        self.seed += 1;
        let config = client_config(Encryption::Plain);
        let mut client = Client::new(self.now, SERVER.into(), config, [self.seed; 32]).unwrap();
        self.run_for(&mut client, from, ms(500));
        loop {
            match client.poll_event() {
                Some(ClientEvent::Connected) => return Ok(client),
                Some(ClientEvent::LoginFailed(LoginError::Refused(reason))) => return Err(reason),
                event => assert!(event.is_some(), "neither connected nor refused"),
            }
        }
    }
}

fn addr(host: u8, port: u16) -> SocketAddr {
    ([10, 0, 1, host], port).into()
}

#[test]
fn w35_one_address_has_a_limited_number_of_slots() {
    let mut server = Server::new();
    let connected: Vec<_> = (1..=8).map(|port| server.log_in(addr(1, port))).filter_map(Result::ok).collect();
    assert_eq!(connected.len(), 3);
    assert!(server.log_in(addr(1, 9)).unwrap_err().starts_with("too many from your address"));
    assert!(server.log_in(addr(2, 1)).is_ok());
}

#[test]
fn w35_an_address_that_joins_and_leaves_all_the_time_keeps_no_player_out() {
    let mut server = Server::new();
    for port in 1..=20 {
        let mut client = server.log_in(addr(1, port)).unwrap();
        client.close(server.now);
        server.run_for(&mut client, addr(1, port), ms(1_500));
    }
    // Some of its slots rest, but if there are no others, they are used at once.
    let connected: Vec<_> = (2..=9).map(|host| server.log_in(addr(host, 1))).filter_map(Result::ok).collect();
    assert_eq!((connected.len(), server.app.endpoint.stats().players), (8, 8));
}
