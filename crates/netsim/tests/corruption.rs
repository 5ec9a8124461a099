//! A corrupted copy differs in exactly one bit; the sender's bytes, the log and the other copy stay intact.

use crate::common;

use common::{address, secs};
use rallypoint_netsim::{Link, ManualPeer, Network};

const SENT: [u8; 40] = [0x55; 40];

#[test]
fn exactly_one_bit_of_a_copy_is_flipped() {
    let mut net = Network::new(1);
    net.record(10_000);
    net.set_default_link(Link::default().corrupt(0.3).duplicate(1.0));
    let a = net.add(address(1), ManualPeer::default());
    let b = net.add(address(2), ManualPeer::default());
    for _ in 0..1000 {
        net.with(a, |a, _| a.send(address(2), &SENT));
    }
    net.run_for(secs(1));
    let flipped_bits = |bytes: &[u8]| bytes.iter().zip(SENT).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    let events = net.take_events(b);
    assert_eq!(events.len(), 2000);
    for (record, (_, (_, bytes))) in net.log().records().zip(&events) {
        assert_eq!(record.bytes, SENT);
        assert_eq!(flipped_bits(bytes), u32::from(record.flipped_bit.is_some()));
        if let Some(bit) = record.flipped_bit {
            assert_eq!(bytes[bit / 8], SENT[bit / 8] ^ 1 << (bit % 8));
        }
    }
    let corrupted = net.counters(a, b).corrupted.datagrams;
    assert!(corrupted.abs_diff(600) < 60, "{corrupted}");
    // Copies are independent: sometimes one is corrupted, sometimes both.
    let pairs: Vec<_> = events.chunks(2).map(|pair| (flipped_bits(&pair[0].1.1), flipped_bits(&pair[1].1.1))).collect();
    assert!([(0, 0), (0, 1), (1, 0), (1, 1)].iter().all(|kind| pairs.contains(kind)));
}
