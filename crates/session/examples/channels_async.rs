//! Channels in an async program: a server that decides who may join, and a client that waits for the receipt of its order.
//!
//! `cargo run -p rallypoint-session --example channels_async`

use rallypoint_session::{
    AsyncChannelClient, AsyncChannelServer, Channel, ChannelIndex, ChannelMessage, ChannelMode, ChannelTable,
    ClientConfig, ClientEvent, EndpointConfig, ServerChannels, ServerEvent, ServerOptions,
};
use std::error::Error;

const ORDERS: ChannelIndex = ChannelIndex::new(0).unwrap();

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let orders = Channel { receipts: true, ..Channel::new(ChannelMode::ReliableOrdered, 10_000) };
    let table = ChannelTable::new([orders])?;
    let options = ServerOptions { listen: vec!["127.0.0.1:0".parse()?], ..EndpointConfig::for_game("market").into() };
    let channels = ServerChannels { decides_logins: true, ..table.clone().into() };
    let server = AsyncChannelServer::bind(options, channels).await?;
    let addr = server.local_addrs()[0];
    let serving = tokio::spawn(serve(server));

    // A server can refuse a player, with a reason.
    let refused = AsyncChannelClient::connect(addr, ClientConfig::new("mallory", "market"), table.clone()).await;
    println!("mallory: {}", refused.err().ok_or("mallory may not join")?);

    let client = AsyncChannelClient::connect(addr, ClientConfig::new("alice", "market"), table).await?;
    let order = client.send(ORDERS, b"two apples").await?;
    let mut message = ChannelMessage::default();
    while let Some(event) = client.next_event(&mut message).await {
        match event {
            ClientEvent::Message => println!("alice: received {:?}", String::from_utf8_lossy(&message.bytes)),
            // The server's application has read it: more than that a datagram has arrived.
            ClientEvent::Receipt(id) if id == order => break,
            _ => {}
        }
    }
    client.close().await?;
    serving.await?;
    Ok(())
}

/// Serves until the first player who has joined leaves.
async fn serve(server: AsyncChannelServer) {
    let mut message = ChannelMessage::default();
    let mut joined = None;
    loop {
        match server.next_event(&mut message).await {
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
            ServerEvent::Message(player) => {
                // A player whose queue is full holds up no other.
                if let Err(error) = server.try_send(player, ORDERS, b"thank you") {
                    println!("server: {player:?}: {error}");
                }
            }
            ServerEvent::Disconnected(player, _) if joined == Some(player) => {
                println!("server: {player:?} left");
                return;
            }
            _ => {}
        }
    }
}
