//! Replies are encoded when the info is set: a query allocates nothing.

use crate::common;
use common::*;
use rallypoint_machine::Machine;
use std::time::Instant;

#[test]
fn no_allocation_per_reply() {
    let mut responder = responder(&info(4));
    let now = Instant::now();
    let mut out = Vec::with_capacity(1 << 20);
    let used = allocation_counter::measure(|| {
        for _ in 0..100 {
            for query in [&[0x80][..], &[0x88], &[7, 0, 13, 1, 2, 3, 4], &[7, 0, 13, 1, 2, 3, 4, 9], b"nonsense"] {
                responder.handle_datagram(now, prober_address(), query);
            }
            while responder.poll_transmit(now, &mut out).is_some() {}
            out.clear();
        }
    });
    assert_eq!(used.count_total, 0);
    assert_eq!(responder.stats().answered, 400);
}
