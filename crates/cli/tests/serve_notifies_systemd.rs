//! systemd learns when a lobby serves, reloads and stops (sd_notify).

use rallypoint_harness::{Lobby, Signal, rallypoint};
use std::{os::unix::net::UnixDatagram, time::Duration};

#[test]
fn ready_reloading_stopping() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let told = || {
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let mut command = rallypoint(home.path());
    command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off"]).env("NOTIFY_SOCKET", &path);
    let lobby = Lobby::spawn(&mut command, 1);
    assert!(told().contains("READY=1"));
    lobby.process().signal(Signal::HUP);
    let reloading = told();
    assert!(reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert!(told().contains("READY=1"));
    lobby.process().signal(Signal::TERM);
    assert!(told().contains("STOPPING=1"));
    assert!(lobby.process().wait().status.success());
}
