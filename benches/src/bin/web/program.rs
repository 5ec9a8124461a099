//! The measured programs.

use crate::requests::Client;
use rallypoint_bench::{Failure, address, pinned};
use rallypoint_wire::lobby::{ListId, Occupancy, Registration, ServerId, TableBuf, Transport};
use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    num::NonZeroU16,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Time limit for starting a program, and for filling a lobby.
const TIME_LIMIT: Duration = Duration::from_secs(180);

/// A running program, which is killed when this value is dropped.
pub struct Program {
    child: Child,
    _dir: TempDir,
}

impl Program {
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A lobby with servers.
pub struct Lobby {
    program: Program,
    lobby: SocketAddr,
    pub http: SocketAddr,
}

const NAMES: [&str; 5] = ["Bacon Town 24/7", "Dusk till dawn", "All Arena, no lag", "Ye olde server", "Clan practice"];
const MAPS: [&str; 6] =
    ["ctf_truefort", "ctf_2dfort", "cp_dirtbowl", "koth_harvest", "arena_lumberyard", "gen_destroy"];

impl Lobby {
    /// The lobby with its default configuration and this number of servers.
    pub fn start(core: usize, servers: u32) -> Result<Self, Failure> {
        Self::start_with(core, servers, &[])
    }

    /// The lobby with some settings and this number of servers.
    pub fn start_with(core: usize, servers: u32, settings: &[&str]) -> Result<Self, Failure> {
        let dir = TempDir::new()?;
        let config = dir.path().join("rallypoint.toml");
        fs::write(&config, "")?;
        // Built into the same directory as this program.
        let mut command = pinned(core, env::current_exe()?.with_file_name("rallypoint"));
        command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "127.0.0.1:0", "--config"]);
        command.arg(config).arg("--data-dir").arg(dir.path()).args(["--set", "lobby.lease=1h"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let output = child.stdout.take().map(BufReader::new);
        let program = Program { child, _dir: dir };
        let mut lines = output.into_iter().flat_map(BufRead::lines);
        let mut addr = |name: &str| -> Result<SocketAddr, Failure> {
            let line = lines.next().transpose()?.unwrap_or_default();
            let addr = line.strip_prefix(name).and_then(|addr| addr.trim().parse().ok());
            addr.ok_or_else(|| Failure(format!("rallypoint serve did not start: {line:?}")))
        };
        let lobby = addr("lobby udp+tcp")?;
        let http = addr("http tcp")?;
        let lobby = Self { program, lobby, http };
        lobby.fill(servers)?;
        Ok(lobby)
    }

    pub fn id(&self) -> u32 {
        self.program.id()
    }

    /// Registers a server under a name.
    pub fn register(&self, server: u32, name: &str) -> Result<(), Failure> {
        let mut table = TableBuf::new();
        let map = MAPS[server as usize % MAPS.len()];
        let entries = [
            ("name", name),
            ("map", map),
            ("game", "Gang Garrison 2"),
            ("game_short", "gg2"),
            ("game_ver", "v2.9.2"),
            ("game_url", "https://www.ganggarrison.com"),
        ];
        for (key, value) in entries {
            table.push(key.as_bytes(), value.as_bytes()).map_err(|error| Failure(error.to_string()))?;
        }
        let players = (server % 25) as u16;
        let occupancy = Occupancy { players, bots: 0, slots: 24, password: server.is_multiple_of(10) };
        let mut id = [0; 16];
        id[..4].copy_from_slice(&server.to_be_bytes());
        let id = ServerId::from_bytes(id);
        let lobby = ListId::GANG_GARRISON_2;
        let registration = Registration::new(id, lobby, Transport::Udp, PORT, occupancy, table.as_table());
        let mut datagram = Vec::new();
        registration.map_err(|error| Failure(error.to_string()))?.emit(&mut datagram);
        UdpSocket::bind((address(server), 0))?.send_to(&datagram, self.lobby)?;
        Ok(())
    }

    /// Registers servers until all are listed: datagrams may get lost.
    fn fill(&self, servers: u32) -> Result<(), Failure> {
        let total = format!("\"total\":{servers},");
        let end = Instant::now() + TIME_LIMIT;
        while Instant::now() < end {
            for server in 0..servers {
                self.register(server, &format!("{} #{server}", NAMES[server as usize % NAMES.len()]))?;
            }
            thread::sleep(Duration::from_millis(500));
            let list = Client::connect(self.http)?.get("/api/v1/servers?limit=1", "")?;
            if String::from_utf8_lossy(&list).contains(&total) {
                return Ok(());
            }
        }
        Err(Failure(format!("{servers} servers could not be registered")))
    }
}

/// The port of every server; their addresses differ.
const PORT: NonZeroU16 = NonZeroU16::new(8_190).expect("8190 is not 0");

/// nginx with the reply as a file, or `None` if it is not installed. One process, tuned for speed.
pub fn nginx(core: usize, answer: &[u8]) -> Result<Option<(SocketAddr, Program)>, Failure> {
    if Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_err() {
        return Ok(None);
    }
    let dir = TempDir::new()?;
    fs::write(dir.path().join("reply"), answer)?;
    let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let path = dir.path().display();
    let config = format!(
        "daemon off; master_process off; pid {path}/pid; error_log {path}/errors;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n\
         access_log off; sendfile on; tcp_nopush on; keepalive_timeout 60; keepalive_requests 1000000000;\n\
         open_file_cache max=16; default_type application/json;\n\
         client_body_temp_path {path}/a; proxy_temp_path {path}/b; fastcgi_temp_path {path}/c;\n\
         uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
         server {{ listen {addr}; root {path}; }}\n\
         }}\n"
    );
    fs::write(dir.path().join("nginx.conf"), config)?;
    let mut command = pinned(core, "nginx");
    command.args(["-e", "stderr", "-p"]).arg(dir.path()).args(["-c", "nginx.conf"]);
    let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let program = Program { child, _dir: dir };
    let end = Instant::now() + TIME_LIMIT;
    while TcpStream::connect(addr).is_err() {
        if Instant::now() > end {
            return Err(Failure("nginx does not answer".into()));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(Some((addr, program)))
}
