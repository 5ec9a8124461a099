//! A game with channels and without async: a server and a client in one loop, each polled once per frame, on a bad network.
//!
//! The player sends positions, of which only the newest counts, and chats; meanwhile it downloads the map of the server. In a
//! real game, server and client are separate programs, and each has one half of this loop.
//!
//! `cargo run -p rallypoint-session --example channels_game_loop`

use rallypoint_session::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, ClientEvent, ClientOptions, LinkConditions, ServerEvent,
    ServerOptions,
};
use std::{error::Error, thread::sleep, time::Duration};

const FRAME: Duration = Duration::from_millis(16);
const POSITIONS: ChannelIndex = ChannelIndex::new(0).unwrap();
const CHAT: ChannelIndex = ChannelIndex::new(1).unwrap();
const MAP: ChannelIndex = ChannelIndex::new(2).unwrap();

fn main() -> Result<(), Box<dyn Error>> {
    // Both sides need the same table: otherwise the login fails with a reason.
    let table = ChannelTable::new([
        Channel::new(ChannelMode::Sequenced, 100),
        Channel::new(ChannelMode::ReliableOrdered, 1_000),
        Channel { priority: 2, max_to_server: 0, ..Channel::new(ChannelMode::ReliableUnordered, 1_000_000) },
    ])?;
    let mut server =
        ServerOptions::new("circle").listen("127.0.0.1:0".parse()?).channels(table.clone()).bind_polled()?;
    let network = LinkConditions { loss: 0.02, delay: Duration::from_millis(20), seed: 1, ..LinkConditions::default() };
    let mut options = ClientOptions::new("alice", "circle").channels(table);
    options.link_conditions = Some(network);
    let mut client = options.connect_polled(server.local_addrs()[0])?;

    let mut positions = 0;
    let mut map = 0;
    let mut chat = 0;
    while positions < 60 || map == 0 || chat == 0 {
        // The server's frame: receive, update the game, send.
        server.poll();
        while let Some(event) = server.next_event() {
            match event {
                ServerEvent::Connected(new) => {
                    println!("{:?} connected", new.username);
                    if let Err(error) = server.send(new.player, MAP, &[7; 50_000]) {
                        println!("{}: {error}", new.username); // the others play on
                    }
                }
                // All players get it, in the channel on which it was sent, and share one copy of it.
                ServerEvent::Message { channel, bytes, .. } => {
                    let message = bytes.to_vec();
                    server.broadcast(channel, message);
                }
                _ => {}
            }
        }
        server.flush();

        // The client's frame.
        client.poll();
        while let Some(event) = client.next_event() {
            match event {
                ClientEvent::Connected => drop(client.send(CHAT, b"hello")),
                ClientEvent::Message { channel: POSITIONS, .. } => positions += 1,
                ClientEvent::Message { channel: MAP, bytes } => map = bytes.len(),
                ClientEvent::Message { .. } => chat += 1,
                ClientEvent::Disconnected(reason) => return Err(reason.into()),
                ClientEvent::LoginFailed(error) => return Err(error.into()),
                _ => {}
            }
        }
        if client.is_connected() {
            let _ = client.send(POSITIONS, &(positions as f32).to_le_bytes()); // skipped if there is no room
        }
        client.flush();
        sleep(FRAME);
    }
    println!("received {positions} positions, {chat} line, and a map of {map} bytes");
    Ok(())
}
