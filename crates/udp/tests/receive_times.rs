//! The system's receive times: earlier than the datagram is taken from the socket, and on the clock of `Instant`.
#![cfg(target_os = "linux")]

use rallypoint_udp::{RecvBatch, UdpSocket};
use std::time::{Duration, Instant};

/// The two clocks may be adjusted against each other.
const TOLERANCE: Duration = Duration::from_millis(100);

fn received(socket: &UdpSocket, batch: &mut RecvBatch) -> Vec<Option<Instant>> {
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
    let before = Instant::now();
    let received = received(&socket, &mut RecvBatch::with_receive_times(1_500));
    let [Some(at)] = received[..] else { panic!("{received:?}") };
    assert!(at + TOLERANCE > before && at < Instant::now() + TOLERANCE);
}

#[test]
fn without_the_option_there_is_no_time() {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
    assert_eq!(received(&socket, &mut RecvBatch::with_receive_times(1_500)), [None]);
    assert!(socket.enable_receive_times());
    assert_eq!(received(&socket, &mut RecvBatch::new(1_500)), [None]);
}
