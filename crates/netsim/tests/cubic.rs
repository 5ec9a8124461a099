//! A CUBIC flow uses a bottleneck, shares it with others, and reacts to loss as RFC 9438 says.

use crate::common;

use common::{ms, secs};
use rallypoint_netsim::{CubicReceiver, CubicSender, Link, Network, Node};

const RATE: u64 = 10_000_000;

type Flow = (Node<CubicSender>, Node<CubicReceiver>);

/// `count` flows through one bottleneck with a queue of one bandwidth-delay product. Each starts 100 ms after the one before.
fn flows(count: u8, link: Link) -> (Network, Vec<Flow>) {
    let mut net = Network::new(1);
    net.set_default_link(link);
    let bottleneck = net.add_bottleneck(RATE, 62_500);
    let flows = (1..=count)
        .map(|number| {
            let receiver = net.add(([10, 0, 1, number], 1), CubicReceiver::default());
            let start = net.now() + ms(100) * u32::from(number);
            let sender = CubicSender::new(start, net.address(receiver), 1_000);
            let sender = net.add(([10, 0, 2, number], 1), sender);
            net.pass_bottleneck(sender, receiver, bottleneck);
            (sender, receiver)
        })
        .collect();
    (net, flows)
}

fn received(net: &Network, flows: &[Flow]) -> Vec<u64> {
    flows.iter().map(|&(_, receiver)| net.machine(receiver).bytes()).collect()
}

#[test]
fn a_flow_uses_the_bottleneck_and_loses_little() {
    let (mut net, flows) = flows(1, Link::default().delay(ms(25)));
    net.run_for(secs(20));
    let [bytes] = received(&net, &flows)[..] else { unreachable!() };
    assert!(bytes > RATE / 8 * 18, "{bytes}");
    let lost = net.counters(flows[0].0, flows[0].1).lost_queue.datagrams;
    assert!((1..bytes / 1_000 / 50).contains(&lost), "{lost}");
}

#[test]
fn flows_share_a_bottleneck() {
    let (mut net, flows) = flows(4, Link::default().delay(ms(25)));
    net.run_for(secs(10));
    let before = received(&net, &flows);
    net.run_for(secs(60));
    let shares: Vec<u64> = received(&net, &flows)
        .iter()
        .zip(before)
        .map(|(after, before)| (after - before) * 100 / (RATE / 8 * 60))
        .collect();
    assert!(shares.iter().sum::<u64>() >= 94, "{shares:?}");
    assert!(shares.iter().all(|share| (8..=50).contains(share)), "{shares:?}");
}

#[test]
fn random_loss_slows_a_flow_down() {
    let (mut net, flows) = flows(1, Link::default().delay(ms(25)).loss(0.05));
    net.run_for(secs(20));
    let bytes = received(&net, &flows)[0];
    assert!((100_000..RATE / 8 * 20 / 4).contains(&bytes), "{bytes}");
}

#[test]
fn a_flow_continues_after_an_outage() {
    let (mut net, flows) = flows(1, Link::default().delay(ms(25)));
    net.run_for(secs(2));
    let (sender, receiver) = flows[0];
    net.partition(sender, receiver, true);
    net.run_for(secs(3));
    net.partition(sender, receiver, false);
    let before = received(&net, &flows)[0];
    net.run_for(secs(10));
    let after = received(&net, &flows)[0] - before;
    assert!(after > RATE / 8 * 6, "{after}");
}
