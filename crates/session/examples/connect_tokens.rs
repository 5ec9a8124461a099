//! Connect tokens: the account service signs what a player may do, and the game server verifies it with a key, without a call.
//!
//! `cargo run -p rallypoint-session --example connect_tokens`

use rallypoint_session::{
    Channel, ChannelIndex, ChannelMode, ChannelTable, ClientEvent, ClientOptions, ConnectToken, PolledClient,
    PolledServer, ServerEvent, ServerOptions, StaticKey, TokenIssuer,
};
use std::error::Error;
use std::time::{Duration, SystemTime};

const CHAT: ChannelIndex = ChannelIndex::new(0).unwrap();

fn main() -> Result<(), Box<dyn Error>> {
    let table = ChannelTable::new([Channel::new(ChannelMode::ReliableOrdered, 500)])?;

    // The account service has a secret key, which never leaves it. A real one reads 32 random bytes from a file.
    let account_service = TokenIssuer::from_seed([42; 32])?;

    // The game server knows the public half, and has a static key of its own, which clients pin.
    let server_key = StaticKey::from_bytes([7; 32])?;
    let pinned = server_key.public();
    let options = ServerOptions::new("duel").listen("127.0.0.1:0".parse()?).key(server_key).channels(table.clone());
    let mut server = options.tokens(account_service.public()).decides_logins().bind_polled()?;
    let addr = server.local_addrs()[0];

    // A player signs in with the account service (over HTTPS, for example) and gets a token for this server.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let token = |name: &str, expires: u64| account_service.issue(&pinned, name, expires, b"rank=7");
    // It is sent only to the server whose key is pinned.
    let connect = |name: &str, token: Option<ConnectToken>| {
        let mut options = ClientOptions::new(name, "duel").pinned(pinned).channels(table.clone());
        options.client.token = token;
        options.connect_polled(addr)
    };
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

/// Runs both until the player has been greeted or refused.
fn play(server: &mut PolledServer, client: &mut PolledClient) -> Result<String, Box<dyn Error>> {
    loop {
        server.poll();
        while let Some(event) = server.next_event() {
            // The token is valid. What it says about the player is for the game to decide on.
            if let ServerEvent::LoginRequest(request) = event {
                server.accept_login(request.new.player);
                let data = request.token.map(|token| String::from_utf8_lossy(&token.data).into_owned());
                // A player who has left is not greeted.
                server.send(request.new.player, CHAT, format!("welcome, {data:?}").as_bytes()).ok();
            }
        }
        client.poll();
        match client.next_event() {
            Some(ClientEvent::Message { bytes, .. }) => return Ok(String::from_utf8_lossy(bytes).into_owned()),
            Some(ClientEvent::LoginFailed(error)) => return Ok(error.to_string()),
            _ => client.wait(Duration::from_millis(1)),
        }
    }
}
