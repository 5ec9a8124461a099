//! A socket that keeps errors tells whom its datagrams did not reach; the others are reached nevertheless.

use rallypoint_machine::Transmit;
use rallypoint_udp::{SendBatch, UdpSocket, Undelivered};
use std::{
    io::ErrorKind,
    net::SocketAddr,
    time::{Duration, Instant},
};

fn send(batch: &mut SendBatch, socket: &UdpSocket, to: SocketAddr) {
    let mut once = Some(());
    batch.fill(1, |out| {
        once.take()?;
        out.extend_from_slice(b"hello");
        Some(Transmit::one(to, 5))
    });
    assert_eq!(batch.flush(&[socket]), None);
}

fn closed(host: &str) -> SocketAddr {
    std::net::UdpSocket::bind(host).unwrap().local_addr().unwrap()
}

fn next_error(socket: &UdpSocket) -> (SocketAddr, ErrorKind, Vec<u8>) {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(Undelivered { to, error, quoted }) = socket.next_error().unwrap() {
            return (to, error.kind(), quoted);
        }
        assert!(Instant::now() < end, "nothing was told");
        std::thread::yield_now();
    }
}

#[test]
fn a_closed_port_is_told_with_its_address() {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(socket) = UdpSocket::bind(host.parse().unwrap(), 1 << 16) else { continue };
        socket.keep_errors().unwrap();
        assert!(socket.next_error().unwrap().is_none());
        let (mut batch, ports) = (SendBatch::default(), [closed(host), closed(host)]);
        for to in ports {
            send(&mut batch, &socket, to);
            assert_eq!(next_error(&socket), (to, ErrorKind::ConnectionRefused, b"hello".to_vec()));
        }
        assert!(socket.next_error().unwrap().is_none());
    }
}

#[test]
fn an_error_about_one_does_not_cost_another_its_datagram() {
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let to = receiver.local_addr().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), 1 << 16).unwrap();
    socket.keep_errors().unwrap();
    let mut batch = SendBatch::default();
    // On loopback the error is there when the next datagram is sent.
    for _ in 0..20 {
        send(&mut batch, &socket, closed("127.0.0.1:0"));
        send(&mut batch, &socket, to);
        let mut bytes = [0; 16];
        assert_eq!(receiver.recv(&mut bytes).unwrap(), 5);
    }
}
