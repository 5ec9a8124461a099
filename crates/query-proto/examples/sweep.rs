//! The cost of probing and of answering, without a network: `cargo run --release -p rallypoint-query-proto --example sweep`.
//!
//! A prober queries a hundred thousand servers, all of which answer at once; the fastest of five runs is shown.
#![forbid(unsafe_code)]

use rallypoint_machine::Machine;
use rallypoint_query_proto::{
    Player, Probe, Prober, ProberConfig, Protocol, Responder, ResponderConfig, ServerInfo, ServerQuery,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

const SERVERS: u32 = 20_000;

fn main() {
    for (name, question) in [
        ("002", Protocol::Bloodmasters.info()),
        ("003", Protocol::Session.info()),
        ("003 with 4 players", Protocol::Session.players()),
    ] {
        let runs: Vec<Times> = (0..5).map(|_| sweep(question)).collect();
        let least = |of: fn(&Times) -> Duration| runs.iter().map(of).min().unwrap_or_default() / SERVERS;
        println!("{name}: asking {:?} per server, answering {:?}", least(|t| t.prober), least(|t| t.responder));
    }
}

#[derive(Default)]
struct Times {
    prober: Duration,
    responder: Duration,
}

fn sweep(question: ServerQuery) -> Times {
    let player = |name: &str| Player { name: name.into(), ..Player::default() };
    let info = ServerInfo {
        name: Some("Bacon Town 24/7".into()),
        map: Some("ctf_truefort".into()),
        player_list: Some(["Alice", "Bob", "Carol", "Dave"].map(player).into()),
        ..ServerInfo::default()
    };
    let mut responder = Responder::new(ResponderConfig::default(), 7, &info).expect("the default is in range");
    let config = ProberConfig { packets_per_second: 1_000_000, ..ProberConfig::default() };
    let mut prober = Prober::new(config, [7; 32]).expect("a million is in range");
    for number in 0..SERVERS {
        let [_, a, b, c] = number.to_be_bytes();
        prober.enqueue(Probe::new(([10, a, b, c], 4000).into(), question)).expect("there is room for all");
    }

    let mut times = Times::default();
    let mut now = Instant::now();
    let mut done = 0;
    let (mut queries, mut answers) = (Vec::<(SocketAddr, Vec<u8>)>::new(), Vec::<(SocketAddr, Vec<u8>)>::new());
    let mut out = Vec::new();
    while done < SERVERS {
        // Virtual time, so that the pace does not matter.
        now += Duration::from_micros(250);
        let start = Instant::now();
        prober.handle_timeout(now);
        while let Some(transmit) = prober.poll_transmit(now, &mut out) {
            queries.push((transmit.to, out.clone()));
            out.clear();
        }
        times.prober += start.elapsed();

        let start = Instant::now();
        for (server, query) in queries.drain(..) {
            // As if every client queried this one server from an address of its own.
            responder.handle_datagram(now + Duration::from_secs(u64::from(done)), server, &query);
            while responder.poll_transmit(now, &mut out).is_some() {
                answers.push((server, out.clone()));
                out.clear();
            }
        }
        times.responder += start.elapsed();

        let start = Instant::now();
        for (server, answer) in answers.drain(..) {
            prober.handle_datagram(now, server, &answer);
        }
        while prober.poll_event().is_some() {
            done += 1;
        }
        times.prober += start.elapsed();
    }
    assert_eq!(prober.stats().timed_out, 0, "every server has answered");
    times
}
