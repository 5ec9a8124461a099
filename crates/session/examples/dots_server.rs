//! Thirty dots that move; every player steers one of them. Positions are sequenced, chat is reliable, the map is bulk.
//!
//! `cargo run -p rallypoint-session --example dots_server 0.0.0.0:45555`, then dots_client in other terminals.
// xtask: not run

#[path = "dots/protocol.rs"]
mod protocol;
#[path = "dots/world.rs"]
mod world;

use protocol::{CHAT, DOTS, FRAME, GAME, MAP, POSITIONS, encode, table};
use rallypoint_session::{PolledServer, ServerEvent, ServerOptions};
use std::{error::Error, thread::sleep};

fn main() -> Result<(), Box<dyn Error>> {
    let listen = std::env::args().nth(1).ok_or("usage: dots_server ADDR:PORT")?.parse()?;
    let mut server = ServerOptions::new(GAME).listen(listen).channels(table()?).bind_polled()?;
    println!("listening: {}", server.local_addrs()[0]);

    let map = world::strips();
    let (mut dots, mut velocities) = world::start();
    let mut names = vec![String::new(); 256];
    loop {
        server.poll();
        while let Some(event) = server.next_event() {
            match event {
                ServerEvent::Connected(new) => {
                    let slot = new.player.index().get();
                    dots[usize::from(slot) % DOTS].player = slot;
                    say(&mut server, &format!("-- {} joined", new.username));
                    names[usize::from(slot)] = new.username;
                    // One player's failure is not the server's.
                    if let Some(error) = map.iter().find_map(|strip| server.send(new.player, MAP, strip).err()) {
                        println!("{:?}: {error}", new.player);
                    }
                }
                ServerEvent::Message { player, channel: CHAT, bytes } => {
                    let name = &names[usize::from(player.index().get())];
                    let line = format!("{name}: {:.400}", String::from_utf8_lossy(bytes));
                    say(&mut server, &line);
                }
                // The direction of a dot: -1, 0 or 1 in each dimension.
                ServerEvent::Message { player, bytes: &[x, y], .. } => {
                    let direction = [x, y].map(|byte| f32::from(byte as i8).clamp(-1.0, 1.0));
                    velocities[usize::from(player.index().get()) % DOTS] = direction.map(|d| d * 1.5);
                }
                ServerEvent::Disconnected(player, _) => {
                    let slot = usize::from(player.index().get());
                    dots[slot % DOTS].player = 255;
                    velocities[slot % DOTS] = [0.7, 0.4];
                    say(&mut server, &format!("-- {} left", names[slot]));
                }
                _ => {}
            }
        }
        world::advance(&mut dots, &mut velocities);
        // All players share one copy. One who has no room for it gets the next.
        server.broadcast(POSITIONS, encode(&dots));
        server.flush();
        sleep(FRAME);
    }
}

/// Sends a line to all players.
fn say(server: &mut PolledServer, line: &str) {
    println!("{line}");
    server.broadcast(CHAT, line.as_bytes());
}
