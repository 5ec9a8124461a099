//! Servers to be asked, on real loopback sockets.
#![allow(dead_code, reason = "every test file uses a part of it")]

use rallypoint_machine::Machine;
use rallypoint_query_proto::{Player, Responder, ResponderConfig, ServerInfo, SessionInfo, Team};
use std::{
    net::{SocketAddr, UdpSocket},
    path::Path,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
    time::Instant,
};

/// A server that is gone with the test.
pub struct Server {
    pub addr: SocketAddr,
    /// Every datagram that it got.
    pub got: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// The protocols that a server answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    Bloodmasters,
    Session,
}

pub fn info() -> ServerInfo {
    let some = |text: &str| Some(text.to_owned());
    let player = |name: &str, team, ping| Player {
        name: name.into(),
        team: Some(team),
        rank: Some(team),
        ping_ms: Some(ping),
        ..Player::default()
    };
    ServerInfo {
        name: some("Bacon Town"),
        description: some("Friendly people"),
        game: some("gg2"),
        game_name: some("Gang Garrison 2"),
        map: some("ctf_truefort"),
        version: some("292"),
        website: some("http://example.org/"),
        session: Some(SessionInfo { version: 292, ..SessionInfo::default() }),
        players: Some(2),
        max_players: Some(24),
        tags: vec!["beginners".into()],
        teams: vec![
            Team { id: 1, name: "RED".into(), ranked: true, color: [204, 51, 51] },
            Team { id: 2, name: "BLU".into(), ranked: true, color: [51, 102, 204] },
        ],
        player_list: Some(vec![player("Ada", 1, 35), player("Grace", 2, 60)]),
        ..ServerInfo::default()
    }
}

impl Server {
    /// Answers with what [`info`] has.
    pub fn new(speaks: Speaks) -> Self {
        Self::with("127.0.0.1:0", speaks, &info())
    }

    pub fn with(addr: &str, speaks: Speaks, info: &ServerInfo) -> Self {
        Self::doing(addr, answering(speaks, info))
    }

    /// Hears only the second question.
    pub fn late(speaks: Speaks, info: &ServerInfo) -> Self {
        let (mut is_awake, mut answer) = (false, answering(speaks, info));
        Self::doing("127.0.0.1:0", move |from, datagram| {
            let heard = std::mem::replace(&mut is_awake, true);
            if heard { answer(from, datagram) } else { Vec::new() }
        })
    }

    /// Hears, and says nothing.
    pub fn silent() -> Self {
        Self::doing("127.0.0.1:0", |_, _| Vec::new())
    }

    /// Says what makes no sense.
    pub fn nonsense() -> Self {
        Self::doing("127.0.0.1:0", |_, _| vec![b"\xf0nonsense".to_vec()])
    }

    pub fn doing(addr: &str, mut answer: impl FnMut(SocketAddr, &[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind(addr).unwrap();
        let (addr, got) = (socket.local_addr().unwrap(), Arc::<Mutex<Vec<_>>>::default());
        let seen = got.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                seen.lock().unwrap().push(buffer[..length].to_vec());
                for datagram in answer(from, &buffer[..length]) {
                    let _ = socket.send_to(&datagram, from);
                }
            }
        });
        Self { addr, got }
    }

    pub fn text(&self) -> String {
        self.addr.to_string()
    }

    /// B10: an empty datagram makes real servers deaf.
    pub fn assert_got_only_questions(&self) {
        let got = self.got.lock().unwrap();
        assert!(!got.is_empty() && got.iter().all(|datagram| !datagram.is_empty()), "{got:?}");
    }
}

fn answering(speaks: Speaks, info: &ServerInfo) -> impl FnMut(SocketAddr, &[u8]) -> Vec<Vec<u8>> + Send + 'static {
    let config = ResponderConfig {
        bloodmasters: speaks == Speaks::Bloodmasters,
        session: speaks == Speaks::Session,
        ..ResponderConfig::default()
    };
    let mut responder = Responder::new(config, 7, info).unwrap();
    move |from, datagram| {
        let (now, mut answers) = (Instant::now(), Vec::new());
        responder.handle_datagram(now, from, datagram);
        let mut bytes = Vec::new();
        while let Some(sent) = responder.poll_transmit(now, &mut bytes) {
            answers.push(bytes[bytes.len() - sent.len..].to_vec());
        }
        answers
    }
}

/// A port at which nothing listens. Somebody else may get it, but not within a test.
pub fn closed() -> String {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Runs the program with something on its standard input.
pub fn run_with_input(home: &Path, args: &[&str], input: &str) -> Output {
    let mut command = crate::common::rallypoint(home);
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Runs a shell command in a terminal of so many columns, and gives back what it shows.
pub fn in_terminal(home: &Path, columns: u16, command: &str, env: &[(&str, &str)]) -> String {
    let program = env!("CARGO_BIN_EXE_rallypoint");
    let command = format!("stty cols {columns} rows 24; {program} {command}");
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env_clear()
        .envs([("HOME", home.to_str().unwrap()), ("PATH", "/usr/bin:/bin"), ("TERM", "xterm")])
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().replace('\r', "")
}

/// The same in every run: ports have five digits, and pings have a unit.
pub fn steady(text: &str, servers: &[&Server]) -> String {
    let mut text = text.to_owned();
    for server in servers {
        text = text.replace(&format!(":{}", server.addr.port()), ":PORT");
    }
    let words = text.split_inclusive([' ', '\n', ',', '/']).collect::<Vec<_>>();
    let is_number = |word: &str| word.trim_end_matches(' ').parse::<f64>().is_ok();
    let mut steady = String::new();
    for (n, word) in words.iter().enumerate() {
        let is_ping =
            is_number(word) && words.get(n + 1).is_some_and(|unit| unit.trim_end_matches([',', ' ', '\n']) == "ms");
        steady += if is_ping { "# " } else { word };
    }
    steady
}

/// Without what aligns it: the widths of pings differ.
pub fn squeezed(text: &str) -> String {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// A value of JSON that changes with every run.
pub fn without_times(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if matches!(key.as_str(), "ping_ms" | "connect_ms") && value.is_f64() {
                    *value = "#".into();
                } else {
                    without_times(value);
                }
            }
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// Enough for an answer on a busy machine, and not long for those who never answer.
pub const SHORT: &str = "1500ms";
