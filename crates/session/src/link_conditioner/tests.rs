use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Sends back what arrives, and records it.
#[derive(Default)]
struct Echo {
    received: Vec<(Instant, Vec<u8>)>,
    queue: VecDeque<Vec<u8>>,
}

impl Machine for Echo {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, bytes: &[u8]) {
        self.received.push((now, bytes.to_vec()));
        self.queue.push_back(bytes.to_vec());
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let bytes = self.queue.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(Transmit::one(peer(), bytes.len()))
    }
}

fn peer() -> SocketAddr {
    "192.0.2.1:7".parse().unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Arrival times since the start, with the numbers of the datagrams.
type Arrivals = Vec<(Duration, u16)>;

/// Sends `count` datagrams, one per millisecond. Returns what the machine receives, and what comes back.
fn run(conditions: LinkConditions, count: u16) -> (Arrivals, Arrivals) {
    let start = Instant::now();
    let mut conditioner = LinkConditioner::new(Echo::default());
    conditioner.set_conditions(Some(conditions));
    let mut now = start;
    let mut out = Vec::new();
    let mut returned = Vec::new();
    let number = |bytes: &[u8]| u16::from_be_bytes(bytes.try_into().unwrap());
    for tick in 0..u64::from(count) + 60_000 {
        now = start + ms(tick);
        if tick < u64::from(count) {
            conditioner.handle_datagram(now, peer(), &(tick as u16).to_be_bytes());
        } else if conditioner.poll_timeout().is_none() {
            break;
        }
        if conditioner.poll_timeout().is_some_and(|at| at <= now) {
            conditioner.handle_timeout(now);
        }
        while conditioner.poll_transmit(now, &mut out).is_some() {
            returned.push((now - start, number(&out)));
            out.clear();
        }
    }
    assert!(conditioner.poll_timeout().is_none(), "nothing is held back forever: {now:?}");
    let received = conditioner.inner().received.iter().map(|(at, bytes)| (*at - start, number(bytes))).collect();
    (received, returned)
}

#[test]
fn default_conditions_change_nothing() {
    let (received, returned) = run(LinkConditions::default(), 100);
    assert!(received.iter().map(|(_, number)| *number).eq(0..100));
    assert_eq!(received, returned);
}

#[test]
fn every_datagram_is_delayed_in_both_directions() {
    let (received, returned) = run(LinkConditions { delay: ms(30), ..LinkConditions::default() }, 100);
    assert!(received.iter().all(|(at, number)| *at == ms(30 + u64::from(*number))), "{received:?}");
    assert!(returned.iter().all(|(at, number)| *at == ms(60 + u64::from(*number))), "{returned:?}");
    assert_eq!(returned.len(), 100);
}

#[test]
fn loss_and_duplication_match_their_probabilities_and_are_reproducible() {
    let conditions = LinkConditions { loss: 0.2, duplicate: 0.1, seed: 7, ..LinkConditions::default() };
    let (received, _) = run(conditions, 10_000);
    let mut numbers: Vec<_> = received.iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    let total = numbers.len();
    numbers.dedup();
    assert!((7_800..8_200).contains(&numbers.len()), "{}", numbers.len());
    assert!((700..900).contains(&(total - numbers.len())), "{}", total - numbers.len());
    assert_eq!(run(conditions, 10_000).0, received);
    assert_ne!(run(LinkConditions { seed: 8, ..conditions }, 10_000).0, received);
}

#[test]
fn reordered_datagrams_are_overtaken() {
    let conditions = LinkConditions { reorder: 0.5, reorder_by: ms(5), ..LinkConditions::default() };
    let (received, _) = run(conditions, 1_000);
    assert!(!received.is_sorted_by_key(|(_, number)| *number));
    assert_eq!(received.len(), 1_000);
}

proptest! {
    #[test]
    fn no_datagram_arrives_that_was_not_sent_or_outside_its_delay(
        loss in 0.0..1.0f64, duplicate in 0.0..1.0f64, reorder in 0.0..1.0f64, delay in 0..50u64, jitter in 0..50u64, seed: u64,
    ) {
        let conditions =
            LinkConditions { loss, duplicate, reorder, delay: ms(delay), jitter: ms(jitter), reorder_by: ms(9), seed };
        let (received, returned) = run(conditions, 200);
        for (at, number) in received {
            let sent = ms(number.into());
            prop_assert!(at >= sent + ms(delay) && at <= sent + ms(delay + jitter + 9 + 1));
        }
        prop_assert!(returned.iter().all(|(at, number)| *at >= ms(u64::from(*number) + 2 * delay)));
    }
}
