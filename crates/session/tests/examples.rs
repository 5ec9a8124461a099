//! The examples are short enough to read at a glance, and work together.

use crate::common;

use common::until;
use rallypoint_session::{ClientEvent, ClientOptions, Encryption, ONLY_CHANNEL, PolledClient};
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, UdpSocket},
    process::{Child, Command, Stdio},
};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/");

#[test]
fn each_file_of_an_example_has_fewer_than_80_lines() {
    let mut count = 0;
    for folder in [EXAMPLES.to_owned(), format!("{EXAMPLES}dots")] {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        for file in files.filter(|file| file.is_file()) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.lines().count() < 80, "{file:?}");
            count += 1;
        }
    }
    assert!(count >= 12, "{count} files");
}

/// The executable of an example, which Cargo has built beside this test.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples");
    Command::new(folder.join(name))
}

#[test]
fn the_examples_with_channels_end_by_themselves() {
    for (name, expected) in [
        ("channels_game_loop", " positions, 1 line, and a map of 50000 bytes"),
        ("channels_async", "alice: received \"thank you\""),
        (
            "connect_tokens",
            "alice: welcome, Some(\"rank=7\")\nexpired: the server refused the login: the connect token has expired",
        ),
        (
            "connect_tokens",
            "mallory: the server refused the login: the connect token is not valid for this server and username",
        ),
        ("connect_tokens", "nobody: the server refused the login: this server requires a connect token"),
    ] {
        let output = example(name).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(expected), "{name}: {text}");
    }
}

#[test]
fn players_of_the_dots_receive_positions_chat_and_the_map() {
    let mut server = example("dots_server").arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let addr = lines.next().unwrap().strip_prefix("listening: ").unwrap().to_owned();
    let reader = std::thread::spawn(move || lines.collect::<Vec<_>>());
    let clients = ["alice", "bob"].map(|name| {
        let client = example("dots_client").args([&*addr, name]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        (name, client.unwrap())
    });
    for (name, client) in clients {
        let output = client.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{name}: {text}");
        assert!(text.contains("30 dots") && text.contains("map 115200 of 115200 bytes"), "{name}: {text}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
    let lines = reader.join().unwrap();
    assert!(lines.iter().any(|line| line == "alice: hello") && lines.iter().any(|line| line == "-- bob joined"));
}

/// A running echo server, with its key and address.
struct EchoServer {
    process: Child,
    key: String,
    addr: String,
}

impl EchoServer {
    fn start() -> Self {
        let mut process = example("echo_server").arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let key = lines.next().unwrap().strip_prefix("key: ").unwrap().to_owned();
        let addr = lines.next().unwrap().strip_prefix("listening: ").unwrap().to_owned();
        // Its output is read until it ends.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, key, addr }
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_echo_client_receives_its_lines_from_the_echo_server() {
    let server = EchoServer::start();
    assert_eq!(server.key.len(), 64);
    for args in [&[&*server.addr][..], &[&server.addr, &server.key]] {
        let mut client =
            example("echo_client").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        client.stdin.take().unwrap().write_all(b"hello\nworld\n").unwrap();
        let output = client.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        assert!(text.starts_with("\"hello\" after ") && text.contains("\n\"world\" after "), "{text}");
    }
}

/// Connects to the echo server; `forward` is called again and again meanwhile.
fn connect(addr: SocketAddr, mut forward: impl FnMut()) -> PolledClient {
    let options = ClientOptions::new("alice", "echo").encryption(Encryption::Plain);
    let mut client = PolledClient::connect(addr, options).unwrap();
    until("the client is connected", || {
        client.poll();
        forward();
        client.next_event() == Some(ClientEvent::Connected)
    });
    client
}

/// A network between a client and the server in which the client's acks are lost.
struct WithoutAcks {
    to_client: UdpSocket,
    to_server: UdpSocket,
    client: Option<SocketAddr>,
}

impl WithoutAcks {
    fn new(server: SocketAddr) -> Self {
        let [to_client, to_server] = [(); 2].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        });
        to_server.connect(server).unwrap();
        Self { to_client, to_server, client: None }
    }

    /// Forwards everything that has arrived. What a socket does not take is lost.
    fn forward(&mut self) {
        let mut datagram = [0; 600];
        while let Ok((length, from)) = self.to_client.recv_from(&mut datagram) {
            self.client = Some(from);
            if datagram[0] != 0xff {
                let _ = self.to_server.send(&datagram[..length]);
            }
        }
        while let Ok(length) = self.to_server.recv(&mut datagram) {
            if let Some(client) = self.client {
                let _ = self.to_client.send_to(&datagram[..length], client);
            }
        }
    }
}

#[test]
fn w52_a_player_that_acknowledges_nothing_does_not_stop_the_echo_server() {
    let server = EchoServer::start();
    let addr = server.addr.parse().unwrap();
    let mut network = WithoutAcks::new(addr);
    let mut hostile = connect(network.to_client.local_addr().unwrap(), || network.forward());
    // The replies fill the window of its session: 4,096 messages.
    let mut sent = 0;
    until("the hostile player has sent more than its window", || {
        hostile.poll();
        while hostile.next_event().is_some() {}
        while sent < 6_000 && hostile.send(ONLY_CHANNEL, &[7; 100]).is_ok() {
            sent += 1;
        }
        hostile.flush();
        network.forward();
        sent == 6_000
    });
    let mut honest = connect(addr, || {});
    for number in 0..100u32 {
        honest.send(ONLY_CHANNEL, &number.to_le_bytes()).unwrap();
        let bytes = number.to_le_bytes();
        let mut received = false;
        until("the message is sent back", || {
            hostile.poll();
            network.forward();
            honest.poll();
            if let Some(ClientEvent::Message { bytes: echo, .. }) = honest.next_event() {
                assert_eq!(echo, bytes);
                received = true;
            }
            received
        });
    }
    // A server that waits for the hostile player answers only when the session of that player has ended.
    while let Some(event) = hostile.next_event() {
        assert!(!matches!(event, ClientEvent::Closing | ClientEvent::Disconnected(_)));
    }
    assert!(hostile.is_connected());
}
