//! A lobby tells systemd what it is doing (sd_notify).

use rallypoint_harness::{Lobby, TIMEOUT};
use std::os::unix::net::UnixDatagram;

#[test]
fn ready_reloading_and_stopping_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let systemd = UnixDatagram::bind(&path).unwrap();
    systemd.set_read_timeout(Some(TIMEOUT)).unwrap();
    let told = || {
        let mut buffer = [0; 1_024];
        let length = systemd.recv(&mut buffer).expect("a message");
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let lobby = Lobby::builder().config("").variable("NOTIFY_SOCKET", path.to_str().unwrap()).start();
    assert_eq!(told().trim(), "READY=1");
    lobby.reload("");
    let reloading = told();
    assert!(reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert_eq!(told().trim(), "READY=1");
    assert_eq!(lobby.stop().status.code(), Some(0));
    assert_eq!(told().trim(), "STOPPING=1");
}
