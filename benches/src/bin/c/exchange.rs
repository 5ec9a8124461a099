//! Messages there and back through the Rust API, in one thread. The same loop as in exchange.c.

use rallypoint_session::{
    ClientConfig, ClientEvent, Encryption, EndpointConfig, PlayerId, PolledClient, PolledServer, ServerEvent,
    ServerOptions,
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
    for _ in 0..iterations {
        exchange(&mut client, &mut server, &mut buffer)?;
    }
    Ok(())
}

fn exchange(client: &mut PolledClient, server: &mut PolledServer, buffer: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
    let message = [7; 64];
    client.send(&message)?;
    let player = loop {
        // A sender may have to wait before it sends.
        client.poll();
        server.poll();
        if let Some(player) = sender(server, buffer) {
            break player;
        }
    };
    server.send(player, &message)?;
    loop {
        server.poll();
        client.poll();
        let mut has_message = false;
        while let Some(event) = client.next_event(buffer) {
            has_message |= event == ClientEvent::Message;
        }
        if has_message {
            return Ok(());
        }
    }
}

/// Takes all events; returns who sent a message.
fn sender(server: &mut PolledServer, buffer: &mut Vec<u8>) -> Option<PlayerId> {
    let mut sender = None;
    while let Some(event) = server.next_event(buffer) {
        if let ServerEvent::Message(player) = event {
            sender = Some(player);
        }
    }
    sender
}
