//! Facilities that a platform lacks are refused, and everything that does not need them works.
#![cfg(not(all(target_os = "linux", not(rallypoint_portable))))]

use crate::common;

use common::any_v4;
use rallypoint_udp::UdpSocket;
use std::io::ErrorKind;

#[test]
fn facilities_of_linux_are_refused_elsewhere() {
    let socket = UdpSocket::bind(any_v4(), 1 << 20).unwrap();
    assert!(!socket.is_gso_enabled() && !socket.enable_gro() && !socket.enable_receive_times());
    assert_eq!(socket.enable_local_addr().unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(socket.enable_error_queue().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(socket.recv_error().unwrap().is_none());
    assert_eq!(socket.dropped(), 0);
}
