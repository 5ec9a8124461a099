//! Every command in the documentation is run as it is, or marked as not run, with the reason.
//!
//! ```text
//! the reader's machine (namespace of the test)            another machine (namespace)
//! each block of commands in a directory of its own  ────  lobby.example.org, play.example.org, store.example.org:
//!                                                         a lobby, servers, a room, a store
//! ```

#![cfg(target_os = "linux")]

use rallypoint_harness::{
    CABLES, Process, SecondMachine, Signal, http_get, is_inside_a_namespace,
    markdown::{CommandBlock, command_blocks, documents},
    program, rallypoint, run, skip, stdout, wait_for,
};
use std::{
    fs,
    net::{SocketAddr, TcpListener},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Commands that run until they are stopped, and what they print when they are ready.
const LONG_RUNNING: &[(&str, &str)] = &[
    ("rallypoint announce", "listed "),
    ("rallypoint browse", "Bacon Town"),
    ("rallypoint demo", "page "),
    ("rallypoint host", "key "),
    ("rallypoint join", "connected"),
    ("rallypoint respond --info", "bloodmasters udp"),
    ("rallypoint serve", "http tcp"),
    ("rallypoint watch", "\"event\""),
    ("redis-server", "Ready to accept connections"),
];

/// Options with which these commands end by themselves.
const ENDING: &[&str] = &["--print-config", "--check-config"];

/// The ID of a server in the documentation.
const SERVER_ID: &str = "0123456789abcdef0123456789abcdef";

/// Where a lobby on the reader's machine has its API.
const LOCAL_API: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 29_950);

/// All blocks of the documentation.
fn blocks() -> Vec<CommandBlock> {
    let root = Path::new(ROOT).canonicalize().unwrap();
    let mut blocks = Vec::new();
    let mut problems = Vec::new();
    for document in documents(&root) {
        let name = document.strip_prefix(&root).unwrap().display().to_string();
        match command_blocks(&name, &fs::read_to_string(&document).unwrap()) {
            Ok(found) => blocks.extend(found),
            Err(found) => problems.extend(found),
        }
    }
    assert!(problems.is_empty(), "blocks with commands need the language sh or console:\n{}", problems.join("\n"));
    blocks
}

#[test]
fn every_command_is_run_or_marked() {
    let blocks = blocks();
    let run = blocks.iter().filter(|block| block.not_run.is_none()).map(|block| block.commands.len()).sum::<usize>();
    assert!(run > 40, "only {run} commands are run");
    // A command that needs the machine itself cannot be run in a test, so it has to be marked.
    for block in blocks.iter().filter(|block| block.not_run.is_none()) {
        for command in &block.commands {
            let first = command.split(' ').next().unwrap_or_default();
            let needs_machine =
                ["cargo", "git", "install", "systemctl", "journalctl", "sysctl", "apt"].contains(&first);
            assert!(!needs_machine, "{}: mark it with <!-- not run: REASON -->: {command}", block.place);
        }
    }
}

#[test]
fn the_commands_work_as_they_are_written() {
    if !is_inside_a_namespace("documented_commands::the_commands_work_as_they_are_written") {
        return;
    }
    let network = Network::start();
    // Lobbies connect to TCP servers that register.
    let _game = TcpListener::bind("0.0.0.0:8190").unwrap();
    let mut count = 0;
    for block in blocks().iter().filter(|block| block.not_run.is_none()) {
        if let Some(program) = missing_program(block) {
            skip(&format!("{}: {program} is not installed", block.place));
            continue;
        }
        println!("{}", block.place);
        let mut reader = Reader::new(&network);
        reader.prepare(block);
        block.commands.iter().for_each(|command| reader.run(&block.place, command));
        count += block.commands.len();
    }
    println!("{count} commands");
}

/// A program of a block that is not installed.
fn missing_program(block: &CommandBlock) -> Option<&'static str> {
    let is_used = |program: &&str| block.commands.iter().any(|command| command.contains(&format!("{program} ")));
    let is_installed = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
    };
    ["curl", "jq", "minisign", "openssl", "redis-server"]
        .into_iter()
        .filter(is_used)
        .find(|program| !is_installed(program))
}

/// The other machine: everything that the documentation has at `example.org`.
struct Network {
    home: tempfile::TempDir,
    machine: SecondMachine,
    processes: Vec<Process>,
}

impl Network {
    fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut network = Self { home, machine: SecondMachine::start(), processes: Vec::new() };
        let address = CABLES[0].there;
        let names = "lobby.example.org play.example.org store.example.org mirror.example.net";
        fs::write(network.hosts(), format!("127.0.0.1 localhost\n::1 localhost\n{address} {names}\n")).unwrap();
        fs::create_dir(network.programs()).unwrap();
        symlink(program(), network.programs().join("rallypoint")).unwrap();

        let copy = network.copy().display().to_string();
        network.start_program(&["serve", "--export", &copy, "--set", "export.interval=1s"], "http tcp");
        network.start_program(&["host", "--name", "Bacon Town"], "key ");
        let info = network.home.path().join("info.toml");
        fs::write(&info, stdout(&run(network.home.path(), ["respond", "--print-example"]))).unwrap();
        let info = info.display().to_string();
        network.start_program(&["respond", "--info", &info, "--bloodmasters", "0.0.0.0:6969"], "bloodmasters udp");
        // Any program that accepts connections can be announced as a game.
        for port in ["6379", "8190"] {
            let mut store = Command::new("redis-server");
            store.args(["--port", port, "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""]);
            network.start_command(store.current_dir(network.home.path()).env_clear(), "Ready to accept connections");
        }
        network.start_program(&["announce", "--name", "Bacon Town", "--port", "8190", "--lobby", address], "listed ");
        network
    }

    fn start_program(&mut self, args: &[&str], ready: &str) {
        let mut command = rallypoint(self.home.path());
        self.start_command(command.args(args), ready);
    }

    fn start_command(&mut self, command: &Command, ready: &str) {
        let process = Process::spawn(&mut self.machine.command(command));
        process.wait_for_line(ready);
        self.processes.push(process);
    }

    /// The names of hosts.
    fn hosts(&self) -> PathBuf {
        self.home.path().join("hosts")
    }

    /// A directory with the program.
    fn programs(&self) -> PathBuf {
        self.home.path().join("bin")
    }

    /// The lobby's copy of its list.
    fn copy(&self) -> PathBuf {
        self.home.path().join("copy")
    }
}

/// A reader of the documentation, who tries a block in a directory of its own.
struct Reader<'a> {
    network: &'a Network,
    home: tempfile::TempDir,
    variables: Vec<(String, String)>,
    running: Vec<Process>,
    /// ID of a server at the lobby on this machine.
    server_id: Option<String>,
}

impl<'a> Reader<'a> {
    fn new(network: &'a Network) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { network, home, variables: Vec::new(), running: Vec::new(), server_id: None }
    }

    /// Provides what the text around a block takes for granted.
    fn prepare(&mut self, block: &CommandBlock) {
        let uses = |part: &str| block.commands.iter().any(|command| command.contains(part));
        if uses("servers.txt") {
            fs::write(self.home.path().join("servers.txt"), "play.example.org\n").unwrap();
        }
        if uses("minisign ") {
            for file in ["servers.json", "servers.json.minisig", "servers.signed", "rallypoint.pub"] {
                let copied = || fs::copy(self.network.copy().join(file), self.home.path().join(file)).ok();
                wait_for("the lobby has written a copy", copied);
            }
        }
        if uses("rallypoint admin ") || uses("rallypoint history ") || uses("http://localhost:29950") {
            let token = stdout(&run(self.home.path(), ["admin", "token"])).trim().to_owned();
            fs::write(self.home.path().join("token"), &token).unwrap();
            self.variables.push(("RALLYPOINT_ADMIN_TOKEN".into(), token));
            self.run("setup", "rallypoint serve --set web.admin_token_file=token");
            self.run("setup", "rallypoint announce --name 'Bacon Town' --port 8190 --transport udp --lobby 127.0.0.1");
            self.server_id = Some(wait_for("the API has the server", || {
                let (_, body) = http_get(LOCAL_API, "/api/v1/servers");
                let (_, rest) = body.split_once("\"id\":\"")?;
                Some(rest.split_once('"')?.0.to_owned())
            }));
        }
    }

    /// Runs a command to its end, or until it is ready.
    fn run(&mut self, place: &str, command: &str) {
        let command = match &self.server_id {
            Some(id) => command.replace(SERVER_ID, id),
            None => command.to_owned(),
        };
        if command.starts_with("export ") {
            self.export(&command);
            return;
        }
        let is_ending = ENDING.iter().any(|option| command.contains(option));
        match LONG_RUNNING.iter().find(|(start, _)| !is_ending && command.starts_with(start)) {
            Some((_, ready)) => {
                let command = command.trim_end_matches('&');
                let script = if command.starts_with("rallypoint browse") {
                    // A terminal.
                    format!("exec script -qec \"stty cols 120 rows 30; {}\" /dev/null", command.replace('"', "\\\""))
                } else {
                    format!("exec {command}")
                };
                println!("    {command} ...");
                let process = Process::spawn_interactive(&mut self.shell(&script));
                wait_for(&format!("{place}: {command} prints {ready:?}"), || {
                    let text = process.stdout();
                    let is_ready = text.contains(ready);
                    assert!(is_ready || !process.has_exited(), "{place}: {command}: {text}{}", process.stderr());
                    is_ready.then_some(())
                });
                // The demo is tried alone, and removes its files when it is asked to end.
                if command.starts_with("rallypoint demo") {
                    process.signal(Signal::TERM);
                    assert!(process.wait().status.success(), "{place}: {command}");
                } else {
                    self.running.push(process);
                }
            }
            None => {
                println!("    {command}");
                let process = Process::spawn(&mut self.shell(&command));
                let output = process.wait();
                let text = || String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned();
                assert!(output.status.success(), "{place}: {command}: {}\n{}", output.status, text());
            }
        }
    }

    /// Keeps the variables that a command exports.
    fn export(&mut self, command: &str) {
        let names: Vec<_> = command.split(' ').filter_map(|word| word.split_once('=')).map(|(name, _)| name).collect();
        for name in names {
            let output = self.shell(&format!("{command}\nprintf %s \"${name}\"")).output().unwrap();
            self.variables.push((name.to_owned(), stdout(&output)));
        }
    }

    /// A shell on the reader's machine.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c", "mount --bind \"$0\" /etc/hosts && exec sh -c \"$1\""]);
        command.arg(self.network.hosts()).arg(script);
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.network.programs().display());
        command.env_clear().env("PATH", path).env("HOME", self.home.path()).env("TERM", "xterm");
        command.envs(self.variables.iter().cloned()).current_dir(self.home.path()).stdin(std::process::Stdio::null());
        command
    }
}
