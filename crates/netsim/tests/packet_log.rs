//! The log holds every datagram and what became of it, within its limit, as text and as a packet capture.

use crate::common;

use common::{Echo, Ping, address, ms, secs};
use rallypoint_netsim::{DeliveryStatus, Link, ManualPeer, Network, Pcap};

#[test]
fn every_status_has_its_line() {
    let mut net = Network::new(1);
    net.record(100);
    let a = net.add(address(1), ManualPeer::default());
    let b = net.add(address(2), ManualPeer::default());
    let send = |net: &mut Network, link: Link, text: &[u8]| {
        net.set_link(a, b, link.delay(ms(20)));
        net.with(a, |a, _| a.send(address(2), text));
        net.run_for(ms(1));
    };
    let link = Link::default();
    send(&mut net, link, b"a longer text than is shown");
    send(&mut net, link.loss(1.0), b"lost");
    send(&mut net, link.bursts(1.0, 9.0), b"lost");
    send(&mut net, link.bottleneck(0, 0), b"lost");
    send(&mut net, link.duplicate(1.0), b"twice");
    send(&mut net, link.corrupt(1.0), b"damaged");
    net.partition(a, b, true);
    send(&mut net, link, b"cut");
    net.partition(a, b, false);
    net.set_filter(|_| rallypoint_netsim::FilterAction::Drop);
    send(&mut net, link, b"filtered");
    net.clear_filter();
    net.with(a, |a, _| a.send(address(3), b"who?"));
    net.inject(address(3), address(2), b"boo");
    net.run_for(ms(15));
    send(&mut net, link, b"late");
    let expected = [
        "0.000000 10.0.0.1:4000 > 10.0.0.2:4000 len 27: delivered 0.020000 | 61 20 6c 6f 6e 67 65 72 20 74 65 78 74 20 74 68 ..",
        "0.001000 10.0.0.1:4000 > 10.0.0.2:4000 len 4: lost | 6c 6f 73 74",
        "0.002000 10.0.0.1:4000 > 10.0.0.2:4000 len 4: lost in a burst | 6c 6f 73 74",
        "0.003000 10.0.0.1:4000 > 10.0.0.2:4000 len 4: queue full | 6c 6f 73 74",
        "0.004000 10.0.0.1:4000 > 10.0.0.2:4000 len 5: delivered 0.024000 | 74 77 69 63 65",
        "0.004000 10.0.0.1:4000 > 10.0.0.2:4000 len 5: delivered 0.024000, second copy | 74 77 69 63 65",
        "0.005000 10.0.0.1:4000 > 10.0.0.2:4000 len 7: arrives 0.025000, bit 18 flipped | 64 61 6d 61 67 65 64",
        "0.006000 10.0.0.1:4000 > 10.0.0.2:4000 len 3: partitioned | 63 75 74",
        "0.007000 10.0.0.1:4000 > 10.0.0.2:4000 len 8: filtered | 66 69 6c 74 65 72 65 64",
        "0.008000 10.0.0.1:4000 > 10.0.0.3:4000 len 4: no receiver | 77 68 6f 3f",
        "0.008000 10.0.0.3:4000 > 10.0.0.2:4000 len 3: delivered 0.008000, forged | 62 6f 6f",
        "0.023000 10.0.0.1:4000 > 10.0.0.2:4000 len 4: arrives 0.043000 | 6c 61 74 65",
    ];
    let log = net.log().to_string();
    assert_eq!(log.lines().map(str::trim).collect::<Vec<_>>(), expected);
}

#[test]
fn the_log_keeps_its_limit() {
    let mut net = Network::new(1);
    net.set_default_link(Link::default().delay(secs(1)));
    net.record(10);
    net.add(address(1), Echo::default());
    net.add(address(2), Ping::new(net.now(), address(1), ms(10)));
    net.run_for(secs(3));
    let log = net.log();
    assert_eq!(log.records().len() as u64, 10);
    assert_eq!(log.records().len() as u64 + log.dropped(), net.totals().sent.datagrams);
    assert!(log.to_string().starts_with(&format!("({} older datagrams not kept)\n", log.dropped())));
    // Datagrams whose record is dropped before they arrive do not affect the others.
    assert!(log.records().all(|record| matches!(record.status, DeliveryStatus::InFlight { .. })));
    net.record(0);
    net.run_for(secs(3));
    assert_eq!(net.log().records().len(), 0);
}

/// Sum of 16-bit words as in IP and UDP; over a correct header including its checksum it is all ones.
fn sum(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0u16, |sum, pair| {
        let word = u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]);
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

#[test]
fn a_capture_has_headers_with_correct_checksums() {
    let mut file = Vec::new();
    let mut pcap = Pcap::new(&mut file).unwrap();
    let v6a = "[2001:db8::1]:5".parse().unwrap();
    let v6b = "[2001:db8::2]:6".parse().unwrap();
    pcap.write(secs(3), address(1), address(2), b"odd").unwrap();
    pcap.write(ms(1), v6a, v6b, b"even").unwrap();
    assert_eq!(file.len(), 24 + 16 + 20 + 8 + 3 + 16 + 40 + 8 + 4);
    assert_eq!(file[..4], [0x4d, 0x3c, 0xb2, 0xa1]);

    let (v4, v6) = file[24..].split_at(16 + 31);
    assert_eq!(v4[..16], [3, 0, 0, 0, 0, 0, 0, 0, 31, 0, 0, 0, 31, 0, 0, 0]);
    assert_eq!(sum(&v4[16..36]), 0xffff);
    assert_eq!(sum(&[&v4[28..36], &[0, 17, 0, 11], &v4[36..]].concat()), 0xffff);
    assert_eq!(v4[44..], *b"odd");

    assert_eq!(v6[4..12], [0x40, 0x42, 0x0f, 0, 52, 0, 0, 0]);
    assert_eq!(v6[16..24], [0x60, 0, 0, 0, 0, 12, 17, 64]);
    assert_eq!(sum(&[&v6[24..56], &[0, 17, 0, 12], &v6[56..]].concat()), 0xffff);
}

#[test]
fn a_capture_contains_every_datagram_once() {
    let mut net = Network::new(1);
    net.record(100);
    net.set_default_link(Link::default().loss(0.5).duplicate(1.0));
    let a = net.add(address(1), ManualPeer::default());
    net.with(a, |a, _| (0..10).for_each(|_| a.send(address(2), b"1234")));
    let mut file = Vec::new();
    net.log().write_pcap(&mut file).unwrap();
    assert_eq!(file.len(), 24 + 10 * (16 + 28 + 4));
}
