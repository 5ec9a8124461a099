//! A socket with an error queue reports which of its datagrams were not delivered, and still delivers the others.
#![cfg(all(target_os = "linux", not(rallypoint_portable)))]

use crate::common;

use common::TIMEOUT;
use rallypoint_machine::{DeliveryError, Transmit};
use rallypoint_udp::{SendBatch, UdpSocket};
use std::{io::ErrorKind, net::SocketAddr, time::Instant};

fn send(batch: &mut SendBatch, socket: &UdpSocket, to: SocketAddr) {
    let mut once = Some(());
    batch.fill(1, |out| {
        once.take()?;
        out.extend_from_slice(b"hello");
        Some(Transmit::one(to, 5))
    });
    assert_eq!(batch.flush(&[socket]), None);
}

/// An address where nothing listens.
fn closed_port(host: &str) -> SocketAddr {
    std::net::UdpSocket::bind(host).unwrap().local_addr().unwrap()
}

fn wait_error(socket: &UdpSocket) -> (SocketAddr, ErrorKind, Vec<u8>) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(DeliveryError { to, error, quoted }) = socket.recv_error().unwrap() {
            return (to, error.kind(), quoted);
        }
        assert!(Instant::now() < deadline, "no error was reported");
        std::thread::yield_now();
    }
}

#[test]
fn a_closed_port_is_reported_with_its_address() {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(socket) = UdpSocket::bind(host.parse().unwrap(), 1 << 16) else { continue };
        socket.enable_error_queue().unwrap();
        assert!(socket.recv_error().unwrap().is_none());
        let mut batch = SendBatch::default();
        for to in [closed_port(host), closed_port(host)] {
            send(&mut batch, &socket, to);
            assert_eq!(wait_error(&socket), (to, ErrorKind::ConnectionRefused, b"hello".to_vec()));
        }
        assert!(socket.recv_error().unwrap().is_none());
    }
}

#[test]
fn an_error_about_one_destination_does_not_cost_another_its_datagram() {
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(TIMEOUT)).unwrap();
    let to = receiver.local_addr().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 16).unwrap();
    socket.enable_error_queue().unwrap();
    let mut batch = SendBatch::default();
    // On loopback the error is queued before the next datagram is sent.
    for _ in 0..20 {
        send(&mut batch, &socket, closed_port("127.0.0.1:0"));
        send(&mut batch, &socket, to);
        let mut bytes = [0; 16];
        assert_eq!(receiver.recv(&mut bytes).unwrap(), 5);
    }
}
