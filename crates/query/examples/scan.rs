//! Scans lobbies and servers, and prints name, players and ping: `cargo run -p rallypoint-query --example scan -- lobby://localhost`
use rallypoint_query::{ScanConfig, ScanEvent, Scanner, Target};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let targets: Vec<Target> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let mut scanner = Scanner::new(ScanConfig::default(), targets)?;
    let print = |event| {
        if let ScanEvent::Answered(server) = event {
            println!(
                "{}  {} players  {} ms",
                server.name(),
                server.info.players.unwrap_or(0),
                server.ping_ms().unwrap_or(0.0)
            );
        }
    };
    scanner.scan(print).await;
    Ok(())
}
