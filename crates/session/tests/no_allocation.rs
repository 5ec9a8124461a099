//! In steady state nothing is allocated per datagram, with sockets and all.
//!
//! What is kept of a connection depends on the real time that acks take, so a buffer may still grow once on a busy machine.

mod common;

use common::{Pair, client_options, server_options, until};
use rallypoint_session::{ClientEvent, Encryption, ServerEvent, SessionClient, SessionServer};

/// So many buffers may grow while thousands of datagrams go to and fro.
const GROWTH: u64 = 4;

impl Pair {
    /// So many rounds of three messages each way.
    fn talk(&mut self, rounds: u32) {
        for round in 0..rounds {
            for _ in 0..3 {
                self.client.send(&[round as u8; 200]).unwrap();
                self.server.send(self.player, &[round as u8; 300]).unwrap();
            }
            let (mut server, mut client) = (0, 0);
            until("all have arrived", || {
                self.turn();
                while let Some(event) = self.server.next_event(&mut self.message) {
                    server += u32::from(matches!(event, ServerEvent::Message(_)));
                }
                while let Some(event) = self.client.next_event(&mut self.message) {
                    client += u32::from(event == ClientEvent::Message);
                }
                (server, client) == (3, 3)
            });
        }
    }
}

#[test]
fn nothing_is_allocated_in_a_game_loop() {
    for encryption in [Encryption::Plain, Encryption::Encrypted] {
        let mut pair = Pair::new(server_options(), client_options(encryption));
        pair.talk(2_000);
        let counted = allocation_counter::measure(|| pair.talk(1_000));
        assert!(counted.count_total <= GROWTH, "{counted:?}");
    }
}

#[test]
fn nothing_is_allocated_on_a_runtime() {
    // The counter counts one thread, and this runtime has no other.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, client, player) = runtime.block_on(async {
        let server = SessionServer::bind(server_options()).await.unwrap();
        let options = client_options(Encryption::Encrypted);
        let client = SessionClient::connect(server.local_addrs()[0], options).await.unwrap();
        let player = server.accept().await.player;
        (server, client, player)
    });
    let mut message = Vec::with_capacity(508);
    let mut talk = |rounds: u32| {
        runtime.block_on(async {
            for round in 0..rounds {
                client.send(&[round as u8; 200]).await.unwrap();
                assert!(server.recv(player, &mut message).await);
                server.send(player, &message).await.unwrap();
                client.recv_into(&mut message).await.unwrap();
            }
        });
    };
    talk(5_000);
    let counted = allocation_counter::measure(|| talk(1_000));
    assert!(counted.count_total <= GROWTH, "{counted:?}");
}
