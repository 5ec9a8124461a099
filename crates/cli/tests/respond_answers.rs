//! `rallypoint respond` answers queries of both protocols from its file, and reloads the file on a signal.

use rallypoint_harness::{Process, Signal, rallypoint, run, stderr, stdout, wait_for};
use std::{
    fs,
    net::{SocketAddr, UdpSocket},
    path::Path,
    time::Duration,
};

/// Starts `respond` on loopback; returns the process and its addresses, in the order of the flags.
fn respond(home: &Path, info: &Path, flags: &[&str]) -> (Process, Vec<SocketAddr>) {
    let mut command = rallypoint(home);
    command.arg("respond").arg("--info").arg(info);
    for flag in flags {
        command.args([flag, "127.0.0.1:0"]);
    }
    let program = Process::spawn(&mut command);
    let addrs = flags.iter().map(|_| program.next_line().rsplit_once(' ').unwrap().1.parse().unwrap()).collect();
    (program, addrs)
}

/// Sends these queries and returns the first `count` datagrams of the replies.
fn query(to: SocketAddr, queries: &[&[u8]], count: usize) -> Vec<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    for query in queries {
        socket.send_to(query, to).unwrap();
    }
    let mut buffer = [0; 2_048];
    (0..count).map(|_| socket.recv(&mut buffer).map(|length| buffer[..length].to_vec()).unwrap()).collect()
}

fn has(answers: &[Vec<u8>], text: &str) -> bool {
    answers.iter().any(|answer| answer.windows(text.len()).any(|window| window == text.as_bytes()))
}

/// A query of document 002: length, command, echo.
const BLOODMASTERS: [u8; 7] = [7, 0, 13, 1, 2, 3, 4];

#[test]
fn both_protocols_and_a_changed_file() {
    let home = tempfile::tempdir().unwrap();
    let info = home.path().join("info.toml");
    fs::write(&info, stdout(&run(home.path(), ["respond", "--print-example"]))).unwrap();
    let (program, addrs) = respond(home.path(), &info, &["--bloodmasters", "--session"]);

    // The first query belongs to the other protocol and is not answered.
    let answers = query(addrs[0], &[&[0x80], &BLOODMASTERS], 1);
    assert!(has(&answers, "Bacon Town 24/7") && has(&answers, "Grace"));
    assert!(has(&query(addrs[1], &[&BLOODMASTERS, &[0x80]], 7), "ctf_truefort"));
    assert!(has(&query(addrs[1], &[&[0x88]], 4), "Ada"), "two teams, two players");

    fs::write(&info, "name = \"Tofu Town\"\nmap = 7").unwrap();
    program.signal(Signal::HUP);
    program.wait_for_log("info.toml:2: ");
    program.wait_for_log("the file was not reloaded");
    assert!(has(&query(addrs[0], &[&BLOODMASTERS], 1), "Bacon Town 24/7"));

    fs::write(&info, "name = \"Tofu Town\"").unwrap();
    program.signal(Signal::HUP);
    program.wait_for_log("reloaded");
    wait_for("replies have the new name", || has(&query(addrs[0], &[&BLOODMASTERS], 1), "Tofu Town").then_some(()));
    program.signal(Signal::TERM);
    assert_eq!(program.wait().status.code(), Some(0));
}

#[test]
fn errors_are_reported_with_their_line() {
    let home = tempfile::tempdir().unwrap();
    let info = home.path().join("info.toml");
    fs::write(&info, "name = \"x\"\n\nmax_playrs = 3\n").unwrap();
    let file = info.to_str().unwrap();
    for (args, hint) in [
        (
            &["respond", "--session", "127.0.0.1:0", "--info", file][..],
            "info.toml:3: unknown key \"max_playrs\"; did you mean \"max_players\"?",
        ),
        (&["respond", "--session", "127.0.0.1:0", "--info", "nowhere.toml"], "nowhere.toml: there is no such file"),
        (&["respond", "--session", "127.0.0.1:0"], "no file with answers: set --info"),
        (&["respond", "--info", file], "set --session ADDR:PORT, --bloodmasters ADDR:PORT, or another protocol"),
        (&["respond", "--session", "here", "--info", file], "0.0.0.0:45555"),
    ] {
        let output = run(home.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let info = home.path().join("info.toml");
    fs::write(&info, "").unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let output = run(home.path(), ["respond", "--session", &addr, "--info", info.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is used by another program"), "{}", stderr(&output));
}
