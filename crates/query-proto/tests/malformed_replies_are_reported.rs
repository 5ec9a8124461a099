//! Datagrams that cannot be parsed are counted, and reported if no valid reply arrives.

use crate::common;
use common::*;
use rallypoint_machine::Machine;
use rallypoint_query_proto::{Probe, ProbeOutcome, Prober, ProberConfig, Protocol, ServerQuery};
use std::time::Instant;

fn probed(query: ServerQuery) -> (Prober, Instant, Vec<Vec<u8>>) {
    let mut prober = prober(ProberConfig::default());
    let now = Instant::now();
    let mut server = responder(&info(4));
    prober.enqueue(Probe { address: address(4), query, tag: 4 }).unwrap();
    for (_, query) in drain(&mut prober, now) {
        server.handle_datagram(now, prober_address(), &query);
    }
    let answers = drain(&mut server, now).into_iter().map(|(_, bytes)| bytes).collect();
    (prober, now, answers)
}

#[test]
fn only_malformed_datagrams() {
    for (query, nonsense) in [(Protocol::Bloodmasters.info(), &b"HTTP/1.1 400 Bad Request"[..]), (INFOS, b"\x99hello")]
    {
        let (mut prober, mut now, _) = probed(query);
        prober.handle_datagram(now, address(4), b"");
        prober.handle_datagram(now, address(4), nonsense);
        assert_eq!(prober.poll_event(), None, "something better may come");
        run_to_the_end(&mut prober, &mut now);
        let report = prober.poll_event().unwrap();
        assert!(matches!(report.outcome, ProbeOutcome::Malformed(_)), "{report:?}");
        assert_eq!(report.malformed, 2);
        assert_eq!((prober.stats().malformed, prober.stats().unreadable), (2, 1));
    }
}

#[test]
fn a_valid_reply_after_malformed_datagrams() {
    for query in [Protocol::Bloodmasters.info(), INFOS] {
        let (mut prober, now, answers) = probed(query);
        prober.handle_datagram(now, address(4), b"\x99nonsense");
        answers.iter().for_each(|answer| prober.handle_datagram(now, address(4), answer));
        let report = prober.poll_event().unwrap();
        assert!(own_answer(&report).is_complete());
        assert_eq!(report.malformed, 1);
    }
}

#[test]
fn other_messages_are_not_replies() {
    let (mut prober, mut now, _) = probed(SESSION);
    // A keepalive, an acknowledgement, "disconnect", "bad login": all of them well-made.
    for message in [&b"\x33"[..], b"\xcc", b"\xff\x00", b"\x00bye", b"\xc0no"] {
        prober.handle_datagram(now, address(4), message);
    }
    assert_eq!((prober.stats().redundant, prober.stats().malformed), (5, 0));
    run_to_the_end(&mut prober, &mut now);
    assert_eq!(prober.poll_event().unwrap().outcome, ProbeOutcome::TimedOut);
}
