//! Connect tokens: the account service signs what a player may do, and the game server verifies it with a key, without a call.
//!
//! `cargo run -p rallypoint-session --example connect_tokens`

use rallypoint_session::{
    Channel, ChannelIndex, ChannelMessage, ChannelMode, ChannelTable, ClientChannels, ClientConfig, ClientEvent,
    ConnectToken, Encryption, EndpointConfig, PolledChannelClient, PolledChannelServer, PublicKey, ServerChannels,
    ServerEvent, ServerOptions, StaticKey, TokenIssuer,
};
use std::time::{Duration, SystemTime};
use std::{error::Error, net::SocketAddr};

const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();

fn main() -> Result<(), Box<dyn Error>> {
    let table = ChannelTable::new([Channel::new(ChannelMode::ReliableOrdered, 500)])?;

    // The account service has a secret key, which never leaves it. A real one reads 32 random bytes from a file.
    let account_service = TokenIssuer::from_seed([42; 32])?;

    // The game server knows the public half, and has a static key of its own, which clients pin.
    let server_key = StaticKey::from_bytes([7; 32])?;
    let pinned = server_key.public();
    let endpoint = EndpointConfig { static_key: Some(server_key), ..EndpointConfig::for_game("duel") };
    let options = ServerOptions { listen: vec!["127.0.0.1:0".parse()?], ..endpoint.into() };
    let channels =
        ServerChannels { token_issuer: Some(account_service.public()), decides_logins: true, ..table.clone().into() };
    let mut server = PolledChannelServer::bind(options, channels)?;
    let addr = server.local_addrs().next().ok_or("no address")?;

    // A player signs in with the account service (over HTTPS, for example) and gets a token for this server.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let token = |name: &str, expires: u64| account_service.issue(&pinned, name, expires, b"rank=7");
    let connect = |name: &str, token: Option<ConnectToken>| join(addr, name, &pinned, &table, token);
    for (name, mut client) in [
        ("alice", connect("alice", Some(token("alice", now + 60)?))?),
        ("expired", connect("expired", Some(token("expired", now - 60)?))?),
        ("mallory", connect("mallory", Some(token("alice", now + 60)?))?),
        ("nobody", connect("nobody", None)?),
    ] {
        println!("{name}: {}", play(&mut server, &mut client)?);
    }
    Ok(())
}

/// Starts to log in. A token is sent only to the server whose key is pinned.
fn join(
    addr: SocketAddr,
    name: &str,
    pinned: &PublicKey,
    table: &ChannelTable,
    token: Option<ConnectToken>,
) -> Result<PolledChannelClient, Box<dyn Error>> {
    let config = ClientConfig { encryption: Encryption::Pinned(*pinned), ..ClientConfig::new(name, "duel") };
    Ok(PolledChannelClient::connect(addr, config, ClientChannels { token, ..table.clone().into() })?)
}

/// Runs both until the player has been greeted or refused.
fn play(server: &mut PolledChannelServer, client: &mut PolledChannelClient) -> Result<String, Box<dyn Error>> {
    let mut message = ChannelMessage::default();
    loop {
        server.poll();
        while let Some(event) = server.next_event(&mut message) {
            // The token is valid. What it says about the player is for the game to decide on.
            if let ServerEvent::LoginRequest(request) = event {
                server.accept_login(request.new.player);
                let data = request.token.map(|token| String::from_utf8_lossy(&token.data).into_owned());
                // A player who has left is not greeted.
                server.send(request.new.player, CHAT, format!("welcome, {data:?}").as_bytes()).ok();
            }
        }
        client.poll();
        match client.next_event(&mut message) {
            Some(ClientEvent::Message) => return Ok(String::from_utf8_lossy(&message.bytes).into_owned()),
            Some(ClientEvent::LoginFailed(error)) => return Ok(error.to_string()),
            _ => client.wait(Duration::from_millis(1)),
        }
    }
}
