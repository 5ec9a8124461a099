//! `rallypoint watch` prints a line for every change of servers and players, and ends on Ctrl-C.

use rallypoint_harness::{GameServer, Lobby, Process, Signal, rallypoint, run, stderr, stdout};
use std::{
    fs,
    net::{TcpListener, UdpSocket},
    path::Path,
    process::Command,
};

fn watch(home: &Path, args: &[&str]) -> Command {
    let mut command = rallypoint(home);
    command.arg("watch").args(args);
    command
}

/// Reads lines until one has all of these parts.
fn wait_for(program: &mut Process, parts: &[&str]) -> String {
    loop {
        let line = program.next_line();
        assert!(!line.is_empty(), "the program ended before a line had {parts:?}");
        if parts.iter().all(|part| line.contains(part)) {
            return line;
        }
    }
}

#[test]
fn the_exit_code_reports_a_list_that_cannot_be_read() {
    let home = tempfile::tempdir().unwrap();
    let target = format!("lobby://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let output = run(home.path(), ["watch", &target, "--passes", "1", "--lines"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert_eq!(stderr(&output), "rallypoint: a list could not be read in the last pass\n");
}

#[test]
fn servers_of_a_lobby_appear_and_disappear() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    lobby.register_port("Bacon Town", 8190);
    lobby.wait_for_list("the server is listed", |list| list.len() == 1);
    let target = format!("lobby://{}", lobby.v4());
    let args = [&target, "--jsonl", "--interval", "100ms", "--timeout", "100ms", "--retries", "0"];
    let mut program = Process::spawn(&mut watch(home.path(), &args));
    wait_for(&mut program, &["\"event\":\"appeared\"", "\"at_first\":true", "\"name\":\"Bacon Town\""]);
    wait_for(&mut program, &["\"event\":\"silent\"", "127.0.0.1:8190"]);

    let args = ["--name", "Arena", "--port", "8191", "--transport", "udp", "--lobby"];
    let mut announce = rallypoint(home.path());
    let announced = Process::spawn(announce.arg("announce").args(args).arg(lobby.v4().to_string()));
    let line = wait_for(&mut program, &["\"event\":\"appeared\"", "\"name\":\"Arena\""]);
    assert!(line.contains("\"at_first\":false") && line.starts_with("{\"time\":\"2"), "{line}");
    announced.signal(Signal::INT);
    wait_for(&mut program, &["\"event\":\"gone\"", "\"name\":\"Arena\""]);

    lobby.process().signal(Signal::TERM);
    wait_for(&mut program, &["\"event\":\"list_failed\"", &target, "\"error\":\"refused\""]);
    program.signal(Signal::INT);
    assert_eq!(program.wait().status.code(), Some(0));
}

#[test]
fn a_tcp_server_that_stops_is_noticed() {
    let home = tempfile::tempdir().unwrap();
    let lobby = Lobby::start_in(home.path(), &[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    lobby.register(&GameServer::named("Bacon Town").tcp(listener.local_addr().unwrap().port()));
    lobby.wait_for_list("the server is listed", |list| list.len() == 1);
    drop(listener);
    let target = format!("lobby://{}", lobby.v4());
    let events = |interval: &str| {
        stdout(&watch(home.path(), &[&target, "--passes", "1", "--interval", interval]).output().unwrap())
    };
    assert!(events("30s").contains("Bacon Town: does not answer: refused"), "{}", events("30s"));
    let often = events("29s");
    assert!(often.contains("Bacon Town: online") && !often.contains("refused"), "no connections that often: {often}");
}

#[test]
fn a_server_changes_and_players_join_and_leave() {
    let home = tempfile::tempdir().unwrap();
    let info = home.path().join("info.toml");
    fs::write(&info, "name = \"Arena\"\nmap = \"dusk\"\n[[player]]\nname = \"Ada\"\n").unwrap();
    let mut respond = rallypoint(home.path());
    let respond = Process::spawn(respond.args(["respond", "--session", "127.0.0.1:0", "--info"]).arg(&info));
    let at = respond.next_line().replace("session udp ", "session://");
    let mut program = Process::spawn(&mut watch(home.path(), &[&at, "--interval", "100ms"]));
    wait_for(&mut program, &["Arena: online", "dusk, 1 player"]);
    fs::write(&info, "name = \"Arena\"\nmap = \"dawn\"\n[[player]]\nname = \"Grace \\u001b[2J\"\n").unwrap();
    respond.signal(Signal::HUP);
    wait_for(&mut program, &["Arena: map dusk -> dawn"]);
    wait_for(&mut program, &["Arena: Ada left"]);
    let joined = wait_for(&mut program, &["Arena: Grace", "joined"]);
    assert!(!joined.contains('\x1b'), "{joined:?}");
    respond.signal(Signal::TERM);
    wait_for(&mut program, &["does not answer: refused"]);
    program.signal(Signal::INT);
    assert_eq!(program.wait().status.code(), Some(0));
}

#[test]
fn it_exits_after_the_last_pass_or_when_the_pipe_is_closed() {
    let home = tempfile::tempdir().unwrap();
    // A socket that never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = format!("session://{}", silent.local_addr().unwrap());
    let args = ["watch", &target, "--passes", "2", "-i", "1ms", "-t", "50ms", "--jsonl"];
    let output = run(home.path(), args);
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    let lines = stdout(&output);
    assert!(lines.lines().count() == 1 && lines.contains("\"error\":\"timed_out\""), "{lines}");

    let mut command = watch(home.path(), &[&target, "-i", "1ms", "-t", "50ms"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn wrong_usage_is_reported() {
    let home = tempfile::tempdir().unwrap();
    for args in [
        &["watch"][..],
        &["watch", "a b"],
        &["watch", "h", "--interval", "soon"],
        &["watch", "h", "--lines", "--jsonl"],
    ] {
        let output = run(home.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}
