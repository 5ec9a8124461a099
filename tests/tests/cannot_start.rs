//! A lobby that cannot start says in one sentence what to do, and ends with a code that is not 0.

use rallypoint_harness::{Lobby, run, stderr, stdout};
use std::net::{TcpListener, UdpSocket};
use std::process::Output;

fn serve(args: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    run(home.path(), [&["serve", "--legacy", "off", "--http", "off"][..], args].concat())
}

fn is_refused(ended: &Output, sentence: &str) {
    assert_eq!((ended.status.code(), &*stdout(ended)), (Some(1), ""), "{ended:?}");
    let log = stderr(ended);
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains(sentence), "{sentence:?} is not in {last:?}");
}

#[test]
fn a_port_in_use() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = tcp.local_addr().unwrap().to_string();
    let sentence =
        format!("TCP {addr} is used by another program: stop that program, or choose another port with --lobby");
    is_refused(&serve(&["--lobby", &addr]), &sentence);
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = udp.local_addr().unwrap().to_string();
    is_refused(&serve(&["--lobby", &addr]), &format!("UDP {addr} is used by another program"));
}

#[test]
fn a_second_lobby_at_the_same_place() {
    let lobby = Lobby::start();
    is_refused(&serve(&["--lobby", &lobby.v4().to_string()]), "is used by another program");
    let data = lobby.data("").display().to_string();
    is_refused(&serve(&["--lobby", "127.0.0.1:0", "--data-dir", &data]), "is used by another lobby");
}

#[test]
fn no_place_for_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let inside = file.join("data").display().to_string();
    is_refused(&serve(&["--lobby", "127.0.0.1:0", "--data-dir", &inside]), "choose another --data-dir");
}

#[test]
fn an_address_of_another_machine() {
    is_refused(&serve(&["--lobby", "203.0.113.1:0"]), "this machine does not have the address 203.0.113.1");
}

#[test]
fn wrong_usage_has_a_code_of_its_own() {
    for args in [&["--lobby", "nonsense"][..], &["--set", "lobby.lease"], &["--nonsense"], &["--set", "lobby.leese=2s"]]
    {
        let ended = serve(args);
        assert_eq!((ended.status.code(), &*stdout(&ended)), (Some(2), ""), "{args:?}");
    }
}
