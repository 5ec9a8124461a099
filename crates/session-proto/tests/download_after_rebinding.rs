//! A download continues at its rate when its client is back after an outage with another address (S31): slow start leads to where the
//! window was, and neither what was lost before nor requests for what is not sent yet count as congestion of the new path.

use crate::common;

use common::{bottleneck::*, *};

const RATE: u64 = 20_000_000;

/// The part of the bottleneck that a download uses in the second after a silent change of address, from the first bytes on.
fn use_after_move(seed: u64) -> f64 {
    let mut shared = SharedBottleneck::with_window(seed, ms(50), RATE, 1.0, 4_096);
    shared.add(1, 0, 0);
    // The queue has overflowed: there is a window to return to.
    shared.net.run_for(secs(8));
    let sink = shared.sinks[0];
    shared.net.isolate(sink, true);
    shared.net.run_for(ms(500));
    shared.net.rebind(sink, ([10, 0, 1, 1], 3_000));
    shared.net.isolate(sink, false);
    let before = shared.net.machine(sink).bytes;
    let continues = shared.net.run_while(secs(5), |net| net.machine(sink).bytes == before);
    assert!(continues, "seed {seed}: nothing arrives");
    shared.measure(secs(1)).sessions[0] as f64 * 8.0 / RATE as f64
}

#[test]
fn s31_a_download_is_in_slow_start_after_a_silent_change_of_address() {
    for seed in 1..=2 {
        let used = use_after_move(seed);
        println!("seed {seed}: {used:.2}");
        assert!(used > 0.7, "seed {seed}: {used}");
    }
}
