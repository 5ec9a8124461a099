//! A source address is only a claim: a player cannot use a forged one to cut another player off.

mod common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, DisconnectReason, Encryption};
use std::{net::SocketAddr, time::Instant};

/// A server, and clients whose datagrams reach it at once, from any address.
struct Wire {
    now: Instant,
    server: ServerApp,
}

impl Wire {
    fn new() -> Self {
        Self { now: Instant::now(), server: ServerApp::new(server_config()) }
    }

    fn client(&self, encryption: Encryption, seed: u8) -> Client {
        Client::new(self.now, SERVER.into(), client_config(encryption), [seed; 32]).unwrap()
    }

    /// Delivers everything that a client sends, with this source address.
    fn deliver_to_server(&mut self, client: &mut Client, from: SocketAddr) {
        let mut datagram = Vec::new();
        while client.poll_transmit(self.now, &mut datagram).is_some() {
            self.server.handle_datagram(self.now, from, &datagram);
            datagram.clear();
        }
        self.server.poll(self.now);
    }

    /// Delivers everything that the server sends.
    fn deliver_to_clients(&mut self, clients: &mut [(&mut Client, SocketAddr)]) {
        let mut datagram = Vec::new();
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut datagram) {
            for (client, _) in clients.iter_mut().filter(|(_, at)| *at == transmit.to) {
                for part in transmit.datagrams(&datagram) {
                    client.handle_datagram(self.now, SERVER.into(), part);
                }
            }
            datagram.clear();
        }
    }

    /// Lets 20 ms pass.
    fn step(&mut self, clients: &mut [(&mut Client, SocketAddr)]) {
        self.now += ms(20);
        for (client, from) in &mut *clients {
            client.handle_timeout(self.now);
            self.deliver_to_server(client, *from);
        }
        self.server.handle_timeout(self.now);
        self.deliver_to_clients(clients);
    }

    fn connect(&mut self, client: &mut Client, from: SocketAddr) {
        for _ in 0..10 {
            self.step(&mut [(client, from)]);
        }
        assert!(client.is_connected());
    }
}

fn addr(host: u8) -> SocketAddr {
    ([10, 0, 1, host], 1_000).into()
}

#[test]
fn s13_the_first_data_is_accepted_only_from_the_address_of_the_login() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut wire = Wire::new();
        let mut victim = wire.client(encryption.clone(), 1);
        wire.connect(&mut victim, addr(1));
        // The forger logs in from its own address, and sends its first data with the address of the victim.
        let mut forger = wire.client(encryption, 2);
        wire.deliver_to_server(&mut forger, addr(2));
        wire.deliver_to_clients(&mut [(&mut forger, addr(2))]);
        assert!(forger.is_connected());
        forger.send(wire.now, b"mine").unwrap();
        wire.deliver_to_server(&mut forger, addr(1));
        assert_eq!(wire.server.disconnects(), []);
        assert_eq!(wire.server.endpoint.players().count(), 1);
        victim.send(wire.now, b"still here").unwrap();
        wire.deliver_to_server(&mut victim, addr(1));
        assert!(wire.server.received.values().flatten().any(|(_, message)| message == b"still here"));
    }
}

#[test]
fn s31_a_session_does_not_move_to_the_address_of_another_player() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut wire = Wire::new();
        let mut victim = wire.client(encryption.clone(), 1);
        wire.connect(&mut victim, addr(1));
        let mut forger = wire.client(encryption, 2);
        wire.connect(&mut forger, addr(2));
        for number in 0..1_500_u32 {
            forger.send(wire.now, &numbered(number, 40)).unwrap();
            wire.deliver_to_server(&mut forger, addr(1));
            wire.step(&mut [(&mut victim, addr(1)), (&mut forger, addr(2))]);
        }
        // After 30 s of that no session is lost.
        assert_eq!(wire.server.disconnects(), [] as [DisconnectReason; 0]);
        assert!(victim.is_connected());
        let players: Vec<_> = wire.server.endpoint.players().collect();
        for player in players {
            wire.server.endpoint.send(wire.now, player, b"hello").unwrap();
        }
        wire.step(&mut [(&mut victim, addr(1))]);
        assert_eq!(victim.recv(), Some(&b"hello"[..]));
    }
}

#[test]
fn s31_a_claimed_address_is_not_validated() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut wire = Wire::new();
        let mut forger = wire.client(encryption, 1);
        wire.connect(&mut forger, addr(1));
        let addrs = |wire: &Wire| {
            let player = wire.server.endpoint.players().next().unwrap();
            let connection = wire.server.endpoint.connection(player).unwrap();
            (connection.peer(), connection.validated_peer())
        };
        assert_eq!(addrs(&wire), (addr(1), addr(1)));
        for claimed in [addr(2), addr(3)] {
            forger.send(wire.now, b"rude").unwrap();
            wire.deliver_to_server(&mut forger, claimed);
            wire.deliver_to_clients(&mut []);
            assert_eq!(addrs(&wire), (claimed, addr(1)));
        }
        // At its real address it answers the challenge.
        for _ in 0..200 {
            forger.send(wire.now, b"here").unwrap();
            wire.step(&mut [(&mut forger, addr(4))]);
        }
        assert_eq!(addrs(&wire), (addr(4), addr(4)));
    }
}
