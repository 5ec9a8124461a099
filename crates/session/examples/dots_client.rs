//! The terminal client of the dots: arrows steer, lines are chat, Esc leaves. Keys before the login are ignored.
//!
//! `cargo run -p rallypoint-session --example dots_client 127.0.0.1:45555 alice`
//!
//! Without a terminal it says hello, and ends when it has the map, a second of positions, and its own line.
// xtask: not run

#[path = "dots/protocol.rs"]
mod protocol;
#[path = "dots/screen.rs"]
mod screen;

use protocol::{CHAT, DOTS, FRAME, GAME, MAP, POSITIONS, decode, table};
use rallypoint_session::{ChannelMessage, ClientConfig, ClientEvent, PolledChannelClient};
use screen::{Key, Screen};
use std::{
    error::Error,
    io::{IsTerminal, stdout},
    time::Instant,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let server = args.next().ok_or("usage: dots_client HOST:PORT [NAME]")?;
    let name = args.next().unwrap_or_else(|| "guest".into());
    let start = Instant::now();
    let mut client = PolledChannelClient::connect(server, ClientConfig::new(&name, GAME), table()?)?;
    let is_terminal = stdout().is_terminal();
    let mut screen = if is_terminal { Screen::open()? } else { Screen::default() };
    let mut message = ChannelMessage::default();
    let mut dots = Vec::new();
    let mut frames = 0u32;
    let mut map_status = "waiting for the map".to_owned();
    loop {
        client.poll();
        while let Some(event) = client.next_event(&mut message) {
            match event {
                ClientEvent::Connected => drop(client.send(CHAT, b"hello")),
                ClientEvent::Message if message.channel == POSITIONS => {
                    dots = decode(&message.bytes);
                    frames += 1;
                }
                // Whatever comes from the network is shown without control characters.
                ClientEvent::Message if message.channel == CHAT => {
                    let line = String::from_utf8_lossy(&message.bytes);
                    screen.chat.push(line.chars().filter(|c| !c.is_control()).collect());
                }
                ClientEvent::Message if message.channel == MAP => {
                    screen.map = String::from_utf8_lossy(&message.bytes).lines().map(str::to_owned).collect();
                    map_status = format!("map: {} bytes after {:.1?}", message.bytes.len(), start.elapsed());
                }
                ClientEvent::Disconnected(reason) => return Err(reason.into()),
                ClientEvent::LoginFailed(error) => return Err(error.into()),
                _ => {}
            }
        }
        while let Some(key) = if is_terminal { screen.key()? } else { None } {
            match key {
                Key::Direction(direction) => drop(client.send(POSITIONS, &direction.map(|d| d as u8))),
                Key::Line(line) => drop(client.send(CHAT, line.as_bytes())),
                Key::Quit => client.close(),
            }
        }
        client.flush();
        let rtt = client.stats().and_then(|stats| stats.rtt).unwrap_or_default();
        let status =
            format!("{name} · {DOTS} dots · {frames} frames · round trip {rtt:.1?} · {map_status} · Esc leaves");
        let is_greeted = screen.chat.iter().any(|line| *line == format!("{name}: hello"));
        if client.is_closed() || (!is_terminal && frames >= 30 && is_greeted && !screen.map.is_empty()) {
            drop(screen);
            println!("{status}");
            return Ok(());
        }
        if is_terminal {
            screen.draw(&dots, &status)?;
        }
        client.wait(FRAME);
    }
}
