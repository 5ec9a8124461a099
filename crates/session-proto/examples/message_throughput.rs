//! Measures how many messages per second the two state machines handle on one core, without a network between them.
//!
//! `cargo run --release -p rallypoint-session-proto --example message_throughput`

use rallypoint_machine::{Machine, Transmit};
use rallypoint_session_proto::{
    Client, ClientConfig, ConnectionStats, Encryption, Endpoint, EndpointConfig, ONLY_CHANNEL,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (encryption, size) in [(Encryption::Plain, 400), (Encryption::Encrypted, 400), (Encryption::Plain, 32)] {
        let name = format!("{encryption:?}, {size} bytes");
        let (wall, stats) = run(encryption, size, 400_000)?;
        let rate = stats.messages_sent as f64 / wall.as_secs_f64() / 1e6;
        println!("{name}: {rate:.2} million messages per second, {} resends", stats.resends);
    }
    Ok(())
}

fn run(
    encryption: Encryption,
    size: usize,
    count: u64,
) -> Result<(Duration, ConnectionStats), Box<dyn std::error::Error>> {
    let server_addr: SocketAddr = "10.0.0.1:45555".parse()?;
    let client_addr: SocketAddr = "10.0.0.2:1000".parse()?;
    let mut now = Instant::now();
    let mut server = Endpoint::new(EndpointConfig::for_game("bench"), [1; 32])?;
    let config = ClientConfig { encryption, ..ClientConfig::new("bench", "bench") };
    let mut client = Client::new(now, server_addr, config, [2; 32])?;
    let mut out = Vec::with_capacity(65_536);
    let message = vec![7; size];
    let mut sent = 0;
    let mut received = 0;
    let start = Instant::now();
    while received < count {
        let player = server.players().next();
        while sent < count && player.is_some_and(|player| server.send(now, player, ONLY_CHANNEL, &message).is_ok()) {
            sent += 1;
        }
        while let Some(transmit) = server.poll_transmit(now, &mut out) {
            deliver(&mut client, now, server_addr, transmit, &mut out);
        }
        while client.recv().is_some() {
            received += 1;
        }
        // The clock of the state machines is virtual.
        now += Duration::from_micros(200);
        while let Some(transmit) = client.poll_transmit(now, &mut out) {
            deliver(&mut server, now, client_addr, transmit, &mut out);
        }
        while client.poll_event().is_some() || server.poll_event().is_some() {}
        client.handle_timeout(now);
        server.handle_timeout(now);
    }
    let stats = server.players().next().and_then(|player| server.connection(player)).ok_or("no player")?.stats();
    Ok((start.elapsed(), stats))
}

fn deliver(to: &mut impl Machine, now: Instant, from: SocketAddr, transmit: Transmit, out: &mut Vec<u8>) {
    transmit.datagrams(out).for_each(|datagram| to.handle_datagram(now, from, datagram));
    out.clear();
}
