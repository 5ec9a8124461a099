//! A2S with challenges and with replies in parts, over a network that loses and reorders datagrams.

use crate::common;
use common::*;
use rallypoint_netsim::{Link, Network};
use rallypoint_query_proto::{Probe, ProbeOutcome, ProberConfig, Protocol, ServerInfo};

const SERVERS: u32 = 200;

/// A server with more rules than fit into a datagram.
fn server(number: u32) -> ServerInfo {
    let rules = (0..number % 100).map(|rule| (format!("rule_{rule:03}"), format!("value {rule} of {number}")));
    ServerInfo { rules: rules.collect(), ..info(number) }
}

#[test]
fn parts_that_are_lost_or_late_are_requested_again() {
    let mut complete = 0;
    for (seed, loss) in [(1, 0.0), (2, 0.1), (3, 0.3)] {
        let mut net = Network::new(seed);
        net.set_default_link(Link::default().delay(ms(20)).jitter_reordering(ms(15)).loss(loss));
        for number in 0..SERVERS {
            net.add(address(number), responder(&server(number)));
        }
        let prober = net.add(prober_address(), prober(ProberConfig::default()));
        net.with(prober, |prober, _| {
            for number in 0..SERVERS {
                let query = Protocol::A2s.players();
                prober.enqueue(Probe { address: address(number), query, tag: number.into() }).unwrap();
            }
        });
        for result in run(&mut net, prober) {
            let ProbeOutcome::Answered(reply) = &result.outcome else { panic!("{result:?}") };
            let expected = server(result.probe.tag as u32);
            assert!(reply.info.name.is_none() || reply.info.name == expected.name);
            assert!(reply.info.rules.is_empty() || reply.info.rules == expected.rules, "all or none");
            let names = |info: &ServerInfo| -> Option<Vec<String>> {
                Some(info.player_list.as_ref()?.iter().map(|player| player.name.clone()).collect())
            };
            assert!(reply.info.player_list.is_none() || names(&reply.info) == names(&expected));
            complete += u32::from(reply.is_complete());
            assert!(loss > 0.1 || reply.is_complete(), "{:?}", reply.missing);
        }
    }
    assert!(complete >= 3 * SERVERS - 20, "of parts that half of the attempts lose, nearly all arrive: {complete}");
}
