//! A source address is only a claim: a player cannot use a forged one to cut another player off.

use crate::common;

use common::*;
use rallypoint_machine::Machine;
use rallypoint_session_proto::{Client, DisconnectReason, Encryption, ONLY_CHANNEL};
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
        forger.send(wire.now, ONLY_CHANNEL, b"mine").unwrap();
        wire.deliver_to_server(&mut forger, addr(1));
        assert_eq!(wire.server.disconnects(), []);
        assert_eq!(wire.server.endpoint.players().count(), 1);
        victim.send(wire.now, ONLY_CHANNEL, b"still here").unwrap();
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
            forger.send(wire.now, ONLY_CHANNEL, &numbered(number, 40)).unwrap();
            wire.deliver_to_server(&mut forger, addr(1));
            wire.step(&mut [(&mut victim, addr(1)), (&mut forger, addr(2))]);
        }
        // After 30 s of that no session is lost.
        assert_eq!(wire.server.disconnects(), [] as [DisconnectReason; 0]);
        assert!(victim.is_connected());
        let players: Vec<_> = wire.server.endpoint.players().collect();
        for player in players {
            wire.server.endpoint.send(wire.now, player, ONLY_CHANNEL, b"hello").unwrap();
        }
        wire.step(&mut [(&mut victim, addr(1))]);
        assert_eq!(victim.recv(), Some((ONLY_CHANNEL, &b"hello"[..])));
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
            forger.send(wire.now, ONLY_CHANNEL, b"rude").unwrap();
            wire.deliver_to_server(&mut forger, claimed);
            wire.deliver_to_clients(&mut []);
            assert_eq!(addrs(&wire), (claimed, addr(1)));
        }
        // At its real address it answers the challenge.
        for _ in 0..200 {
            forger.send(wire.now, ONLY_CHANNEL, b"here").unwrap();
            wire.step(&mut [(&mut forger, addr(4))]);
        }
        assert_eq!(addrs(&wire), (addr(4), addr(4)));
    }
}

/// Ten forgers claim the address of a victim for 30 s, 50 times per second each. Returns the longest time that a message to the
/// victim took, and asserts that all of them arrived.
fn delay_under_claims(encryption: &Encryption, victim_sends: bool) -> std::time::Duration {
    let mut wire = Wire::new();
    let mut victim = wire.client(encryption.clone(), 1);
    wire.connect(&mut victim, addr(1));
    let player = wire.server.player();
    let mut forgers: Vec<_> = (10..20).map(|seed| (wire.client(encryption.clone(), seed), addr(seed))).collect();
    forgers.iter_mut().for_each(|(forger, from)| wire.connect(forger, *from));
    let mut sent = Vec::new();
    let mut received = Vec::new();
    for number in 0..1_500 {
        for (forger, _) in &mut forgers {
            if forger.send(wire.now, ONLY_CHANNEL, b"claim").is_ok() {
                wire.deliver_to_server(forger, addr(1));
            }
        }
        sent.push(wire.now);
        wire.server.endpoint.send(wire.now, player, ONLY_CHANNEL, &numbered(number, 40)).unwrap();
        if victim_sends {
            victim.send(wire.now, ONLY_CHANNEL, &numbered(number, 40)).unwrap();
        }
        let mut clients: Vec<_> = forgers.iter_mut().map(|(forger, from)| (forger, *from)).collect();
        clients.push((&mut victim, addr(1)));
        wire.step(&mut clients);
        while let Some((_, message)) = victim.recv() {
            assert_eq!(number_of(message), received.len() as u32);
            received.push(wire.now);
        }
    }
    for _ in 0..20 {
        wire.step(&mut [(&mut victim, addr(1))]);
        while let Some((_, message)) = victim.recv() {
            assert_eq!(number_of(message), received.len() as u32);
            received.push(wire.now);
        }
    }
    assert_eq!(received.len(), sent.len());
    assert_eq!(wire.server.disconnects(), [] as [DisconnectReason; 0]);
    let connection = wire.server.endpoint.connection(player).unwrap();
    assert_eq!((connection.peer(), connection.validated_peer()), (addr(1), addr(1)));
    sent.iter().zip(&received).map(|(sent, received)| *received - *sent).max().unwrap()
}

#[test]
fn w54_claims_to_the_address_of_a_player_hardly_delay_its_messages() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        for victim_sends in [true, false] {
            let delay = delay_under_claims(&encryption, victim_sends);
            assert!(delay <= ms(200), "{encryption:?}, the victim sends: {victim_sends}: {delay:?}");
        }
    }
}

#[test]
fn w54_a_player_that_was_cut_off_gets_its_address_back_from_a_forger() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut wire = Wire::new();
        let mut victim = wire.client(encryption.clone(), 1);
        wire.connect(&mut victim, addr(1));
        let player = wire.server.player();
        let mut forger = wire.client(encryption, 2);
        wire.connect(&mut forger, addr(2));
        // The victim's network fails for 4 s, in which a forger claims its address.
        for _ in 0..200 {
            forger.send(wire.now, ONLY_CHANNEL, b"claim").unwrap();
            wire.deliver_to_server(&mut forger, addr(1));
            wire.step(&mut []);
        }
        // It is back, and the forger goes on.
        for number in 0..100 {
            let _ = forger.send(wire.now, ONLY_CHANNEL, b"claim");
            wire.deliver_to_server(&mut forger, addr(1));
            wire.server.endpoint.send(wire.now, player, ONLY_CHANNEL, &numbered(number, 40)).unwrap();
            victim.send(wire.now, ONLY_CHANNEL, &numbered(number, 40)).unwrap();
            wire.step(&mut [(&mut victim, addr(1))]);
        }
        let mut received = 0;
        for _ in 0..20 {
            wire.step(&mut [(&mut victim, addr(1))]);
            while victim.recv().is_some() {
                received += 1;
            }
        }
        assert_eq!(received, 100);
        assert!(wire.server.endpoint.connection(player).is_some_and(|connection| connection.peer() == addr(1)));
    }
}

#[test]
fn w54_claims_are_no_amplifier() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut wire = Wire::new();
        let mut clients: Vec<_> = (1..=4).map(|seed| (wire.client(encryption.clone(), seed), addr(seed))).collect();
        clients.iter_mut().for_each(|(client, from)| wire.connect(client, *from));
        // They claim the address of a host that is no player, and then that of each other there.
        let target = addr(99);
        let mut spoofed = 0;
        let mut reflected = 0;
        let mut datagram = Vec::new();
        for _ in 0..1_500 {
            for (client, _) in &mut clients {
                let _ = client.send(wire.now, ONLY_CHANNEL, b"claim");
                while client.poll_transmit(wire.now, &mut datagram).is_some() {
                    spoofed += datagram.len() + 28;
                    wire.server.handle_datagram(wire.now, target, &datagram);
                    datagram.clear();
                }
            }
            let players: Vec<_> = wire.server.endpoint.players().collect();
            for player in players {
                let _ = wire.server.endpoint.send(wire.now, player, ONLY_CHANNEL, &[7; 400]);
            }
            wire.now += ms(20);
            clients.iter_mut().for_each(|(client, _)| client.handle_timeout(wire.now));
            wire.server.handle_timeout(wire.now);
            wire.server.poll(wire.now);
            while let Some(transmit) = wire.server.poll_transmit(wire.now, &mut datagram) {
                let parts = transmit.datagrams(&datagram).count();
                if transmit.to == target {
                    reflected += transmit.len + 28 * parts;
                }
                datagram.clear();
            }
        }
        assert!(reflected <= 3 * spoofed, "{encryption:?}: {reflected} bytes for {spoofed}");
    }
}
