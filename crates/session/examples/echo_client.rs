//! Sends lines to an echo server and prints the replies with their round-trip times.
//!
//! `cargo run -p rallypoint-session --example echo_client 127.0.0.1:45555 [KEY] < some.txt`
// xtask: not run

use rallypoint_session::{ClientConfig, Encryption, SessionClient};
use std::{error::Error, io::stdin, time::Instant};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let server = args.next().ok_or("usage: echo_client HOST:PORT [KEY]")?;

    // With the server's key, no other server is accepted. Without it, the messages are encrypted all the same.
    let encryption = match args.next() {
        Some(key) => Encryption::Pinned(key.parse()?),
        None => Encryption::Encrypted,
    };
    let config = ClientConfig { encryption, ..ClientConfig::new("echo client", "echo") };
    let client = SessionClient::connect(server, config).await?;

    for line in stdin().lines() {
        let line = line?;
        if line.is_empty() {
            continue;
        }
        let sent = Instant::now();
        client.send(line.as_bytes()).await?;
        let reply = client.recv().await?;
        println!("{:?} after {:.1?}", String::from_utf8_lossy(&reply), sent.elapsed());
    }

    if let Some(stats) = client.stats() {
        println!("{} messages, {} resends, round trip {:.1?}", stats.messages_sent, stats.resends, stats.rtt);
    }
    client.close().await?;
    Ok(())
}
