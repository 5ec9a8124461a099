//! The complete output of each command, run against a real lobby and real servers, with ports and times replaced.
//!
//! Accept changed snapshots with `INSTA_UPDATE=always` or `cargo insta review`.

use insta::assert_snapshot;
use rallypoint_harness::{GameServer, Lobby, Process, Room, Signal, join, rallypoint, run_with_input, stderr, stdout};
use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Output,
    sync::atomic::{AtomicU16, Ordering},
};
use tempfile::TempDir;

const INFO: &str = "\
name = \"Arena\"
description = \"Friendly people, fresh maps\"
map = \"dm_desert\"
max_players = 8

[[player]]
name = \"Ada\"
ping_ms = 35

[[player]]
name = \"Grace\"
ping_ms = 61
";

/// A lobby with a server that answers queries, a TCP server, and one that does not answer.
struct Scene {
    home: TempDir,
    lobby: Lobby,
    /// Texts that differ between two runs, and what is shown instead. The longest come first.
    names: Vec<(String, &'static str)>,
    arena: String,
    tcp: String,
    silent: String,
    _arena: Process,
    _tcp: TcpListener,
    _silent: UdpSocket,
}

impl Scene {
    fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let token = home.path().join("token");
        fs::write(&token, "0123456789abcdef0123456789abcdef").unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        let setting = format!("web.admin_token_file={}", token.display());
        // No registration is repeated here, and the commands of a test can take longer than the default lease on a busy machine.
        let lease = "lobby.lease=1h";
        let lobby = Lobby::start_in(home.path(), &["--http", "127.0.0.1:0", "--set", &setting, "--set", lease]);
        fs::write(home.path().join("info.toml"), INFO).unwrap();
        let mut respond = rallypoint(home.path());
        let listen = unshared_addr();
        let respond = Process::spawn(respond.args(["respond", "--session", &listen, "--info", "info.toml"]));
        let arena = respond.next_line().replace("session udp ", "");
        let tcp = unshared_addr();
        let listener = TcpListener::bind(&tcp).unwrap();
        let silent = unshared_addr();
        let socket = UdpSocket::bind(&silent).unwrap();
        let port = |addr: &str| addr.rsplit_once(':').unwrap().1.parse().unwrap();
        lobby.register_all(&[
            GameServer::named("Arena").port(port(&arena)).key("game_short", "arena").key("map", "dm_desert"),
            GameServer::named("Silent Hill").port(port(&silent)),
        ]);
        // The order in the list is that in which they were listed, and this one has to be checked first.
        lobby.wait_for_list("two servers are listed", |list| list.len() == 2);
        lobby.register(&GameServer::named("Bacon Town").tcp(port(&tcp)).key("game", "Gang Garrison 2").key("map", ""));
        lobby.wait_for_list("three servers are listed", |list| list.len() == 3);
        let port_of = |addr: &str| format!("port {}", addr.rsplit_once(':').unwrap().1);
        let names = vec![
            (port_of(&arena), "port ARENA"),
            (port_of(&tcp), "port BACON"),
            (port_of(&silent), "port SILENT"),
            (lobby.url(), "http://WEB"),
            (lobby.http().to_string(), "WEB"),
            (lobby.v4().to_string(), "LOBBY"),
            (arena.clone(), "ARENA"),
            (tcp.clone(), "BACON"),
            (silent.clone(), "SILENT"),
            (home.path().display().to_string(), "HOME"),
        ];
        Self { home, lobby, names, arena, tcp, silent, _arena: respond, _tcp: listener, _silent: socket }
    }

    fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs commands, and shows each with its output and exit code.
    fn transcript(&self, commands: &[&[&str]]) -> String {
        commands.iter().map(|args| self.show(args, &run_with_input(self.home(), args, ""))).collect()
    }

    fn show(&self, args: &[&str], output: &Output) -> String {
        let quoted = |arg: &&str| if arg.contains(' ') { format!("'{arg}'") } else { (*arg).to_owned() };
        let command = args.iter().map(quoted).collect::<Vec<_>>().join(" ");
        let errors: String = stderr(output).lines().map(|line| format!("! {line}\n")).collect();
        let text = format!("$ rallypoint {command}\n{}{errors}", stdout(output));
        let code = output.status.code().unwrap();
        format!("{}exit {code}\n\n", self.redact(&text))
    }

    fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (actual, shown) in &self.names {
            text = text.replace(actual, shown);
        }
        text.lines().map(|line| redact_line(line) + "\n").collect()
    }
}

/// An address that is free over both transports, and stays so over the one that the test does not use: its port is below those
/// that the system hands out for port 0, to which the other tests bind.
fn unshared_addr() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = std::process::id() % 600 * 32;
    loop {
        let port = 10_000 + (start + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % 20_000;
        let addr = format!("127.0.0.1:{port}");
        if TcpListener::bind(&addr).is_ok() && UdpSocket::bind(&addr).is_ok() {
            return addr;
        }
    }
}

/// Replaces what differs between two runs: measured times, dates, IDs; and the spaces that align columns, whose number depends
/// on them.
fn redact_line(line: &str) -> String {
    let indent: String = line.chars().take_while(|c| *c == ' ').collect();
    let mut words: Vec<String> = line.trim_start().split(' ').map(str::to_owned).collect();
    for at in 0..words.len() {
        let bare = |word: &str| word.trim_matches(['(', ')', ',', ';', '"']).to_owned();
        let word = bare(&words[at]);
        let next = words.get(at + 1).map(|next| bare(next)).unwrap_or_default();
        let is_measured = matches!(&*next, "ms" | "ms/s" | "s" | "min") && word.parse::<f64>().is_ok();
        let is_date = word.len() >= 20 && word.contains('T') && word.ends_with('Z') && word.starts_with("20");
        let is_time = word.len() == 8 && word.chars().filter(|c| *c == ':').count() == 2 && !word.contains('.');
        let is_id = word.len() >= 32 && word.chars().all(|c| c.is_ascii_hexdigit());
        let shown = match () {
            () if is_measured => "#",
            () if is_date || is_time => "TIME",
            () if is_id => "ID",
            () => continue,
        };
        words[at] = words[at].replace(&word, shown);
        // On a busy machine seconds become minutes.
        if next == "min" {
            words[at + 1] = words[at + 1].replace("min", "s");
        }
    }
    let words = words.join(" ");
    let mut collapsed = String::new();
    for c in words.chars() {
        if !(c == ' ' && collapsed.ends_with("  ")) {
            collapsed.push(c);
        }
    }
    redact_values(&format!("{indent}{collapsed}"))
}

/// Replaces the values of performance data and of JSON keys that are measured.
fn redact_values(line: &str) -> String {
    let mut text = line.to_owned();
    for key in ["ping=", "\"ping_ms\":", "\"connect_ms\":", "\"time\":"] {
        let Some(at) = text.find(key).map(|at| at + key.len()) else { continue };
        let rest = &text[at..];
        let end = rest.find(|c: char| !(c.is_ascii_digit() || ".\"-:TZ".contains(c))).unwrap_or(rest.len());
        text = format!("{}#{}", &text[..at], &rest[end..]);
    }
    text
}

#[test]
fn commands_that_query_print_what_they_find() {
    let scene = Scene::start();
    let Scene { arena, tcp, silent, .. } = &scene;
    let lobby = scene.lobby.v4().to_string();
    let list = format!("lobby://{lobby}");
    let api = scene.lobby.url();
    fs::write(scene.home().join("servers.txt"), format!("{arena}\nnot a server\n")).unwrap();
    assert_snapshot!(
        "list",
        scene.transcript(&[
            &["list", &lobby, "--sort", "name"],
            &["list", &lobby, "--query", "--sort", "name", "-t", "4s", "-r", "0"],
            &["list", &lobby, "--players", "--sort", "name", "--not-empty", "-t", "4s", "-r", "0"],
            &["list", &lobby, "--not-full", "--map", "nowhere"],
            &["list", "lobby.invalid"],
        ])
    );
    assert_snapshot!(
        "query",
        scene.transcript(&[
            &["query", arena, "-r", "0"],
            &["query", silent, "-t", "1s"],
            &["query", tcp, "-t", "4s"],
            &["query", "--file", "servers.txt", "-r", "0"],
            &["query", "--file", "missing.txt"],
        ])
    );
    assert_snapshot!(
        "check",
        scene.transcript(&[
            &["check", arena, "-w", "5000", "-c", "6000", "-r", "0"],
            &["check", arena, "-v", "-r", "0"],
            &["check", arena, "--warn-players", "5:", "--crit-players", "1:", "-r", "0"],
            &["check", silent, "-t", "1s"],
            &["check", &list, "--crit-servers", "1:"],
            &["check", "-V"],
            &["check", "no target"],
        ])
    );
    assert_snapshot!("watch", scene.transcript(&[&["watch", arena, silent, "--passes", "1", "-t", "4s", "-r", "0"]]));
    assert_snapshot!(
        "doctor",
        scene.transcript(&[
            &["doctor", arena, "--lobby", &lobby, "--api", &api, "-t", "4s", "-r", "0"],
            &["doctor", tcp, "--lobby", &lobby, "--api", &api, "-t", "4s"],
            &["doctor", silent, "--lobby", &lobby, "--api", &api, "--transport", "tcp", "-t", "4s"],
            &["doctor", arena, "--lobby", &lobby, "--api", &api, "--transport", "tcp", "-t", "4s", "-r", "0"],
        ])
    );
}

#[test]
fn ping_prints_each_answer_and_statistics() {
    let scene = Scene::start();
    let output = run_with_input(scene.home(), &["ping", "-c", "2", "-i", "10ms", &scene.arena], "");
    let text = stdout(&output);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.len() >= 5 && output.status.success(), "{text}");
    let shown: Vec<_> = lines.iter().map(|line| scene.redact(line)).collect();
    assert!(shown[0].contains("ARENA"), "{text}");
    assert!(text.contains("2 sent, 2 answered"), "{text}");
}

#[test]
fn admin_commands_print_what_they_changed() {
    let scene = Scene::start();
    let url = scene.lobby.url();
    let at = ["--url", &*url, "--token-file", "token"];
    let admin = |args: &[&str]| {
        let args = [&["admin"], args].concat();
        let output = run_with_input(scene.home(), &[&args[..], &at].concat(), "");
        scene.show(&args, &output)
    };
    let mut text = String::new();
    for args in [
        &["bans"][..],
        &["ban", "203.0.113.0/24", "--reason", "floods", "--for", "7d"],
        &["ban", "--name", "*casino*"],
        &["bans"],
        &["unban", "203.0.113.0/24"],
        &["unban", "203.0.113.0/24"],
        &["note", "203.0.113.9", "asked the owner to move the port"],
        &["notes"],
        &["forget", "3"],
        &["notes"],
        &["audit"],
        &["unlist", "00000000000000000000000000000000"],
    ] {
        text += &admin(args);
    }
    text += &scene.transcript(&[&["admin", "bans", "--url", &url], &["admin", "ban", "everybody"]]);
    assert_snapshot!("admin", text);
    // The log has the same, with masked addresses.
    let log = scene.lobby.log();
    let actions: Vec<_> = log.lines().filter_map(|line| line.split_once("the operator changed")).collect();
    assert_eq!(actions.len(), 5, "{log}");
}

#[test]
fn announce_prints_whether_the_server_is_listed() {
    let scene = Scene::start();
    let lobby = scene.lobby.v4().to_string();
    let common = ["announce", "--transport", "udp", "--lobby", &lobby, "--port", "8190", "--name"];
    let args = [&common[..], &["Town", "--once"]].concat();
    let players = [&common[..], &["Town", "--players", "30", "--slots", "24"]].concat();
    let long = "x".repeat(201);
    let long_name = [&common[..], &[&long]].concat();
    let text = scene.transcript(&[&args, &players, &["announce", "--name", "Town"]]);
    let too_long = stderr(&run_with_input(scene.home(), &long_name, ""));
    assert_snapshot!("announce", text + &too_long);
}

#[test]
fn serve_prints_its_addresses_and_logs_what_happens() {
    let scene = Scene::start();
    let text = scene.transcript(&[
        &["serve", "--check-config", "--data-dir", "data"],
        &["serve", "--check-config", "--data-dir", "data", "--http", "127.0.0.1:29944"],
        &["serve", "--check-config", "--data-dir", "data", "--set", "lobby.lease=soon"],
        &["serve", "--config", "missing.toml"],
    ]);
    assert_snapshot!("serve", text);
    scene.lobby.process().signal(Signal::TERM);
    let output = scene.lobby.process().wait();
    assert!(output.status.success());
    let log = scene.redact(&scene.lobby.log());
    // One line per kind of event: their order depends on the checks.
    let mut kinds: Vec<_> = log.lines().filter_map(|line| line.split_once("  INFO ")).map(|(_, rest)| rest).collect();
    // Output that depends on the machine, and servers that the harness itself registers.
    let others = ["web.connections", "receive_buffer", "the system's limit", "name=\"marker"];
    kinds.retain(|line| !others.iter().any(|other| line.contains(other)));
    let without_id = |line: &str| line.split(' ').filter(|word| !word.starts_with("id=")).collect::<Vec<_>>().join(" ");
    let mut shown: Vec<_> = kinds.into_iter().map(without_id).collect();
    shown.sort_unstable();
    assert_snapshot!("serve_log", shown.join("\n"));
}

#[test]
fn host_and_join_print_the_same_conversation() {
    let home = tempfile::tempdir().unwrap();
    let room = Room::start(home.path(), &["--name", "A room", "--welcome", "Be kind"]);
    let alice = join(home.path(), room.addr, "alice", &[]);
    alice.wait_for_line("-- you are alice");
    alice.write_line("/team red");
    alice.wait_for_line("-- alice joined team red");
    for line in ["/t left!", "/me waves", "/help", "/dance", "/team green", "hello"] {
        alice.write_line(line);
    }
    alice.close_stdin();
    let output = alice.wait();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    let text = stdout(&output).replace(&room.addr.to_string(), "ROOM");
    assert_snapshot!("join", text);
    room.host.wait_for_line("-- alice left");
    for line in ["/who", "/kick", "/dance", "/quit"] {
        room.host.write_line(line);
    }
    let output = room.host.wait();
    assert_eq!(output.status.code(), Some(0));
    assert_snapshot!("host", room.host.stdout().replace(&room.addr.to_string(), "ROOM").replace(&room.key, "KEY"));
    let closed = unshared_addr();
    let refused = run_with_input(home.path(), &["join", &closed], "");
    assert_eq!(refused.status.code(), Some(1));
    assert_snapshot!("join_refused", stderr(&refused).replace(&closed, "CLOSED"));
}

#[test]
fn other_commands_print_errors_that_say_what_to_do() {
    let scene = Scene::start();
    assert_snapshot!(
        "errors",
        scene.transcript(&[
            &["browse", "lobby.example.org"],
            &["respond", "--info", "missing.toml", "--session", "127.0.0.1:0"],
            &["history", "export", "--data-dir", "missing"],
            &["cluster", "status"],
            &["host", "--max-players", "0"],
            &["join", "lobby://lobby.example.org"],
            &["list", "session://play.example.org"],
            &["query", "play example"],
            &["ping", "nowhere.invalid"],
            &["lst"],
            &["serve", "--port", "8080"],
            &["serve", "--http", "8080"],
            &["host", "--port", "45556"],
            &["list", "--lobby", "lobby.example.org"],
            &["list", "lobby.example.org", "--csv", "--players"],
            &["announce", "--name", "Town", "--port", "8190", "--lobby", "http://lobby.example.org:29950/"],
        ])
    );
}
