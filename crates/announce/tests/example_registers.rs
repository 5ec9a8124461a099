//! The example registers with a lobby, sends the players that join, and unregisters at its end.

use rallypoint_wire::lobby::Datagram;
use std::{
    io::Write,
    net::UdpSocket,
    process::{Command, Stdio},
    time::Duration,
};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/register_game.rs");

#[test]
fn the_example_is_at_most_twelve_lines_long() {
    let text = std::fs::read_to_string(EXAMPLE).unwrap();
    let body = text.split("fn main()").nth(1).unwrap();
    // Without the signature and the closing brace.
    assert!(body.lines().count() - 2 <= 12, "{body}");
}

#[test]
fn the_example_registers_updates_and_unregisters() {
    let lobby = UdpSocket::bind("127.0.0.1:0").unwrap();
    lobby.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // Cargo has built it beside this test.
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples");
    let mut game = Command::new(folder.join("register_game"))
        .arg(lobby.local_addr().unwrap().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut buffer = [0; 4_096];
    let mut input = game.stdin.take().unwrap();

    let mut received = Vec::new();
    for line in ["", "alice\n"] {
        input.write_all(line.as_bytes()).unwrap();
        let (length, _) = lobby.recv_from(&mut buffer).unwrap();
        let Ok(Datagram::Register(registration)) = Datagram::parse(&buffer[..length]) else {
            panic!("not a registration")
        };
        assert_eq!(registration.name(), b"Bacon Town 24/7");
        received.push(registration.occupancy().players);
    }
    assert_eq!(received, [0, 1]);

    drop(input);
    for _ in 0..2 {
        let (length, _) = lobby.recv_from(&mut buffer).unwrap();
        assert!(matches!(Datagram::parse(&buffer[..length]), Ok(Datagram::Unregister(_))));
    }
    assert!(game.wait().unwrap().success());
}
