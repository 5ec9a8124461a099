//! Sends lines to an echo server and prints the replies with their round-trip times.
//!
//! `cargo run -p rallypoint-session --example echo_client 127.0.0.1:45555 [KEY] < some.txt`
// xtask: not run

use rallypoint_session::{ClientOptions, ONLY_CHANNEL};
use std::{error::Error, io::stdin, time::Instant};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let server = args.next().ok_or("usage: echo_client HOST:PORT [KEY]")?;

    // With the server's key, no other server is accepted. Without it, the messages are encrypted all the same.
    let mut options = ClientOptions::new("echo client", "echo");
    if let Some(key) = args.next() {
        options = options.pinned(key.parse()?);
    }
    let client = options.connect(server).await?;

    let mut buffer = Vec::new();
    for line in stdin().lines() {
        let line = line?;
        if line.is_empty() {
            continue;
        }
        let sent = Instant::now();
        client.send(ONLY_CHANNEL, line.as_bytes()).await?;
        let (_, reply) = client.recv(&mut buffer).await?;
        println!("{:?} after {:.1?}", String::from_utf8_lossy(reply), sent.elapsed());
    }

    if let Some(stats) = client.stats() {
        println!("{} messages, {} resends, round trip {:.1?}", stats.messages_sent, stats.resends, stats.rtt);
    }
    client.close().await?;
    Ok(())
}
