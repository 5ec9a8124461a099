//! The terminal client of the dots: arrows steer, lines are chat, Esc leaves. Keys before the login are ignored.
//!
//! `cargo run -p rallypoint-session --example dots_client 127.0.0.1:45555 alice`
//!
//! Without a terminal it says hello, and ends when it has the map, a second of positions, and its own line.
// xtask: not run

#[path = "dots/canvas.rs"]
mod canvas;
#[path = "dots/protocol.rs"]
mod protocol;
#[path = "dots/screen.rs"]
mod screen;

use canvas::Canvas;
use protocol::{CHAT, DOTS, FRAME, GAME, MAP, MAP_BYTES, POSITIONS, decode, table};
use rallypoint_session::{ClientEvent, ClientOptions};
use screen::{Key, Screen};
use std::io::{IsTerminal, stdout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let server = args.next().ok_or("usage: dots_client HOST:PORT [NAME]")?;
    let name = args.next().unwrap_or_else(|| "guest".into());
    let mut client = ClientOptions::new(&name, GAME).channels(table()?).connect_polled(server)?;
    let screen = if stdout().is_terminal() { Some(Screen::open()?) } else { None };
    let mut canvas = Canvas::new();
    let mut dots = Vec::new();
    let mut frames = 0u32;
    loop {
        client.poll();
        while let Some(event) = client.next_event() {
            match event {
                ClientEvent::Connected => drop(client.send(CHAT, b"hello")),
                ClientEvent::Message { channel: POSITIONS, bytes } => {
                    dots = decode(bytes);
                    frames += 1;
                }
                // Whatever comes from the network is shown without control characters.
                ClientEvent::Message { channel: CHAT, bytes } => {
                    let line = String::from_utf8_lossy(bytes);
                    canvas.chat.push(line.chars().filter(|c| !c.is_control()).collect());
                }
                ClientEvent::Message { channel: MAP, bytes } => canvas.add_strip(bytes),
                ClientEvent::Disconnected(reason) => return Err(reason.into()),
                ClientEvent::LoginFailed(error) => return Err(error.into()),
                _ => {}
            }
        }
        while let Some(key) = screen.as_ref().map_or(Ok(None), |screen| screen.key(&mut canvas.input))? {
            match key {
                Key::Direction(direction) => drop(client.send(POSITIONS, &direction.map(|d| d as u8))),
                Key::Line(line) => drop(client.send(CHAT, line.as_bytes())),
                Key::Quit => client.close(),
            }
        }
        client.flush();
        let rtt = client.stats().and_then(|stats| stats.rtt).unwrap_or_default();
        let loss = client.stats().map_or(0.0, |stats| stats.loss) * 100.0;
        let map = format!("map {} of {MAP_BYTES} bytes", canvas.map_bytes);
        let status =
            format!("{name} · {DOTS} dots · {frames} frames · {rtt:.1?} · {loss:.0} % lost · {map} · Esc leaves");
        let is_greeted = canvas.chat.iter().any(|line| *line == format!("{name}: hello"));
        let is_complete = frames >= 30 && is_greeted && canvas.map_bytes == MAP_BYTES;
        if client.is_closed() || (screen.is_none() && is_complete) {
            drop(screen);
            println!("{status}");
            return Ok(());
        }
        if let Some(screen) = &screen {
            screen.draw(&canvas, &dots, &status)?;
        }
        client.wait(FRAME);
    }
}
