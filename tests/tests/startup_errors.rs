//! A lobby that cannot start prints one sentence with a solution, and exits with a code other than 0.

use rallypoint_harness::{Lobby, run, stderr, stdout};
use std::{
    net::{TcpListener, UdpSocket},
    process::Output,
};

fn serve(args: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    run(home.path(), [&["serve", "--legacy", "off", "--http", "off"][..], args].concat())
}

fn assert_fails(output: &Output, sentence: &str) {
    assert_eq!((output.status.code(), &*stdout(output)), (Some(1), ""), "{output:?}");
    let log = stderr(output);
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains(sentence), "{sentence:?} is not in {last:?}");
}

#[test]
fn a_port_in_use() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = tcp.local_addr().unwrap().to_string();
    let sentence =
        format!("TCP {addr} is used by another program: stop that program, or choose another port with --lobby");
    assert_fails(&serve(&["--lobby", &addr]), &sentence);
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = udp.local_addr().unwrap().to_string();
    assert_fails(&serve(&["--lobby", &addr]), &format!("UDP {addr} is used by another program"));
}

#[test]
fn a_second_lobby_on_the_same_port_or_data_directory() {
    let lobby = Lobby::start();
    assert_fails(&serve(&["--lobby", &lobby.v4().to_string()]), "is used by another program");
    let data = lobby.data("").display().to_string();
    assert_fails(&serve(&["--lobby", "127.0.0.1:0", "--data-dir", &data]), "is used by another lobby");
}

#[test]
fn an_unusable_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let inside = file.join("data").display().to_string();
    assert_fails(&serve(&["--lobby", "127.0.0.1:0", "--data-dir", &inside]), "choose another --data-dir");
}

#[test]
fn an_address_of_another_machine() {
    assert_fails(&serve(&["--lobby", "203.0.113.1:0"]), "this machine does not have the address 203.0.113.1");
}

#[test]
fn usage_errors_have_their_own_exit_code() {
    for args in [&["--lobby", "nonsense"][..], &["--set", "lobby.lease"], &["--nonsense"], &["--set", "lobby.leese=2s"]]
    {
        let output = serve(args);
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(2), ""), "{args:?}");
    }
}
