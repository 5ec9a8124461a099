//! In steady state no datagram causes an allocation, sockets included.
//!
//! How many messages are kept depends on the real time that acks take, so on a busy machine a buffer may still grow.

use crate::common;

use common::{Pair, client_options, server_options, until};
use rallypoint_session::{Client, ClientEvent, Encryption, ONLY_CHANNEL, Server, ServerEvent};

/// Maximum number of buffers that may grow while thousands of datagrams are exchanged.
const MAX_GROWTH: u64 = 4;

impl Pair {
    /// Exchanges three messages each way per round.
    fn exchange(&mut self, rounds: u32) {
        for round in 0..rounds {
            for _ in 0..3 {
                self.client.send(ONLY_CHANNEL, &[round as u8; 200]).unwrap();
                self.server.send(self.player, ONLY_CHANNEL, &[round as u8; 300]).unwrap();
            }
            let mut server = 0;
            let mut client = 0;
            until("all messages have arrived", || {
                self.poll();
                while let Some(event) = self.server.next_event() {
                    server += u32::from(matches!(event, ServerEvent::Message { .. }));
                }
                while let Some(event) = self.client.next_event() {
                    client += u32::from(matches!(event, ClientEvent::Message { .. }));
                }
                (server, client) == (3, 3)
            });
        }
    }
}

#[test]
fn no_datagram_causes_an_allocation_with_the_polled_api() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = Pair::new(server_options(), client_options(encryption));
        pair.exchange(2_000);
        let counted = allocation_counter::measure(|| pair.exchange(1_000));
        assert!(counted.count_total <= MAX_GROWTH, "{counted:?}");
    }
}

#[test]
fn no_datagram_causes_an_allocation_with_the_async_api() {
    // The counter measures one thread, and this runtime has no other.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, client, player) = runtime.block_on(async {
        let server = Server::bind(server_options()).await.unwrap();
        let options = client_options(Encryption::Encrypted);
        let client = Client::connect(server.local_addrs()[0], options).await.unwrap();
        let player = server.accept().await.unwrap().player;
        (server, client, player)
    });
    let mut message = Vec::with_capacity(508);
    let mut exchange = |rounds: u32| {
        runtime.block_on(async {
            for round in 0..rounds {
                client.send(ONLY_CHANNEL, &[round as u8; 200]).await.unwrap();
                let (channel, bytes) = server.recv(player, &mut message).await.unwrap().unwrap();
                server.send(player, channel, bytes).await.unwrap();
                client.recv(&mut message).await.unwrap();
            }
        });
    };
    exchange(5_000);
    let counted = allocation_counter::measure(|| exchange(1_000));
    assert!(counted.count_total <= MAX_GROWTH, "{counted:?}");
}
