//! Runs the real program, and talks to it as games do.
#![allow(dead_code, reason = "every test file uses a part of it")]

use rallypoint_wire::lobby::{
    ListReader, ListRequest, LobbyId, Occupancy, Registration, ServerId, TableBuf, Transport,
};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

/// How long a test waits for what must happen. It ends at once when it happens, so this is generous.
const PATIENCE: Duration = Duration::from_secs(30);

pub const LOBBY: LobbyId = LobbyId::GANG_GARRISON_2;

/// The program, in an environment where nobody has configured anything; `home` takes what it keeps.
pub fn rallypoint(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rallypoint"));
    command.env_clear().env("HOME", home).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub fn run(home: &Path, args: &[&str]) -> Output {
    rallypoint(home).args(args).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A program that runs, and is gone with the test.
pub struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    log: Receiver<String>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        let (sender, log) = channel();
        std::thread::spawn(move || {
            for line in err.lines().map_while(Result::ok) {
                eprintln!("log: {line}");
                let _ = sender.send(line);
            }
        });
        Self { child, out, log }
    }

    /// The next line of standard output; empty when that has ended.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits for a line of the log.
    pub fn wait_for_log(&self, part: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.log.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(part) => return line,
                Ok(_) => {}
                Err(error) => panic!("no line of the log has {part:?}: {error}"),
            }
        }
    }

    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// As timeout(1) does it. The program may be gone before the second.
    pub fn signal_twice(&self, name: &str) {
        let kill = format!("kill -{name} {0} && kill -{name} {0}", self.child.id());
        let _ = Command::new("sh").args(["-c", &kill]).status().unwrap();
    }

    /// Waits for the end.
    pub fn wait(mut self) -> ExitStatus {
        until("the program ends", || self.child.try_wait().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A lobby that runs at a port of its own.
pub struct Lobby {
    pub program: Running,
    pub addrs: Vec<SocketAddr>,
}

impl Lobby {
    /// Starts one on loopback, at free ports of every family there is.
    pub fn start(home: &Path, args: &[&str]) -> Self {
        let mut command = rallypoint(home);
        command.args(["serve", "--legacy", "off", "--lobby", "127.0.0.1:0"]);
        if !args.contains(&"--http") {
            command.args(["--http", "off"]);
        }
        command.args(args);
        if has_ipv6() {
            command.args(["--lobby", "[::1]:0"]);
        }
        Self::started(&mut command, if has_ipv6() { 2 } else { 1 })
    }

    pub fn started(command: &mut Command, count: usize) -> Self {
        let mut program = Running::start(command);
        let addr = |line: String| {
            let addr = line.strip_prefix("lobby udp+tcp ").unwrap_or_else(|| panic!("not an address: {line:?}"));
            addr.parse().unwrap()
        };
        let addrs = (0..count).map(|_| addr(program.line())).collect();
        Self { program, addrs }
    }

    pub fn v4(&self) -> SocketAddr {
        self.addrs[0]
    }

    /// Waits until the list is as it should be.
    pub fn wait_for_list(&self, what: &str, is_so: impl Fn(&[Server]) -> bool) -> Vec<Server> {
        until(what, || Some(list(self.v4())).filter(|list| is_so(list)))
    }

    /// Registers a UDP server at a port, as a game does.
    pub fn register(&self, name: &str, port: u16) {
        let mut table = TableBuf::new();
        table.push(b"name", name.as_bytes()).unwrap();
        let id = ServerId::from_bytes(u128::from(port).to_be_bytes());
        let (port, occupancy) = (port.try_into().unwrap(), Occupancy::default());
        let registration = Registration::new(id, LOBBY, Transport::Udp, port, occupancy, table.as_table()).unwrap();
        let mut datagram = Vec::new();
        registration.emit(&mut datagram);
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&datagram, self.v4()).unwrap();
    }
}

/// A server in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    pub endpoints: Vec<SocketAddr>,
    pub slots: u16,
    pub keys: Vec<(String, Vec<u8>)>,
}

/// The list of a lobby, as a client gets it.
pub fn list(addr: SocketAddr) -> Vec<Server> {
    let mut stream = TcpStream::connect(addr).unwrap();
    let (mut request, mut reply) = (Vec::new(), Vec::new());
    ListRequest { lobby_id: LOBBY }.emit(&mut request);
    stream.write_all(&request).unwrap();
    stream.read_to_end(&mut reply).unwrap();
    let (mut reader, mut servers) = (ListReader::new(), Vec::new());
    reader.push(&reply);
    while let Some(block) = reader.next_block() {
        let block = block.unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        servers.push(Server {
            name: text(block.table.get(b"name").unwrap()),
            endpoints: block.endpoints().collect(),
            slots: block.occupancy.slots,
            keys: block.table.iter().map(|entry| (text(entry.key), entry.value.to_vec())).collect(),
        });
    }
    reader.finish().unwrap();
    servers
}

/// Asks again and again until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "this did not happen: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn has_ipv6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}
