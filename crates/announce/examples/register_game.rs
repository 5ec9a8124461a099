//! A game that registers itself with a lobby: `cargo run --example register_game -- lobby.example.org`.

use rallypoint_announce::{AnnounceConfig, AnnounceThread, Occupancy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lobby = std::env::args().nth(1).unwrap_or_else(|| "localhost".into());
    let mut config = AnnounceConfig::new("Bacon Town 24/7", 8190.try_into()?);
    config.lobbies.push(lobby.parse()?);
    let announce = AnnounceThread::start(config)?;
    for (players, name) in (1..).zip(std::io::stdin().lines()) {
        println!("{} joins", name?);
        announce.set_occupancy(Occupancy { slots: 24, players, ..Occupancy::default() });
    }
    announce.stop();
    Ok(())
}
