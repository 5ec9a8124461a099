//! Retries find every live server, and every part of its reply.

use crate::common;
use common::*;
use rallypoint_netsim::Link;
use rallypoint_query_proto::{ProberConfig, RttMethod};

#[test]
fn with_thirty_percent_loss_in_each_direction_every_server_is_found() {
    let mut retries = 0;
    let mut missing = 0;
    for seed in 0..8 {
        let link = Link::default().delay(ms(20)).jitter_reordering(ms(15)).loss(0.3);
        let (mut net, prober) = network(seed, 300, ProberConfig::default(), link);
        for report in run(&mut net, prober) {
            retries += u32::from(report.retries);
            missing += own_answer(&report).missing.len();
        }
        assert_eq!(net.machine(prober).stats().timed_out, 0);
    }
    assert!(retries > 2_400, "there is loss: {retries} retries");
    assert!(missing <= 3, "sixteen times nothing, of seven parts of 1,600 servers: {missing}");
}

#[test]
fn with_five_percent_loss_the_defaults_find_every_server_in_full() {
    let link = Link::default().delay(ms(20)).loss(0.05);
    let (mut net, prober) = network(5, 600, ProberConfig::default(), link);
    for report in run(&mut net, prober) {
        assert!(own_answer(&report).is_complete(), "{report:?}");
    }
}

#[test]
fn b7_the_echo_measures_the_round_trip_even_after_retries() {
    let (mut net, prober) = network(7, 90, ProberConfig::default(), Link::default().delay(ms(20)).loss(0.3));
    for report in run(&mut net, prober) {
        let round_trip = own_answer(&report).round_trip;
        match round_trip.method {
            // Exact, to the microsecond.
            RttMethod::Echo | RttMethod::FirstReply => assert_eq!(round_trip.time.as_micros(), 40_000),
            RttMethod::Connect => panic!("a query is no connection"),
            RttMethod::UpperBound => assert!(report.retries > 0 && round_trip.time >= ms(40)),
        }
        assert_eq!(round_trip.method == RttMethod::Echo, report.probe.tag % 3 == 0);
    }
}
