//! A lobby that cannot start prints one sentence with a solution, and exits with a code other than 0.

use rallypoint_harness::{run, stderr, stdout};
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
