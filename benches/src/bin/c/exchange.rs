//! Messages there and back through the Rust API, in one thread. The same loop as in exchange.c.

use rallypoint_session::{ClientEvent, ClientOptions, Encryption, ONLY_CHANNEL, ServerEvent, ServerOptions};
use std::error::Error;

pub fn run(iterations: u64) -> Result<(), Box<dyn Error>> {
    let mut server = ServerOptions::new("tag").listen("127.0.0.1:0".parse()?).bind_polled()?;
    let options = ClientOptions::new("alice", "tag").encryption(Encryption::Plain);
    let mut client = options.connect_polled(server.local_addrs()[0])?;
    let mut player = None;
    let mut is_connected = false;
    while !is_connected || player.is_none() {
        client.poll();
        while let Some(event) = client.next_event() {
            is_connected |= event == ClientEvent::Connected;
        }
        server.poll();
        while let Some(event) = server.next_event() {
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
        client.send(ONLY_CHANNEL, &message)?;
        client.poll();
        server.poll();
        while server.next_event().is_some() {}
        server.send(player, ONLY_CHANNEL, &message)?;
        server.poll();
        client.poll();
        while client.next_event().is_some() {}
    }
    Ok(())
}
