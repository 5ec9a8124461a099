//! Messages there and back through the Rust API, in one thread. The same loop as in exchange.c.

use rallypoint_session::{
    ClientConfig, ClientEvent, Encryption, EndpointConfig, PolledClient, PolledServer, ServerEvent, ServerOptions,
};
use std::error::Error;

pub fn run(iterations: u64) -> Result<(), Box<dyn Error>> {
    let listen = vec!["127.0.0.1:0".parse()?];
    let mut server = PolledServer::bind(ServerOptions { listen, ..EndpointConfig::for_game("tag").into() })?;
    let address = server.local_addrs().next().ok_or("no address")?;
    let config = ClientConfig { encryption: Encryption::Plain, ..ClientConfig::new("alice", "tag") };
    let mut client = PolledClient::connect(address, config)?;
    let mut buffer = Vec::new();
    let mut player = None;
    let mut is_connected = false;
    while !is_connected || player.is_none() {
        client.poll();
        while let Some(event) = client.next_event(&mut buffer) {
            is_connected |= event == ClientEvent::Connected;
        }
        server.poll();
        while let Some(event) = server.next_event(&mut buffer) {
            if let ServerEvent::Connected(new) = event {
                player = Some(new.player);
            }
        }
        server.flush();
    }
    let player = player.ok_or("no player")?;
    let message = [7; 64];
    // The same calls in each iteration, whether a message has arrived by then or not: a sender may wait before it sends.
    for _ in 0..iterations {
        client.send(&message)?;
        client.poll();
        server.poll();
        while server.next_event(&mut buffer).is_some() {}
        server.send(player, &message)?;
        server.poll();
        client.poll();
        while client.next_event(&mut buffer).is_some() {}
    }
    Ok(())
}
