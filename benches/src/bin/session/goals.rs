//! Goals of the session protocol that are not in the two tables.

use crate::{
    enet::Enet,
    layer_cost,
    library::{Library, ms},
    ops::{self, Layer, Messages},
    quinn::Quinn,
    rallypoint::Rallypoint,
    renet::Renet,
    traffic::{self, Pair},
};
use rallypoint_bench::{Goals, instructions_per_operation, instructions_within};
use rallypoint_netsim::Link;
use rallypoint_session_proto::Connection;
use std::time::Duration;

/// Measures all goals.
pub fn table() -> Goals {
    let mut goals = Goals::new();
    for rtt in [10, 50, 150] {
        let worst = recovery::<Rallypoint>(rtt);
        let others = if rtt == 50 {
            let others = [recovery::<Enet>(rtt), recovery::<Renet>(rtt), recovery::<Quinn>(rtt)];
            let [enet, renet, quinn] = others.map(|time| format!("{} ms", time.as_millis()));
            format!(" ({} {enet}, {} {renet}, {} {quinn})", Enet::NAME, Renet::NAME, Quinn::NAME)
        } else {
            String::new()
        };
        let figure = format!("recovery after an outage of 5 s, RTT {rtt} ms, slowest of 20");
        goals.add(
            &figure,
            format!("{} ms{others}", worst.as_millis()),
            format!("at most {} ms", rtt + 100),
            worst <= ms(rtt + 100),
        );
    }
    let login = login();
    goals.add(
        "login with 20 % loss, RTT 50 ms, p90 of 500",
        format!("{} ms", login.as_millis()),
        "less than 600 ms",
        login < ms(600),
    );
    for (rtt, queue) in [(10, 8_000), (50, 16_000), (150, 32_000)] {
        let link = Link::default().delay(ms(rtt) / 2).bottleneck(16_000_000, queue);
        let bulk = traffic::bulk::<Rallypoint>(3, link, 8_000_000);
        goals.add(
            &format!("8 MB through 16 Mbit/s, RTT {rtt} ms, queue {queue} B: datagram bytes per payload byte"),
            format!("{:.2}× at {:.2} MB/s", bulk.datagrams, bulk.goodput / 1e6),
            "at most 1.3×",
            bulk.datagrams <= 1.3,
        );
    }
    let idle = idle();
    goals.add(
        "an idle session, both directions, including IP and UDP headers",
        format!("{idle:.1} B/s"),
        "less than 40 B/s",
        idle < 40.0,
    );
    let wire = traffic::game::<Rallypoint>(1, Link::default().delay(ms(25)), Duration::from_secs(60)).overhead();
    goals.add(
        "game traffic without loss: wire bytes per payload byte, including IP and UDP headers",
        format!("{wire:.2}×"),
        "at most 1.7×",
        wire <= 1.7,
    );
    add_instructions(&mut goals);
    goals
}

/// Counts instructions, if there is a valgrind.
fn add_instructions(goals: &mut Goals) {
    let count = |name: &str| instructions_per_operation(name, 4_096).ok();
    let within = |function, messages: Messages| instructions_within(function, &messages.to_string(), 4_096).ok();
    if let (Some(few), Some(many)) = (count(ops::ONE_PLAYER), count(ops::FULL_SERVER)) {
        goals.add(
            "instructions per message and its ack, with 1 and with 255 players",
            format!("{few:.0} and {many:.0}"),
            "at most +10 %",
            many <= 1.1 * few,
        );
    }
    layer_cost::add_goals(goals);
    let plain = Messages::new(Layer::None, 400);
    for (side, function, cipher) in [("sender", ops::SENDER, ops::SEAL), ("receiver", ops::RECEIVER, ops::OPEN)] {
        let [Some(plain), Some(sealed), Some(bare)] =
            [within(function, plain), within(function, plain.encrypted()), count(cipher)]
        else {
            continue;
        };
        let limit = plain + 1.1 * bare;
        goals.add(
            &format!("instructions of the {side} per encrypted message of 400 bytes (plain, cipher alone)"),
            format!("{sealed:.0} ({plain:.0}, {bare:.0})"),
            format!("at most {limit:.0}, plain + 1.1 × cipher"),
            sealed <= limit,
        );
    }
}

fn recovery<C: Library>(rtt: u64) -> Duration {
    (0..20).map(|seed| traffic::recovery::<C>(seed, ms(rtt))).max().unwrap_or_default()
}

fn login() -> Duration {
    let link = Link::default().delay(ms(25)).loss(0.2);
    let mut times: Vec<Duration> = (0..500)
        .map(|seed| {
            let mut pair = Pair::<Rallypoint>::start(seed, link, 100);
            let client = pair.client;
            pair.net.run_while(ms(10_000), |net| !net.machine(client).machine.is_connected());
            pair.net.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() * 9 / 10]
}

fn idle() -> f64 {
    let mut pair = Pair::<Rallypoint>::connect(1, Link::default().delay(ms(25)), 100);
    pair.net.run_for(ms(10_000));
    let before = pair.wire();
    pair.net.run_for(ms(60_000));
    assert!(pair.net.machine(pair.client).machine.connection().map(Connection::stats).is_some());
    (pair.wire() - before) as f64 / 60.0
}
