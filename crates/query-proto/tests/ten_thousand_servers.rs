//! A large scan by one prober: every server is found, results are streamed, memory stays small, and the cost of a datagram does
//! not depend on the number of servers.

use crate::common;
use common::*;
use rallypoint_machine::Machine;
use rallypoint_netsim::Link;
use rallypoint_query_proto::{Probe, Prober, ProberConfig, Protocol};
use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

#[test]
fn ten_thousand_over_a_lossy_network() {
    let config = ProberConfig { packets_per_second: 50_000, ..ProberConfig::default() };
    let (mut net, prober) = network(3, 10_000, config, Link::default().delay(ms(20)).jitter(ms(5)).loss(0.05));
    let reports = run(&mut net, prober);
    assert_eq!(reports.len(), 10_000);
    // No server is missed. Of 46,000 infos and 7,000 players, a retry or two may not have brought the last one.
    assert!(reports.iter().filter(|report| !own_answer(report).is_complete()).count() <= 1);
    assert!(net.elapsed() < Duration::from_secs(5), "{:?}", net.elapsed());
}

#[test]
fn results_arrive_while_other_probes_are_queued() {
    let (mut net, prober) = network(3, 2_000, ProberConfig::default(), Link::default().delay(ms(20)));
    net.run_for(ms(200));
    let first = net.take_events(prober).len();
    assert!((250..400).contains(&first), "after 200 of 1,000 ms: {first}");
    assert!(net.machine(prober).queued() > 1_000);
}

/// Runs a prober against servers that answer at once, at a driver's pace, and takes its results as they come.
struct Sweep {
    prober: Prober,
    now: Instant,
    answers: Vec<Vec<u8>>,
    arriving: VecDeque<(SocketAddr, usize)>,
    done: usize,
}

impl Sweep {
    fn new(config: ProberConfig) -> Self {
        let mut server = responder(&info(4));
        server.handle_datagram(Instant::now(), prober_address(), &[0x80]);
        let answers = drain(&mut server, Instant::now()).into_iter().map(|(_, bytes)| bytes).collect();
        let prober = prober(config);
        Self { prober, now: Instant::now(), answers, arriving: VecDeque::with_capacity(4_096), done: 0 }
    }

    /// Every tenth server is dead.
    fn turn(&mut self) {
        self.now += ms(1);
        self.prober.handle_timeout(self.now);
        let mut out = Vec::with_capacity(64);
        while let Some(transmit) = self.prober.poll_transmit(self.now, &mut out) {
            let is_dead = matches!(transmit.to, SocketAddr::V4(v4) if v4.ip().octets()[3] % 10 == 0);
            if !is_dead {
                self.arriving.push_back((transmit.to, 0));
            }
            out.clear();
        }
        while let Some((from, _)) = self.arriving.pop_front() {
            for answer in &self.answers {
                self.prober.handle_datagram(self.now, from, answer);
            }
        }
        while self.prober.poll_event().is_some() {
            self.done += 1;
        }
    }
}

#[test]
fn a_hundred_thousand_probes_take_less_than_50_megabytes() {
    const TARGETS: u32 = 100_000;
    let used = allocation_counter::measure(|| {
        let mut sweep = Sweep::new(ProberConfig { packets_per_second: 50_000, ..ProberConfig::default() });
        for number in 0..TARGETS {
            sweep.prober.enqueue(Probe::new(address(number), INFOS)).unwrap();
        }
        while !sweep.prober.is_idle() {
            sweep.turn();
        }
        assert_eq!(sweep.done, TARGETS as usize);
        let stats = sweep.prober.stats();
        assert_eq!((stats.complete, stats.over_memory), (u64::from(TARGETS) - stats.timed_out, 0));
    });
    println!("{} bytes at most", used.bytes_max);
    assert!(used.bytes_max < 50_000_000, "{} bytes", used.bytes_max);
}

#[test]
fn what_servers_send_is_bounded_in_total() {
    // Every server sends infos of full length, but never all seven, and the results are not taken.
    let used = allocation_counter::measure(|| {
        let config = ProberConfig { packets_per_second: 1_000_000, retries: 0, ..ProberConfig::default() };
        let mut prober = prober(config);
        let mut now = Instant::now();
        for number in 0..30_000 {
            prober.enqueue(Probe::new(address(number), INFOS)).unwrap();
        }
        let mut long = [b'x'; 508];
        for _ in 0..5_000 {
            now += ms(1);
            prober.handle_timeout(now);
            for (to, _) in drain(&mut prober, now) {
                for part in 0x82..=0x86 {
                    long[0] = part;
                    prober.handle_datagram(now, to, &long);
                }
            }
        }
        assert!(prober.stats().over_memory > 0);
        assert!(prober.queued() > 13_000, "no more are probed than results can be stored");
    });
    println!("{} bytes at most", used.bytes_max);
    assert!(used.bytes_max < 80_000_000, "{} bytes", used.bytes_max);
}

#[test]
fn undrained_results_stop_new_probes_and_nothing_else() {
    let config = ProberConfig { max_in_flight: 10, ..ProberConfig::default() };
    let mut prober = prober(config);
    let mut now = Instant::now();
    for number in 0..100 {
        prober.enqueue(Probe::new(address(number), Protocol::Bloodmasters.info())).unwrap();
    }
    for _ in 0..10_000 {
        now += ms(1);
        prober.handle_timeout(now);
        drain(&mut prober, now);
        drain(&mut prober, now);
    }
    assert_eq!((prober.queued(), prober.in_flight()), (90, 0));
    assert_eq!(prober.poll_timeout(), None, "it waits until results are taken");
    assert_eq!(std::iter::from_fn(|| prober.poll_event()).count(), 10);
    assert!(prober.poll_timeout().is_some(), "and goes on then");
}

#[test]
fn allocations_per_datagram_do_not_depend_on_the_number_of_probes() {
    let allocations = |targets: u32| {
        let mut sweep = Sweep::new(ProberConfig { packets_per_second: 10_000, ..ProberConfig::default() });
        for number in 0..targets {
            sweep.prober.enqueue(Probe::new(address(number), INFOS)).unwrap();
        }
        (0..100).for_each(|_| sweep.turn());
        let before = sweep.prober.stats().received;
        let used = allocation_counter::measure(|| (0..100).for_each(|_| sweep.turn()));
        used.count_total as f64 / (sweep.prober.stats().received - before) as f64
    };
    let few = allocations(3_000);
    let many = allocations(200_000);
    assert!(many < few * 1.2 + 0.1, "{few} and {many} per datagram");
}
