//! A source address is only a claim. Whoever is in cannot use a forged one to cut another player off.

mod common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, DisconnectReason, Encryption};
use std::{net::SocketAddr, time::Instant};

/// A server and clients that are handed each other's datagrams at once, from whatever address a test says.
struct Table {
    now: Instant,
    server: ServerApp,
}

impl Table {
    fn new() -> Self {
        Self { now: Instant::now(), server: ServerApp::new(server_config()) }
    }

    fn client(&self, encryption: Encryption, seed: u8) -> Client {
        Client::new(self.now, SERVER.into(), client_config(encryption), [seed; 32]).unwrap()
    }

    /// Everything that a client wants to say arrives, from this address.
    fn deliver(&mut self, client: &mut Client, from: SocketAddr) {
        let mut datagram = Vec::new();
        while client.poll_transmit(self.now, &mut datagram).is_some() {
            self.server.handle_datagram(self.now, from, &datagram);
            datagram.clear();
        }
        self.server.read(self.now);
    }

    /// Everything that the server wants to say arrives.
    fn answer(&mut self, clients: &mut [(&mut Client, SocketAddr)]) {
        let mut datagram = Vec::new();
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut datagram) {
            for (client, _) in clients.iter_mut().filter(|(_, at)| *at == transmit.to) {
                for piece in transmit.datagrams(&datagram) {
                    client.handle_datagram(self.now, SERVER.into(), piece);
                }
            }
            datagram.clear();
        }
    }

    fn pass(&mut self, clients: &mut [(&mut Client, SocketAddr)]) {
        self.now += ms(20);
        for (client, from) in &mut *clients {
            client.handle_timeout(self.now);
            self.deliver(client, *from);
        }
        self.server.handle_timeout(self.now);
        self.answer(clients);
    }

    fn connect(&mut self, client: &mut Client, from: SocketAddr) {
        for _ in 0..10 {
            self.pass(&mut [(client, from)]);
        }
        assert!(client.is_connected());
    }
}

fn at(host: u8) -> SocketAddr {
    ([10, 0, 1, host], 1_000).into()
}

#[test]
fn s13_the_first_data_counts_only_from_where_the_login_came() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut table = Table::new();
        let mut victim = table.client(encryption.clone(), 1);
        table.connect(&mut victim, at(1));
        // Logs in from its own address, and claims the victim's with what follows.
        let mut forger = table.client(encryption, 2);
        table.deliver(&mut forger, at(2));
        table.answer(&mut [(&mut forger, at(2))]);
        assert!(forger.is_connected());
        forger.send(table.now, b"mine").unwrap();
        table.deliver(&mut forger, at(1));
        assert_eq!(table.server.disconnects(), []);
        assert_eq!(table.server.endpoint.players().count(), 1);
        victim.send(table.now, b"still here").unwrap();
        table.deliver(&mut victim, at(1));
        assert!(table.server.heard.values().flatten().any(|(_, message)| message == b"still here"));
    }
}

#[test]
fn s31_nobody_moves_to_where_another_player_is() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut table = Table::new();
        let mut victim = table.client(encryption.clone(), 1);
        table.connect(&mut victim, at(1));
        let mut forger = table.client(encryption, 2);
        table.connect(&mut forger, at(2));
        for turn in 0..1_500_u32 {
            forger.send(table.now, &numbered(turn, 40)).unwrap();
            table.deliver(&mut forger, at(1));
            table.pass(&mut [(&mut victim, at(1)), (&mut forger, at(2))]);
        }
        // After 30 s of that nobody has lost a session.
        assert_eq!(table.server.disconnects(), [] as [DisconnectReason; 0]);
        assert!(victim.is_connected());
        let players: Vec<_> = table.server.endpoint.players().collect();
        for player in players {
            table.server.endpoint.send(table.now, player, b"hello").unwrap();
        }
        table.pass(&mut [(&mut victim, at(1))]);
        assert_eq!(victim.recv(), Some(&b"hello"[..]));
    }
}

#[test]
fn s31_a_claimed_address_is_not_taken_for_a_proven_one() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut table = Table::new();
        let mut forger = table.client(encryption, 1);
        table.connect(&mut forger, at(1));
        let places = |table: &Table| {
            let player = table.server.endpoint.players().next().unwrap();
            let connection = table.server.endpoint.connection(player).unwrap();
            (connection.peer(), connection.validated_peer())
        };
        assert_eq!(places(&table), (at(1), at(1)));
        for claimed in [at(2), at(3)] {
            forger.send(table.now, b"rude").unwrap();
            table.deliver(&mut forger, claimed);
            table.answer(&mut []);
            assert_eq!(places(&table), (claimed, at(1)));
        }
        // Where it really is, it answers.
        for _ in 0..200 {
            forger.send(table.now, b"here").unwrap();
            table.pass(&mut [(&mut forger, at(4))]);
        }
        assert_eq!(places(&table), (at(4), at(4)));
    }
}
