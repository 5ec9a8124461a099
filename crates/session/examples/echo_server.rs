//! A server that sends every message back to the player who sent it. Logins may be plain or encrypted.
//!
//! `cargo run -p rallypoint-session --example echo_server 127.0.0.1:45555`
// xtask: not run

use rallypoint_session::{EndpointConfig, ServerEvent, ServerInfo, ServerOptions, SessionServer, generate_static_key};
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listen = std::env::args().nth(1).ok_or("usage: echo_server ADDR:PORT")?.parse()?;

    // Clients that pin the public key accept no other server. A real server keeps its key in a file.
    let key = generate_static_key()?;
    println!("key: {}", key.public());

    let config = EndpointConfig {
        static_key: Some(key),
        max_players: 255,
        max_per_address: 255,
        ..EndpointConfig::for_game("echo")
    };
    let server = SessionServer::bind(ServerOptions { listen: vec![listen], ..config.into() }).await?;
    println!("listening: {}", server.local_addrs()[0]);

    // What a server browser shows.
    server.set_info(&ServerInfo {
        name: Some("Echo".into()),
        game: Some("echo".into()),
        max_players: Some(255),
        ..ServerInfo::default()
    });

    let mut message = Vec::new();
    loop {
        match server.next_event(&mut message).await {
            ServerEvent::Connected(new) => println!("{:?} connected: {:?}", new.player, new.username),
            ServerEvent::Message(player) => {
                // Waits while the player's window is full. The player may have left in the meantime.
                if let Err(error) = server.send(player, &message).await {
                    println!("{player:?}: cannot reply: {error}");
                }
            }
            ServerEvent::Disconnected(player, reason) => println!("{player:?} left: {:?}", reason.to_string()),
            _ => {}
        }
    }
}
