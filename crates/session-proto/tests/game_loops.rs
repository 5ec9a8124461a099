//! Sides that are driven once per frame, as in a game loop: that acks wait for a frame is no queue of the path (W80).

use crate::common;

use common::{bottleneck::*, frames::Framed, *};
use rallypoint_netsim::{Link, Network};
use rallypoint_session_proto::{Client, Encryption, Endpoint, SessionMachine};
use std::time::Duration;

/// Frames of 62.5 and 60 per second: their phases drift.
const FRAME: Duration = Duration::from_millis(16);
const OTHER_FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);

/// Goodput in bytes per second of a download of 10 s through 5 MB/s with 5 % loss. `poll_interval` is that of the server, which
/// knows it; the client's is not known to the server.
fn goodput(seed: u64, rtt: u64, poll_interval: Duration, client_frame: Duration) -> f64 {
    let mut net = Network::new(seed);
    net.set_default_link(Link::default().delay(ms(rtt) / 2).loss(0.05).bottleneck(40_000_000, 150_000));
    let mut endpoint = Endpoint::new(server_config(), [1; 32]).unwrap();
    endpoint.set_poll_interval(poll_interval);
    let server = Framed::new(net.now(), Source::new(endpoint), poll_interval.max(ms(1)));
    net.add(SERVER, server);
    let client = Client::new(net.now(), SERVER.into(), client_config(Encryption::Plain), [2; 32]).unwrap();
    let client = net.add(CLIENT, Framed::new(net.now(), Sink::new(client), client_frame));
    net.run_for(secs(5));
    let before = net.machine(client).machine.bytes;
    net.run_for(secs(10));
    (net.machine(client).machine.bytes - before) as f64 / 10.0
}

fn check(poll_interval: Duration, client_frame: Duration, min: f64) {
    for rtt in [4, 20, 50] {
        for seed in 1..=2 {
            let goodput = goodput(seed, rtt, poll_interval, client_frame);
            println!(
                "RTT {rtt} ms, frames {poll_interval:?} and {client_frame:?}, seed {seed}: {:.0} kB/s",
                goodput / 1e3
            );
            assert!(goodput > min, "RTT {rtt} ms, seed {seed}: {goodput} bytes per second");
        }
    }
}

#[test]
fn w80_a_lossy_download_to_a_game_loop_does_not_stop() {
    check(Duration::ZERO, FRAME, 400_000.0);
}

#[test]
fn w80_a_lossy_download_between_two_game_loops_does_not_stop() {
    check(FRAME, OTHER_FRAME, 800_000.0);
}
