//! In steady state no datagram causes an allocation.

use crate::common;

use common::{CLIENT, SERVER, client_config, ms, server_config};
use rallypoint_machine::{Machine, Transmit};
use rallypoint_session_proto::{Client, Encryption, Endpoint, ONLY_CHANNEL, PlayerId};
use std::{net::SocketAddr, time::Instant};

struct Wire {
    now: Instant,
    server: Endpoint,
    client: Client,
    out: Vec<u8>,
}

impl Wire {
    fn connect(encryption: Encryption) -> (Self, PlayerId) {
        let now = Instant::now();
        let server = Endpoint::new(server_config(), [1; 32]).unwrap();
        let client = Client::new(now, SERVER.into(), client_config(encryption), [2; 32]).unwrap();
        let mut wire = Self { now, server, client, out: Vec::with_capacity(65_536) };
        (0..10).for_each(|_| wire.run());
        let player = wire.server.players().next().expect("a player");
        (wire, player)
    }

    /// Delivers everything that both sides send, and lets a millisecond pass.
    fn run(&mut self) {
        let server_addr: SocketAddr = SERVER.into();
        let client_addr: SocketAddr = CLIENT.into();
        loop {
            let mut is_idle = true;
            while let Some(transmit) = self.client.poll_transmit(self.now, &mut self.out) {
                deliver(&mut self.server, self.now, client_addr, transmit, &mut self.out);
                is_idle = false;
            }
            while let Some(transmit) = self.server.poll_transmit(self.now, &mut self.out) {
                deliver(&mut self.client, self.now, server_addr, transmit, &mut self.out);
                is_idle = false;
            }
            if is_idle {
                break;
            }
        }
        while self.server.poll_event().is_some() {}
        while self.client.poll_event().is_some() {}
        self.now += ms(1);
        self.server.handle_timeout(self.now);
        self.client.handle_timeout(self.now);
    }

    fn exchange(&mut self, player: PlayerId, rounds: u32) {
        for round in 0..rounds {
            for _ in 0..3 {
                self.client.send(self.now, ONLY_CHANNEL, &[round as u8; 200]).unwrap();
                self.server.send(self.now, player, ONLY_CHANNEL, &[round as u8; 300]).unwrap();
            }
            self.run();
            while self.server.recv(player).is_some() {}
            while self.client.recv().is_some() {}
        }
    }
}

fn deliver(to: &mut impl Machine, now: Instant, from: SocketAddr, transmit: Transmit, out: &mut Vec<u8>) {
    transmit.datagrams(out).for_each(|datagram| to.handle_datagram(now, from, datagram));
    out.clear();
}

#[test]
fn no_datagram_causes_an_allocation_in_steady_state() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let (mut wire, player) = Wire::connect(encryption);
        // Until then the memory for acked messages grows: four windows of them are kept.
        wire.exchange(player, 7_000);
        let counted = allocation_counter::measure(|| wire.exchange(player, 2_000));
        assert_eq!(counted.count_total, 0, "{counted:?}");
        let received = wire.server.connection(player).unwrap().stats().messages_received;
        assert!(received >= 27_000, "{received}");
    }
}
