//! A server that sends every message back to the player who sent it. Logins may be plain or encrypted.
//!
//! `cargo run -p rallypoint-session --example echo_server 127.0.0.1:45555`
// xtask: not run

use rallypoint_session::{DriverPanicked, PlayerId, Server, ServerInfo, generate_static_key};
use std::{error::Error, sync::Arc};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listen = std::env::args().nth(1).ok_or("usage: echo_server ADDR:PORT")?.parse()?;

    // Clients that pin the public key accept no other server. A real server keeps its key in a file.
    let key = generate_static_key()?;
    println!("key: {}", key.public());

    let mut options = Server::builder("echo").listen(listen).key(key).max_players(255);
    options.endpoint.max_per_address = 255;
    let server = options.bind().await?;
    println!("listening: {}", server.local_addrs()[0]);

    // The description in a server browser.
    server.set_info(&ServerInfo {
        name: Some("Echo".into()),
        game: Some("echo".into()),
        max_players: Some(255),
        ..ServerInfo::default()
    });

    // Each player has a task of its own, so that one who reads nothing holds up no other.
    let server = Arc::new(server);
    loop {
        let new = server.accept().await?;
        println!("{:?} connected: {:?}", new.player, new.username);
        tokio::spawn(echo(server.clone(), new.player));
    }
}

/// Serves one player until its session ends.
async fn echo(server: Arc<Server>, player: PlayerId) -> Result<(), DriverPanicked> {
    let mut buffer = Vec::new();
    while let Some((channel, message)) = server.recv(player, &mut buffer).await? {
        // Waits while the player's window is full, for `send_timeout` at most.
        if let Err(error) = server.send(player, channel, message).await {
            println!("{player:?}: cannot reply: {error}");
            server.disconnect(player, "too slow");
        }
    }
    println!("{player:?} left");
    Ok(())
}
