//! A game without async: a server and a client in one loop, each polled once per frame, on a simulated bad network.
//!
//! The player moves in a circle and sends its position; the server sends it back. In a real game, server and client are
//! separate programs, and each has one half of this loop.
//!
//! `cargo run -p rallypoint-session --example game_loop`

use rallypoint_session::{
    ClientEvent, ClientOptions, LinkConditions, ONLY_CHANNEL, SendError, ServerEvent, ServerOptions,
};
use std::{error::Error, thread::sleep, time::Duration};

const FRAME: Duration = Duration::from_millis(16);

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = ServerOptions::new("circle").listen("127.0.0.1:0".parse()?).bind_polled()?;

    // The network of a player, to try the game out.
    let network = LinkConditions { loss: 0.05, delay: Duration::from_millis(20), seed: 1, ..LinkConditions::default() };
    let mut options = ClientOptions::new("alice", "circle");
    options.link_conditions = Some(network);
    let mut client = options.connect_polled(server.local_addrs()[0])?;

    let mut received = 0;
    let mut angle = 0.0f32;
    while received < 120 {
        // The server's frame: receive, update the game, send.
        server.poll();
        while let Some(event) = server.next_event() {
            match event {
                ServerEvent::Connected(new) => println!("{:?} connected", new.username),
                ServerEvent::Message { player, channel, bytes } => {
                    let position = bytes.to_vec();
                    // A player whose window is full misses this position, and holds up no other.
                    if let Err(error) = server.send(player, channel, &position) {
                        println!("{player:?}: {error}");
                    }
                }
                _ => {}
            }
        }
        server.flush();

        // The client's frame.
        client.poll();
        while let Some(event) = client.next_event() {
            match event {
                ClientEvent::Message { .. } => received += 1,
                ClientEvent::Disconnected(reason) => return Err(reason.into()),
                ClientEvent::LoginFailed(error) => return Err(error.into()),
                _ => {}
            }
        }
        if client.is_connected() {
            angle += 0.05;
            let position = [angle.sin(), angle.cos()].map(f32::to_le_bytes);
            match client.send(ONLY_CHANNEL, position.as_flattened()) {
                // The window is full: this position is skipped.
                Ok(_) | Err(SendError::WouldBlock) => {}
                Err(error) => return Err(error.into()),
            }
        }
        client.flush();
        sleep(FRAME);
    }

    let stats = client.stats().ok_or("not connected")?;
    println!("received {received} positions; round trip {:.0?}, {} resends", stats.rtt, stats.resends);
    client.close();
    while !client.is_closed() {
        client.poll();
        server.poll();
        client.wait(FRAME);
    }
    Ok(())
}
