//! Datagrams for one receiver go out and come in in one piece, where the system can; elsewhere, one by one.

mod common;

use common::{any_v4, any_v6, eventually};
use rallypoint_machine::Transmit;
use rallypoint_udp::{RecvBatch, SendBatch, UdpSocket};
use std::net::SocketAddr;

const SIZE: usize = 100;

/// 70 datagrams that are numbered, the last one shorter: more than the system makes of one buffer.
fn fill(batch: &mut SendBatch, to: SocketAddr) {
    let mut is_filled = false;
    batch.fill(1, |out| {
        if std::mem::replace(&mut is_filled, true) {
            return None;
        }
        let start = out.len();
        (0..70).for_each(|number| out.extend_from_slice(&[number; SIZE]));
        out.truncate(start + 70 * SIZE - 30);
        Some(Transmit { to, len: out.len() - start, segment: Some(SIZE) })
    });
}

fn received(batch: &mut RecvBatch, socket: &UdpSocket, from: SocketAddr) -> Vec<(u8, usize)> {
    let mut seen = Vec::new();
    eventually("all have arrived", || {
        batch.receive(socket).unwrap();
        assert_eq!(batch.iter().len(), batch.iter().count());
        for datagram in batch.iter() {
            assert!(datagram.from == from && !datagram.is_cut());
            assert!(datagram.bytes.iter().all(|byte| *byte == datagram.bytes[0]));
            seen.push((datagram.bytes[0], datagram.len));
        }
        seen.len() >= 70
    });
    seen
}

#[test]
fn they_arrive_as_they_were_whatever_either_side_can() {
    let expected: Vec<_> = (0..70).map(|number| (number, if number < 69 { SIZE } else { SIZE - 30 })).collect();
    for any in [any_v4(), any_v6()] {
        for (segments, coalesces) in [(true, true), (true, false), (false, true), (false, false)] {
            let [from, to] = [any, any].map(|any| UdpSocket::bind(any, 1 << 20).unwrap());
            if !segments {
                from.stop_segmenting();
            }
            let mut incoming = if coalesces && to.coalesce() { RecvBatch::coalesced() } else { RecvBatch::new(SIZE) };
            let mut outgoing = SendBatch::default();
            for _ in 0..3 {
                fill(&mut outgoing, to.local_addr());
                assert_eq!(outgoing.flush(&[&from]), None);
                assert!(outgoing.is_empty());
                assert_eq!(received(&mut incoming, &to, from.local_addr()), expected);
            }
            assert_eq!(to.received(), 210);
        }
    }
}

#[test]
fn what_the_system_cannot_cut_is_sent_one_by_one() {
    let [from, to] = [any_v4(), any_v4()].map(|any| UdpSocket::bind(any, 1 << 20).unwrap());
    let mut outgoing = SendBatch::default();
    // Longer than the loopback's datagrams may be in one piece: the system refuses to make segments of it.
    let mut datagrams = [Transmit { to: to.local_addr(), len: 1_500, segment: Some(0xffff) }].into_iter();
    outgoing.fill(10, |out| {
        let transmit = datagrams.next()?;
        out.resize(out.len() + transmit.len, 7);
        Some(transmit)
    });
    assert_eq!(outgoing.flush(&[&from]), None);
    let mut incoming = RecvBatch::new(2_000);
    eventually("it has arrived", || {
        incoming.receive(&to).unwrap();
        incoming.iter().any(|datagram| datagram.len == 1_500)
    });
}
