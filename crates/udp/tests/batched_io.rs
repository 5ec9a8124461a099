//! Datagrams are sent and received in batches; truncated datagrams report their real length; nothing empty is ever sent.

use crate::common;

use common::{any_v4, any_v6, eventually};
use rallypoint_machine::Transmit;
use rallypoint_udp::{RecvBatch, SendBatch, UdpSocket};
use std::net::SocketAddr;

/// A batch of datagrams of these lengths.
fn filled(datagrams: &[(SocketAddr, usize)]) -> SendBatch {
    let mut batch = SendBatch::default();
    let mut remaining = datagrams.iter();
    batch.fill(usize::MAX, |out| {
        let &(to, length) = remaining.next()?;
        out.resize(out.len() + length, b'x');
        Some(Transmit::one(to, length))
    });
    batch
}

#[test]
fn long_datagrams_are_truncated_and_report_their_length() {
    let server = UdpSocket::bind(any_v4(), 1 << 20).unwrap();
    let to = server.local_addr();
    let client = UdpSocket::bind(any_v4(), 1 << 20).unwrap();
    assert_eq!(filled(&[(to, 10), (to, 11), (to, 60_000)]).flush(&[&client]), None);
    let mut batch = RecvBatch::new(10);
    eventually("the datagrams have arrived", || {
        batch.recv(&server).unwrap();
        !batch.is_empty()
    });
    let lengths: Vec<_> =
        batch.iter().map(|datagram| (datagram.bytes.len(), datagram.len, datagram.is_truncated())).collect();
    assert_eq!(lengths, [(10, 10, false), (10, 11, true), (10, 60_000, true)]);
    assert!(batch.iter().all(|datagram| datagram.from == client.local_addr()));
    batch.recv(&server).unwrap();
    assert_eq!((batch.len(), batch.iter().count()), (0, 0), "nothing more");
}

#[test]
fn an_unsendable_datagram_does_not_block_the_rest() {
    let servers = [any_v4(), any_v6()].map(|addr| UdpSocket::bind(addr, 1 << 20).unwrap());
    let [v4, v6] = servers.each_ref().map(UdpSocket::local_addr);
    let client = UdpSocket::bind(any_v4(), 1 << 20).unwrap();
    // Too long for any network, no socket of that family, port 0, empty (B10).
    let port_zero = "127.0.0.1:0".parse().unwrap();
    let mut batch = filled(&[(v4, 1), (v4, 70_000), (v4, 2), (v6, 3), (port_zero, 4), (v4, 0), (v4, 5)]);
    assert_eq!(batch.flush(&[&client]), None);
    assert!(batch.is_empty());
    let mut batch = RecvBatch::new(100);
    let mut lengths = Vec::new();
    eventually("all have arrived", || {
        batch.recv(&servers[0]).unwrap();
        lengths.extend(batch.iter().map(|datagram| datagram.len));
        lengths.last() == Some(&5)
    });
    assert_eq!(lengths, [1, 2, 5]);
    assert_eq!(servers[1].received(), 0);
}

#[cfg(all(target_os = "linux", not(rallypoint_portable)))]
#[test]
fn drops_of_a_full_buffer_are_counted() {
    let server = UdpSocket::bind(any_v4(), 4_096).unwrap();
    let client = UdpSocket::bind(any_v4(), 4_096).unwrap();
    assert_eq!(filled(&[(server.local_addr(), 1_000); 100]).flush(&[&client]), None);
    let mut batch = RecvBatch::new(1_000);
    let mut received = 0;
    eventually("every datagram is received or counted as dropped", || {
        batch.recv(&server).unwrap();
        received += batch.len() as u64;
        received + server.dropped() == 100
    });
    assert!(server.dropped() > 0);
    assert_eq!(server.received(), received);
}
