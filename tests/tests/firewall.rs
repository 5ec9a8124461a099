//! The firewall rules of docs/install.md let a lobby be used from another machine, and nothing else.

#![cfg(target_os = "linux")]

use rallypoint_harness::{CABLES, Lobby, Process, SecondMachine, Signal, is_inside_a_namespace, rallypoint, skip};
use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
};

const CHAPTER: &str = include_str!("../../docs/install.md");

#[test]
fn the_documented_rules_let_in_what_a_lobby_needs_and_nothing_else() {
    if !Command::new("nft").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        skip("nft is not installed");
        return;
    }
    if !is_inside_a_namespace("firewall::the_documented_rules_let_in_what_a_lobby_needs_and_nothing_else") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let rules = home.path().join("rallypoint.nft");
    let (_, block) = CHAPTER.split_once("```nft\n").expect("the chapter has rules");
    fs::write(&rules, block.split("```").next().unwrap()).unwrap();
    let is_loaded = Command::new("nft").arg("-f").arg(&rules).status().unwrap().success();
    if !is_loaded {
        skip("the kernel has no nftables");
        return;
    }

    // The namespace has no other user of the default ports.
    let machine = SecondMachine::start();
    let [cable, _] = CABLES;
    let mut command = rallypoint(home.path());
    command.args(["serve", "--lobby", "0.0.0.0:29944", "--legacy", "0.0.0.0:29942", "--http", "0.0.0.0:29950"]);
    command.arg("--data-dir").arg(home.path().join("data"));
    let lobby = Lobby::spawn(&mut command, 1);
    let other = TcpListener::bind("0.0.0.0:8080").unwrap();

    for port in [29_942, 29_944, 29_950] {
        assert!(connects(&machine, cable.here, port), "TCP {port} is open");
    }
    assert!(!connects(&machine, cable.here, other.local_addr().unwrap().port()), "another port is not");

    // The registration arrives over UDP, and the list is read over TCP.
    let there = announce(&machine, home.path(), cable.here);
    lobby.wait_until_listed(&["Behind a firewall"]);
    there.signal(Signal::INT);
    assert!(there.wait().status.success());
    lobby.wait_until_listed(&[]);
}

/// Whether a connection from the second machine succeeds. A packet that is dropped has no answer, so this waits for one.
fn connects(machine: &SecondMachine, host: &str, port: u16) -> bool {
    let mut connect = Command::new("timeout");
    connect.args(["2", "bash", "-c", &format!("exec 3<>/dev/tcp/{host}/{port}")]);
    machine.command(&connect).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn announce(machine: &SecondMachine, home: &Path, lobby: &str) -> Process {
    let mut command = rallypoint(home);
    command.args(["announce", "--name", "Behind a firewall", "--port", "8190", "--transport", "udp", "--lobby", lobby]);
    Process::spawn(&mut machine.command(&command))
}
