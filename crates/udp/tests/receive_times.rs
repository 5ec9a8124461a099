//! The system's receive times: earlier than the datagram is taken from the socket, and on the clock of `Instant`.
#![cfg(all(target_os = "linux", not(rallypoint_portable)))]

use rallypoint_udp::{RecvBatch, UdpSocket};
use std::time::Instant;

fn received(socket: &UdpSocket, batch: &mut RecvBatch) -> Vec<Option<Instant>> {
    batch.recv(socket).unwrap();
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"hello", socket.local_addr()).unwrap();
    while batch.is_empty() {
        batch.recv(socket).unwrap();
    }
    batch.iter().map(|datagram| datagram.received_at).collect()
}

#[test]
fn a_datagram_has_the_time_of_its_arrival() {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
    assert!(socket.enable_receive_times());
    let mut batch = RecvBatch::with_receive_times(1_500);
    // There is no time for a datagram during whose way the system's clock is set.
    let at = (0..10).find_map(|_| received(&socket, &mut batch)[0]).expect("a time");
    assert!(at <= Instant::now());
}

#[test]
fn without_the_option_there_is_no_time() {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
    assert_eq!(received(&socket, &mut RecvBatch::with_receive_times(1_500)), [None]);
    assert!(socket.enable_receive_times());
    assert_eq!(received(&socket, &mut RecvBatch::new(1_500)), [None]);
}
