//! A damaged copy differs in exactly one bit; the sender's bytes, the log and the other copy stay whole.

mod common;

use common::{address, secs};
use rallypoint_netsim::{Link, Network, Puppet};

const SENT: [u8; 40] = [0x55; 40];

#[test]
fn one_bit_of_one_copy() {
    let mut net = Network::new(1);
    net.record(10_000);
    net.set_default_link(Link::default().corrupt(0.3).duplicate(1.0));
    let a = net.add(address(1), Puppet::default());
    let b = net.add(address(2), Puppet::default());
    for _ in 0..1000 {
        net.with(a, |a, _| a.send(address(2), &SENT));
    }
    net.run_for(secs(1));
    let flipped = |bytes: &[u8]| bytes.iter().zip(SENT).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    let events = net.take_events(b);
    assert_eq!(events.len(), 2000);
    for (record, (_, (_, bytes))) in net.log().records().zip(&events) {
        assert_eq!(record.bytes, SENT);
        assert_eq!(flipped(bytes), u32::from(record.flipped.is_some()));
        if let Some(bit) = record.flipped {
            assert_eq!(bytes[bit / 8], SENT[bit / 8] ^ 1 << (bit % 8));
        }
    }
    let corrupted = net.counters(a, b).corrupted.datagrams;
    assert!(corrupted.abs_diff(600) < 60, "{corrupted}");
    // Each copy by itself: sometimes one is damaged, sometimes both.
    let pairs: Vec<_> = events.chunks(2).map(|pair| (flipped(&pair[0].1.1), flipped(&pair[1].1.1))).collect();
    assert!([(0, 0), (0, 1), (1, 0), (1, 1)].iter().all(|kind| pairs.contains(kind)));
}
