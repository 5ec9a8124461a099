//! One address cannot have all slots, not even by coming and going (W35).

mod common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, ClientEvent, Encryption, LoginError};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

struct House {
    now: Instant,
    server: ServerApp,
    seed: u8,
}

impl House {
    /// Eight slots, of which an address can have three.
    fn new() -> Self {
        let mut config = server_config();
        (config.max_players, config.max_per_address) = (8, 3);
        Self { now: Instant::now(), server: ServerApp::new(config), seed: 0 }
    }

    /// Lets a client and the server talk for so long.
    fn pass(&mut self, client: &mut Client, from: SocketAddr, time: Duration) {
        let (until, mut datagram) = (self.now + time, Vec::new());
        while self.now < until {
            self.now += ms(50);
            client.handle_timeout(self.now);
            while client.poll_transmit(self.now, &mut datagram).is_some() {
                self.server.handle_datagram(self.now, from, &datagram);
                datagram.clear();
            }
            self.server.handle_timeout(self.now);
            self.server.read(self.now);
            while let Some(transmit) = self.server.poll_transmit(self.now, &mut datagram) {
                if transmit.to == from {
                    client.handle_datagram(self.now, SERVER.into(), &datagram);
                }
                datagram.clear();
            }
        }
    }

    /// Somebody comes, and is let in or told why not.
    fn visit(&mut self, from: SocketAddr) -> Result<Client, String> {
        self.seed += 1;
        let config = client_config(Encryption::Plain);
        let mut client = Client::new(self.now, SERVER.into(), config, [self.seed; 32]).unwrap();
        self.pass(&mut client, from, ms(500));
        loop {
            match client.poll_event() {
                Some(ClientEvent::Connected) => return Ok(client),
                Some(ClientEvent::LoginFailed(LoginError::Refused(reason))) => return Err(reason),
                event => assert!(event.is_some(), "neither in nor out"),
            }
        }
    }
}

fn at(host: u8, port: u16) -> SocketAddr {
    ([10, 0, 1, host], port).into()
}

#[test]
fn w35_one_address_has_a_share_of_the_slots() {
    let mut house = House::new();
    let in_house: Vec<_> = (1..=8).map(|port| house.visit(at(1, port))).filter_map(Result::ok).collect();
    assert_eq!(in_house.len(), 3);
    assert!(house.visit(at(1, 9)).unwrap_err().starts_with("too many from your address"));
    assert!(house.visit(at(2, 1)).is_ok());
}

#[test]
fn w35_slots_that_rest_belong_to_the_share_of_whoever_left_them() {
    let mut house = House::new();
    let come_and_go = |house: &mut House, port| {
        let mut client = house.visit(at(1, port))?;
        client.close(house.now);
        house.pass(&mut client, at(1, port), secs(2));
        Ok::<(), String>(())
    };
    assert_eq!((1..=3).map(|port| come_and_go(&mut house, port).is_ok()).collect::<Vec<_>>(), [true; 3]);
    assert_eq!(house.server.endpoint.stats().players, 0);
    assert!(come_and_go(&mut house, 4).is_err(), "all of its share rests");
    assert!(house.visit(at(2, 1)).is_ok());
    house.now += secs(10);
    house.server.handle_timeout(house.now);
    assert!(come_and_go(&mut house, 5).is_ok());
}
