//! Datagrams for one destination are sent and received in one buffer where the system can (GSO, GRO), elsewhere one by one.

use crate::common;

use common::{any_v4, any_v6, eventually};
use rallypoint_machine::Transmit;
use rallypoint_udp::{RecvBatch, SendBatch, UdpSocket};
use std::net::SocketAddr;

const SIZE: usize = 100;

/// Queues 70 numbered datagrams, the last one shorter: more than the kernel segments from one buffer.
fn fill(batch: &mut SendBatch, to: SocketAddr) {
    let mut is_filled = false;
    batch.fill(1, |out| {
        if std::mem::replace(&mut is_filled, true) {
            return None;
        }
        let start = out.len();
        (0..70).for_each(|number| out.extend_from_slice(&[number; SIZE]));
        out.truncate(start + 70 * SIZE - 30);
        Some(Transmit { to, len: out.len() - start, segment: Some(SIZE), from: None })
    });
}

/// Number and length of each of 70 datagrams.
fn recv_all(batch: &mut RecvBatch, socket: &UdpSocket, from: SocketAddr) -> Vec<(u8, usize)> {
    let mut received = Vec::new();
    eventually("all have arrived", || {
        batch.recv(socket).unwrap();
        assert_eq!(batch.iter().len(), batch.iter().count());
        for datagram in batch.iter() {
            assert!(datagram.from == from && !datagram.is_truncated());
            assert!(datagram.bytes.iter().all(|byte| *byte == datagram.bytes[0]));
            received.push((datagram.bytes[0], datagram.len));
        }
        received.len() >= 70
    });
    received
}

#[test]
fn datagrams_arrive_unchanged_whatever_either_side_supports() {
    let expected: Vec<_> = (0..70).map(|number| (number, if number < 69 { SIZE } else { SIZE - 30 })).collect();
    for any in [any_v4(), any_v6()] {
        for (gso, gro) in [(true, true), (true, false), (false, true), (false, false)] {
            let [from, to] = [any, any].map(|any| UdpSocket::bind(any, 1 << 20).unwrap());
            if !gso {
                from.disable_gso();
            }
            let mut incoming = if gro && to.enable_gro() { RecvBatch::with_gro() } else { RecvBatch::new(SIZE) };
            let mut outgoing = SendBatch::default();
            for _ in 0..3 {
                fill(&mut outgoing, to.local_addr());
                assert_eq!(outgoing.flush(&[&from]), None);
                assert!(outgoing.is_empty());
                assert_eq!(recv_all(&mut incoming, &to, from.local_addr()), expected);
            }
            assert_eq!(to.received(), 210);
        }
    }
}

#[cfg(all(target_os = "linux", not(rallypoint_portable)))]
#[test]
fn local_addresses_are_reported_with_and_without_gro() {
    for any in ["0.0.0.0:0", "[::]:0"] {
        let to = UdpSocket::bind(any.parse().unwrap(), 1 << 20).unwrap();
        to.enable_local_addr().unwrap();
        to.enable_gro();
        let loopback = if to.local_addr().is_ipv4() { any_v4() } else { any_v6() };
        let from = UdpSocket::bind(loopback, 1 << 20).unwrap();
        let mut outgoing = SendBatch::default();
        fill(&mut outgoing, (loopback.ip(), to.local_addr().port()).into());
        assert_eq!(outgoing.flush(&[&from]), None);
        let mut incoming = RecvBatch::with_gro();
        let mut count = 0;
        eventually("all have arrived", || {
            incoming.recv(&to).unwrap();
            assert!(incoming.iter().all(|datagram| datagram.local == Some(loopback.ip())));
            count += incoming.len();
            count == 70
        });
    }
}

#[test]
fn datagrams_that_cannot_be_segmented_are_sent_one_by_one() {
    let [from, to] = [any_v4(), any_v4()].map(|any| UdpSocket::bind(any, 1 << 20).unwrap());
    let mut outgoing = SendBatch::default();
    // Longer than the loopback's datagrams may be in one buffer: the system refuses to segment it.
    let mut datagrams = [Transmit { to: to.local_addr(), len: 1_500, segment: Some(0xffff), from: None }].into_iter();
    outgoing.fill(10, |out| {
        let transmit = datagrams.next()?;
        out.resize(out.len() + transmit.len, 7);
        Some(transmit)
    });
    assert_eq!(outgoing.flush(&[&from]), None);
    let mut incoming = RecvBatch::new(2_000);
    eventually("the datagram has arrived", || {
        incoming.recv(&to).unwrap();
        incoming.iter().any(|datagram| datagram.len == 1_500)
    });
}
