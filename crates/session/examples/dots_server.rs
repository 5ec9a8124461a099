//! Thirty dots that move; every player steers one of them. Positions are sequenced, chat is reliable, the map is bulk.
//!
//! `cargo run -p rallypoint-session --example dots_server 0.0.0.0:45555 [MAP]`, then dots_client in other terminals.
// xtask: not run

#[path = "dots/protocol.rs"]
mod protocol;

use protocol::{CHAT, DOTS, Dot, FRAME, GAME, MAP, POSITIONS, encode, start_positions, table};
use rallypoint_session::{ChannelMessage, EndpointConfig, PolledChannelServer, ServerEvent, ServerOptions};
use std::{error::Error, thread::sleep};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let listen = vec![args.next().ok_or("usage: dots_server ADDR:PORT [MAP]")?.parse()?];
    let map = args.next().map_or(Ok(include_str!("dots/map.txt").to_owned()), std::fs::read_to_string)?;
    let walls: Vec<&[u8]> = map.lines().map(str::as_bytes).collect();
    let mut server =
        PolledChannelServer::bind(ServerOptions { listen, ..EndpointConfig::for_game(GAME).into() }, table()?)?;
    println!("listening: {}", server.local_addrs().next().ok_or("no address")?);

    let mut dots = start_positions(&map);
    let mut velocities: Vec<[f32; 2]> =
        (0..DOTS).map(|n| [(n as f32 * 1.7).sin() * 0.5, (n as f32 * 2.9).cos() * 0.25]).collect();
    let mut names = vec![String::new(); 256];
    let mut message = ChannelMessage::default();
    loop {
        server.poll();
        while let Some(event) = server.next_event(&mut message) {
            match event {
                ServerEvent::Connected(new) => {
                    let slot = new.player.index().get();
                    dots[usize::from(slot) % DOTS].player = slot;
                    say(&mut server, &format!("-- {} joined", new.username));
                    names[usize::from(slot)] = new.username;
                    // One player's failure is not the server's.
                    if let Err(error) = server.send(new.player, MAP, map.as_bytes()) {
                        println!("{:?}: {error}", new.player);
                    }
                }
                ServerEvent::Message(player) if message.channel == CHAT => {
                    let name = &names[usize::from(player.index().get())];
                    say(&mut server, &format!("{name}: {:.400}", String::from_utf8_lossy(&message.bytes)));
                }
                // The direction of a dot: -1, 0 or 1 in each dimension.
                ServerEvent::Message(player) if message.bytes.len() == 2 => {
                    let direction =
                        [message.bytes[0], message.bytes[1]].map(|byte| f32::from(byte as i8).clamp(-1.0, 1.0));
                    velocities[usize::from(player.index().get()) % DOTS] = [direction[0] * 0.6, direction[1] * 0.3];
                }
                ServerEvent::Disconnected(player, _) => {
                    let slot = usize::from(player.index().get());
                    dots[slot % DOTS].player = 255;
                    velocities[slot % DOTS] = [0.4, 0.2];
                    say(&mut server, &format!("-- {} left", names[slot]));
                }
                _ => {}
            }
        }
        for (dot, velocity) in dots.iter_mut().zip(&mut velocities) {
            let is_wall = |x: f32, y: f32| walls.get(y as usize).and_then(|row| row.get(x as usize)) != Some(&b' ');
            velocity[0] *= if is_wall(dot.x + velocity[0], dot.y) { -1.0 } else { 1.0 };
            velocity[1] *= if is_wall(dot.x, dot.y + velocity[1]) { -1.0 } else { 1.0 };
            if !is_wall(dot.x + velocity[0], dot.y + velocity[1]) {
                *dot = Dot { x: dot.x + velocity[0], y: dot.y + velocity[1], ..*dot };
            }
        }
        // All players share one copy. One who has no room for it gets the next.
        server.broadcast(POSITIONS, encode(&dots), |_, _| {});
        server.flush();
        sleep(FRAME);
    }
}

/// Sends a line to all players.
fn say(server: &mut PolledChannelServer, line: &str) {
    println!("{line}");
    server.broadcast(CHAT, line.as_bytes(), |player, error| println!("{player:?}: {error}"));
}
