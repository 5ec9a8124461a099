//! systemd is notified when a lobby is ready, reloads and stops (sd_notify).

use rallypoint_harness::{Lobby, Signal, rallypoint};
use std::{os::unix::net::UnixDatagram, time::Duration};

#[test]
fn ready_reloading_and_stopping_are_notified() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let notification = || {
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let mut command = rallypoint(home.path());
    command.args(["serve", "--lobby", "127.0.0.1:0", "--legacy", "off", "--http", "off"]).env("NOTIFY_SOCKET", &path);
    let lobby = Lobby::spawn(&mut command, 1);
    assert!(notification().contains("READY=1"));
    lobby.process().signal(Signal::HUP);
    let reloading = notification();
    assert!(reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert!(notification().contains("READY=1"));
    lobby.process().signal(Signal::TERM);
    assert!(notification().contains("STOPPING=1"));
    assert!(lobby.process().wait().status.success());
}
