//! Properties over random links and faults: every datagram is accounted for, and faults end when they should.

use crate::common;

use common::{Echo, Ping, address, ms, secs};
use proptest::prelude::*;
use rallypoint_netsim::{DeliveryStatus, Link, LinkResult, LinkState, Loss, Network, Rng};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// A straightforward model of the queue: each datagram leaves when it and all before it have been sent.
struct NaiveQueue {
    rate: u64,
    limit: usize,
    /// Time of departure in nanoseconds, and length, of each datagram.
    queue: VecDeque<(u64, usize)>,
}

impl NaiveQueue {
    fn send(&mut self, now: u64, len: usize) -> Option<u64> {
        while self.queue.front().is_some_and(|(leaves, _)| *leaves <= now) {
            self.queue.pop_front();
        }
        let nanos_per_byte = 8_000_000_000 / self.rate;
        let begins = self.queue.back().map_or(now, |(leaves, _)| *leaves);
        let bytes = usize::try_from((begins - now) / nanos_per_byte).unwrap();
        if !self.queue.is_empty() && bytes + len > self.limit {
            return None;
        }
        self.queue.push_back((begins + len as u64 * nanos_per_byte, len));
        self.queue.back().map(|(leaves, _)| *leaves)
    }
}

proptest! {
    #[test]
    fn the_queue_matches_a_naive_model(
        rate in prop::sample::select(vec![64_000, 1_000_000, 16_000_000, 1_000_000_000]),
        limit in 0..5000usize,
        datagrams in prop::collection::vec((0..3_000_000u64, 0..1500usize), 1..100),
    ) {
        let mut state = LinkState::new(Link::default().bottleneck(rate, limit), Rng::new(1));
        let mut naive = NaiveQueue { rate, limit, queue: VecDeque::new() };
        let start = Instant::now();
        let mut now = 0;
        for (pause, len) in datagrams {
            now += pause;
            let at = |nanos| start + Duration::from_nanos(nanos);
            let leaves = match state.send(at(now), len) {
                LinkResult::Arrives(first, None) => Some(first.at),
                result => { prop_assert_eq!(result, LinkResult::Lost(Loss::Queue)); None }
            };
            prop_assert_eq!(leaves, naive.send(now, len).map(at));
        }
    }

    #[test]
    fn arrivals_respect_the_properties_of_their_link(seed: u64, datagrams in prop::collection::vec((0..50u64, 0..1500usize), 1..200)) {
        let mut rng = Rng::new(seed);
        let link = Link::random(&mut rng);
        let mut state = LinkState::new(link, rng);
        let mut now = Instant::now();
        let mut last = None;
        for (pause, len) in datagrams {
            now += ms(pause);
            let LinkResult::Arrives(first, second) = state.send(now, len) else { continue };
            for arrival in [Some(first), second].into_iter().flatten() {
                prop_assert!(arrival.at >= now + link.delay);
                if link.bottleneck.is_none() && link.jitter.is_zero() && link.reorder == 0.0 {
                    prop_assert_eq!(arrival.at, now + link.delay);
                }
                if !link.jitter_reorders && link.reorder == 0.0 {
                    prop_assert!(last.is_none_or(|last| last <= arrival.at));
                    last = Some(arrival.at);
                }
                prop_assert!(arrival.flipped_bit.is_none_or(|bit| link.corrupt > 0.0 && bit < len * 8));
            }
        }
    }

    #[test]
    fn every_datagram_is_accounted_for(seed: u64, length in 1..5000u64) {
        let mut net = Network::new(seed);
        net.record(usize::MAX);
        let echo = net.add(address(1), Echo::default());
        let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(10)));
        net.start_chaos(ping, echo, secs(3));
        net.run_for(ms(length));
        let totals = net.totals();
        let in_flight = net.in_flight() as u64;
        let copies = totals.sent.datagrams + totals.duplicated.datagrams;
        prop_assert_eq!(copies, totals.delivered.datagrams + totals.lost().datagrams + in_flight);
        let count = |is_wanted: fn(&DeliveryStatus) -> bool| net.log().records().filter(|record| is_wanted(&record.status)).count() as u64;
        prop_assert_eq!(count(|status| matches!(status, DeliveryStatus::InFlight { .. })), in_flight);
        prop_assert_eq!(count(|status| matches!(status, DeliveryStatus::Delivered { .. })), totals.delivered.datagrams);
        prop_assert_eq!(count(|status| *status == DeliveryStatus::LostQueue), totals.lost_queue.datagrams);
        prop_assert_eq!(count(|status| *status == DeliveryStatus::NoReceiver), totals.no_receiver.datagrams);
        prop_assert_eq!(net.log().records().len() as u64, copies);
    }
}

#[test]
fn chaos_ends_and_restores_the_path() {
    let mut kinds = [false; 4];
    for seed in 0..100 {
        let mut net = Network::new(seed);
        net.set_default_link(Link::default().delay(ms(10)));
        let echo = net.add(address(1), Echo::default());
        let ping = net.add(address(2), Ping::new(net.now(), address(1), ms(10)));
        net.start_chaos(ping, echo, secs(5));
        net.run_for(secs(7));
        net.take_events(ping);
        let before = net.totals();
        net.run_for(secs(1));
        let pongs = net.take_events(ping);
        assert!(pongs.len() >= 100 && pongs.iter().all(|(_, pong)| pong.rtt == ms(20)), "seed {seed}");
        assert_eq!(net.totals().lost(), before.lost());
        kinds[0] |= before.partitioned.datagrams > 0;
        kinds[1] |= before.corrupted.datagrams > 0 && before.duplicated.datagrams > 0;
        kinds[2] |= before.lost_random.datagrams > 0 && before.lost_burst.datagrams > 0;
        kinds[3] |= net.address(ping) != address(2);
    }
    assert_eq!(kinds, [true; 4], "every kind of fault occurred");
}
