//! Channels in an async program: a server that decides who may join, and a client that waits for the receipt of its order.
//!
//! `cargo run -p rallypoint-session --example channels_async`

use rallypoint_session::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, ClientEvent, ClientOptions, DriverPanicked, Server, ServerEvent,
};
use std::error::Error;

const ORDERS: ChannelIndex = ChannelIndex::new(0).unwrap();

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let orders = Channel { receipts: true, ..Channel::new(ChannelMode::ReliableOrdered, 10_000) };
    let table = ChannelTable::new([orders])?;
    let options = Server::builder("market").listen("127.0.0.1:0".parse()?).channels(table.clone());
    let server = options.decides_logins().bind().await?;
    let addr = server.local_addrs()[0];
    let serving = tokio::spawn(serve(server));

    // A server can refuse a player, with a reason.
    let refused = ClientOptions::new("mallory", "market").channels(table.clone()).connect(addr).await;
    println!("mallory: {}", refused.err().ok_or("mallory may not join")?);

    let client = ClientOptions::new("alice", "market").channels(table).connect(addr).await?;
    let order = client.send(ORDERS, b"two apples").await?;
    let mut buffer = Vec::new();
    while let Some(event) = client.next_event(&mut buffer).await {
        match event {
            ClientEvent::Message { bytes, .. } => println!("alice: received {:?}", String::from_utf8_lossy(bytes)),
            // The server's application has read it: more than that a datagram has arrived.
            ClientEvent::Receipt(id) if id == order => break,
            _ => {}
        }
    }
    client.close().await?;
    serving.await??;
    Ok(())
}

/// Serves until the first player who has joined leaves.
async fn serve(server: Server) -> Result<(), DriverPanicked> {
    let mut buffer = Vec::new();
    let mut joined = None;
    loop {
        match server.next_event(&mut buffer).await? {
            ServerEvent::LoginRequest(request) if request.new.username == "alice" => {
                server.accept_login(request.new.player);
            }
            ServerEvent::LoginRequest(request) => {
                server.disconnect(request.new.player, "you are not on the list");
            }
            ServerEvent::Connected(new) => {
                println!("server: {:?} joined", new.username);
                joined = Some(new.player);
            }
            ServerEvent::Message { player, .. } => {
                // A player whose queue is full holds up no other.
                if let Err(error) = server.try_send(player, ORDERS, b"thank you") {
                    println!("server: {player:?}: {error}");
                }
            }
            ServerEvent::Disconnected(player, _) if joined == Some(player) => {
                println!("server: {player:?} left");
                return Ok(());
            }
            _ => {}
        }
    }
}
