use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Sends back what arrives, and keeps it.
#[derive(Default)]
struct Echo {
    heard: Vec<(Instant, Vec<u8>)>,
    waiting: VecDeque<Vec<u8>>,
}

impl Machine for Echo {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, bytes: &[u8]) {
        self.heard.push((now, bytes.to_vec()));
        self.waiting.push_back(bytes.to_vec());
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let bytes = self.waiting.pop_front()?;
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

/// When which datagrams were there.
type Times = Vec<(Duration, u16)>;

/// What arrives of so many datagrams, one per millisecond, and what comes back; with the times since the beginning.
fn run(fake: LinkConditions, count: u16) -> (Times, Times) {
    let begin = Instant::now();
    let mut faked = LinkConditioner::new(Echo::default());
    faked.set_link_conditions(Some(fake));
    let (mut now, mut out, mut back) = (begin, Vec::new(), Vec::new());
    let number = |bytes: &[u8]| u16::from_be_bytes(bytes.try_into().unwrap());
    for tick in 0..u64::from(count) + 60_000 {
        now = begin + ms(tick);
        if tick < u64::from(count) {
            faked.handle_datagram(now, peer(), &(tick as u16).to_be_bytes());
        } else if faked.poll_timeout().is_none() {
            break;
        }
        if faked.poll_timeout().is_some_and(|at| at <= now) {
            faked.handle_timeout(now);
        }
        while faked.poll_transmit(now, &mut out).is_some() {
            back.push((now - begin, number(&out)));
            out.clear();
        }
    }
    assert!(faked.poll_timeout().is_none(), "nothing is held back for ever: {now:?}");
    (faked.machine.heard.iter().map(|(at, bytes)| (*at - begin, number(bytes))).collect(), back)
}

#[test]
fn without_it_nothing_is_touched() {
    let (heard, back) = run(LinkConditions::default(), 100);
    assert!(heard.iter().map(|(_, number)| *number).eq(0..100));
    assert_eq!(heard, back);
}

#[test]
fn everything_is_delayed_in_both_directions() {
    let (heard, back) = run(LinkConditions { delay: ms(30), ..LinkConditions::default() }, 100);
    assert!(heard.iter().all(|(at, number)| *at == ms(30 + u64::from(*number))), "{heard:?}");
    assert!(back.iter().all(|(at, number)| *at == ms(60 + u64::from(*number))), "{back:?}");
    assert_eq!(back.len(), 100);
}

#[test]
fn the_shares_are_as_asked_for_and_the_same_every_time() {
    let fake = LinkConditions { loss: 0.2, duplicate: 0.1, seed: 7, ..LinkConditions::default() };
    let (heard, _) = run(fake, 10_000);
    let mut numbers: Vec<_> = heard.iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    let all = numbers.len();
    numbers.dedup();
    assert!((7_800..8_200).contains(&numbers.len()), "{}", numbers.len());
    assert!((700..900).contains(&(all - numbers.len())), "{}", all - numbers.len());
    assert_eq!(run(fake, 10_000).0, heard);
    assert_ne!(run(LinkConditions { seed: 8, ..fake }, 10_000).0, heard);
}

#[test]
fn some_overtake_others() {
    let fake = LinkConditions { reorder: 0.5, reorder_by: ms(5), ..LinkConditions::default() };
    let (heard, _) = run(fake, 1_000);
    assert!(!heard.is_sorted_by_key(|(_, number)| *number));
    assert_eq!(heard.len(), 1_000);
}

proptest! {
    #[test]
    fn nothing_comes_that_was_not_sent_nor_earlier(
        loss in 0.0..1.0f64, duplicate in 0.0..1.0f64, reorder in 0.0..1.0f64, delay in 0..50u64, jitter in 0..50u64, seed: u64,
    ) {
        let fake = LinkConditions { loss, duplicate, reorder, delay: ms(delay), jitter: ms(jitter), reorder_by: ms(9), seed };
        let (heard, back) = run(fake, 200);
        for (at, number) in heard {
            let sent = ms(number.into());
            prop_assert!(at >= sent + ms(delay) && at <= sent + ms(delay + jitter + 9 + 1));
        }
        prop_assert!(back.iter().all(|(at, number)| *at >= ms(u64::from(*number) + 2 * delay)));
    }
}
