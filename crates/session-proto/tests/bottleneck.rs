//! A bottleneck is used, shared, and not flooded (S26).

use crate::common;

use common::{traffic::*, *};
use rallypoint_netsim::{Link, Network, Node, NodeId};
use rallypoint_session_proto::{Encryption, ONLY_CHANNEL};

const MBIT_16: u64 = 16_000_000;

#[test]
fn s26_a_bottleneck_with_a_small_queue_costs_at_most_1_3_times_the_payload() {
    for (rtt, queue) in [(10, 8_000), (50, 8_000), (50, 16_000), (50, 64_000), (150, 16_000), (150, 32_000)] {
        let link = Link::default().delay(ms(rtt) / 2).bottleneck(MBIT_16, queue);
        let bulk = bulk(3, link, 8_000_000, Encryption::Plain);
        println!("rtt {rtt} queue {queue}: {:.2} MB/s, wire {:.3}", bulk.goodput / 1e6, bulk.overhead);
        assert!(bulk.overhead <= 1.3, "rtt {rtt} queue {queue}: {}", bulk.overhead);
        // Two thirds of the path, with a queue of 5 % of what the path holds; much more with a longer one.
        assert!(bulk.goodput >= 1.3e6, "rtt {rtt} queue {queue}: {}", bulk.goodput);
    }
}

#[test]
fn a_short_path_is_fully_used() {
    let link = Link::default().delay(std::time::Duration::from_micros(50)).bottleneck(1_000_000_000, 1_000_000);
    let bulk = bulk(3, link, 8_000_000, Encryption::Plain);
    println!("{:.2} MB/s, wire {:.3}", bulk.goodput / 1e6, bulk.overhead);
    assert!(bulk.goodput >= 60.0e6, "{}", bulk.goodput);
}

#[test]
fn s26_random_loss_before_a_bottleneck_is_no_reason_to_slow_down() {
    for loss in [0.01, 0.05, 0.1, 0.2] {
        let link = Link::default().delay(ms(25)).bottleneck(MBIT_16, 32_000).loss(loss);
        let bulk = bulk(3, link, 8_000_000, Encryption::Plain);
        println!("loss {loss}: {:.2} MB/s, wire {:.3}", bulk.goodput / 1e6, bulk.overhead);
        assert!(bulk.goodput >= 1.0e6, "loss {loss}: {}", bulk.goodput);
    }
}

#[test]
fn s26_two_downloads_share_a_bottleneck() {
    let mut net = Network::new(5);
    net.set_default_link(Link::default().delay(ms(25)).bottleneck(MBIT_16, 64_000));
    let server = net.add(SERVER, ServerApp::new(server_config()));
    let clients = [1, 2].map(|last| {
        let app = ClientApp::new(net.now(), SERVER.into(), client_config(Encryption::Plain), last);
        net.add(([10, 0, 1, last], 1000), app)
    });
    let links: Vec<(NodeId, NodeId)> = clients.iter().map(|&client| (server.into(), client.into())).collect();
    net.share_link(&links);
    net.run_for(secs(1));
    for step in 0..400 {
        net.with(server, |app, now| {
            // The second starts 2 s later.
            let players: Vec<_> = app.endpoint.players().take(if step < 40 { 1 } else { 2 }).collect();
            for player in players {
                while app.endpoint.send(now, player, ONLY_CHANNEL, &[7; 400]).is_ok() {}
            }
        });
        net.run_for(ms(50));
    }
    let now = net.now();
    let recent =
        |client: Node<ClientApp>| net.machine(client).received.iter().filter(|(at, _)| now - *at < secs(10)).count();
    let shares = clients.map(recent);
    println!("{shares:?}");
    let total = (shares[0] + shares[1]) as f64 * 400.0 / 10.0;
    assert!(total > 1.5e6, "{total} bytes per second");
    assert!(shares.iter().min().unwrap() * 4 > *shares.iter().max().unwrap(), "{shares:?}");
}
