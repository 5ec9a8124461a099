//! The system's receive times: earlier than the datagram is taken from the socket, and on the clock of `Instant`.
#![cfg(all(target_os = "linux", not(rallypoint_portable)))]

use rallypoint_udp::{RecvBatch, UdpSocket};
use std::time::Instant;

fn received(socket: &UdpSocket, batch: &mut RecvBatch) -> Vec<Option<Instant>> {
    batch.recv(socket).unwrap();
    send(socket);
    take(socket, batch)
}

/// Over loopback, the datagram is in the socket when this returns.
fn send(socket: &UdpSocket) {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"hello", socket.local_addr()).unwrap();
}

fn take(socket: &UdpSocket, batch: &mut RecvBatch) -> Vec<Option<Instant>> {
    while batch.is_empty() {
        batch.recv(socket).unwrap();
    }
    batch.iter().map(|datagram| datagram.received_at).collect()
}

/// Whether the time of a datagram is that of its way into the socket, and not that at which it was taken from there.
fn is_time_of_arrival(socket: &UdpSocket, batch: &mut RecvBatch) -> bool {
    batch.recv(socket).unwrap();
    let before = Instant::now();
    send(socket);
    let after = Instant::now();
    take(socket, batch)[0].is_some_and(|at| (before..=after).contains(&at))
}

#[test]
fn a_datagram_has_the_time_of_its_arrival() {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
    assert!(socket.enable_receive_times());
    let mut batch = RecvBatch::with_receive_times(1_500);
    // The system begins to record times a moment after the first socket has requested it. A time that was taken when the datagram
    // was read would be too late every time.
    assert!((0..100_000).any(|_| is_time_of_arrival(&socket, &mut batch)));
}

#[test]
fn without_the_option_there_is_no_time() {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 20).unwrap();
    assert_eq!(received(&socket, &mut RecvBatch::with_receive_times(1_500)), [None]);
    assert!(socket.enable_receive_times());
    assert_eq!(received(&socket, &mut RecvBatch::new(1_500)), [None]);
}
