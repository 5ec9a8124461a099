//! A game without async: a server and a client in one loop, each polled once per frame, on a bad network.
//!
//! The player moves in a circle and tells the server where it is; the server tells it back. In a real game the two run in
//! programs of their own, and each loop has one half of this one.
//!
//! `cargo run -p rallypoint-session --example game_loop`

use rallypoint_session::{
    ClientConfig, ClientEvent, ClientOptions, EndpointConfig, LinkConditions, NewPlayer, PolledClient, PolledServer,
    ServerEvent, ServerOptions,
};
use std::{error::Error, thread::sleep, time::Duration};

const FRAME: Duration = Duration::from_millis(16);

fn main() -> Result<(), Box<dyn Error>> {
    let config = EndpointConfig::for_game("circle");
    let mut server = PolledServer::bind(ServerOptions { listen: vec!["127.0.0.1:0".parse()?], ..config.into() })?;
    let addr = server.local_addrs().next().ok_or("no address")?;

    // What the players' networks are like, for trying the game out.
    let bad = LinkConditions { loss: 0.05, delay: Duration::from_millis(20), seed: 1, ..LinkConditions::default() };
    let config = ClientConfig::new("alice", "circle");
    let mut client = PolledClient::connect(addr, ClientOptions { link_conditions: Some(bad), ..config.into() })?;

    let (mut message, mut seen, mut angle) = (Vec::new(), 0, 0.0f32);
    while seen < 120 {
        // The server's frame: take what came, let the game go on, send.
        server.poll();
        while let Some(event) = server.next_event(&mut message) {
            match event {
                ServerEvent::Connected(NewPlayer { username, .. }) => println!("{username:?} has joined"),
                ServerEvent::Message(player) => server.send(player, &message)?,
                _ => {}
            }
        }
        server.flush();

        // The client's frame.
        client.poll();
        while let Some(event) = client.next_event(&mut message) {
            match event {
                ClientEvent::Message => seen += 1,
                ClientEvent::Disconnected(reason) => return Err(reason.into()),
                ClientEvent::LoginFailed(error) => return Err(error.into()),
                _ => {}
            }
        }
        if client.is_connected() {
            angle += 0.05;
            let position = [angle.sin(), angle.cos()].map(f32::to_le_bytes);
            client.send(position.as_flattened())?;
        }
        client.flush();
        sleep(FRAME);
    }

    let stats = client.stats().ok_or("not connected")?;
    println!("{seen} positions came back; round trip {:.0?}, {} messages sent again", stats.rtt, stats.resends);
    client.close();
    while !client.is_closed() {
        client.poll();
        server.poll();
        client.wait(FRAME);
    }
    Ok(())
}
