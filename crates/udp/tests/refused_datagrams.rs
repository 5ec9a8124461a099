//! A peer that refuses datagrams does not disturb what others send: on Windows a socket would otherwise fail with error 10054.

use crate::common;

use common::{any_v4, eventually};
use rallypoint_machine::Transmit;
use rallypoint_udp::{RecvBatch, SendBatch, UdpSocket};

#[test]
fn receiving_continues_after_a_refusal() {
    let socket = UdpSocket::bind(any_v4(), 1 << 20).unwrap();
    let peer = std::net::UdpSocket::bind(any_v4()).unwrap();
    let mut incoming = RecvBatch::new(100);
    let mut outgoing = SendBatch::default();
    for round in 0..10u8 {
        // Nothing listens at this port any more.
        let closed = std::net::UdpSocket::bind(any_v4()).unwrap().local_addr().unwrap();
        let mut once = Some(());
        outgoing.fill(1, |out| {
            once.take()?;
            out.extend_from_slice(b"refused");
            Some(Transmit::one(closed, 7))
        });
        assert_eq!(outgoing.flush(&[&socket]), None);
        peer.send_to(&[round], socket.local_addr()).unwrap();
        eventually("the peer's datagram has arrived", || {
            incoming.recv(&socket).expect("no error of another peer");
            incoming.iter().any(|datagram| datagram.bytes == [round])
        });
    }
}
