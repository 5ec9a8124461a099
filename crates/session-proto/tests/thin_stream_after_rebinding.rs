//! A stream of small messages continues at its rate after its client's address has changed (S31), on a long path with loss.

use crate::common;

use common::*;
use rallypoint_netsim::Link;
use rallypoint_session_proto::{Encryption, ONLY_CHANNEL};
use std::time::Duration;

/// Messages per second, in each direction.
const RATE: u64 = 60;

#[test]
fn s31_a_thin_stream_continues_after_a_change_of_address() {
    for seed in 0..4 {
        let link = Link::default().delay(ms(100)).jitter(ms(25)).loss(0.1);
        let mut pair = Pair::connect(seed, link, Encryption::Encrypted);
        let mut sent = 0;
        for second in 0..20 {
            if second == 5 {
                pair.net.rebind(pair.client, ([10, 0, 1, 1], 3_000));
            }
            for _ in 0..RATE {
                pair.server_send(&numbered(sent, 5));
                // A full window is what the test is about: the server counts what arrives.
                let _ = pair.net.with(pair.client, |app, now| app.client.send(now, ONLY_CHANNEL, b"hello"));
                sent += 1;
                pair.net.run_for(Duration::from_secs(1) / RATE as u32);
            }
        }
        let missing = u64::from(sent) - pair.client().received.len() as u64;
        assert!(missing < RATE, "seed {seed}: {missing} messages are more than a second late");
    }
}
