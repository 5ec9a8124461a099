//! A batch of datagrams has the same effect as the datagrams one by one.

use crate::support;
use proptest::prelude::*;
use support::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn a_batch_has_the_same_outcomes_and_the_same_list(
        datagrams in proptest::collection::vec((0u32..4, any::<bool>(), 0u128..6, 0u16..3, 0u16..2, 0u8..8), 0..150),
    ) {
        let datagrams: Vec<_> = datagrams
            .into_iter()
            .map(|(from, is_v6, id, port, players, what)| {
                let from = if is_v6 { ip(&format!("2001:db8::{}", from + 1)) } else { address(from) };
                let bytes = match what {
                    0 => unregister(id),
                    1 => b"nonsense".to_vec(),
                    2 => tcp(id).port(1 + port).datagram(),
                    _ => udp(id).port(1 + port).players(players).datagram(),
                };
                ((from, 9).into(), bytes)
            })
            .collect();
        let (mut one, mut all) = (Lobby::default(), Lobby::default());
        for (from, bytes) in &datagrams {
            one.registry.handle_datagram(one.now, *from, bytes);
        }
        all.registry.handle_datagrams(all.now, datagrams.iter().map(|(from, bytes)| (*from, &bytes[..])));
        all.check_invariants();
        prop_assert_eq!(one.stats(), all.stats());
        prop_assert_eq!(one.list(), all.list());
        prop_assert_eq!(one.events(), all.events());
    }
}

#[test]
fn a_batch_may_be_empty_or_of_any_size() {
    for size in [0, 1, 31, 32, 33, 64, 100] {
        let mut lobby = Lobby::default();
        let datagrams: Vec<_> = (0..size).map(|n| (address(n), udp(n.into()).datagram())).collect();
        let now = lobby.now;
        lobby.registry.handle_datagrams(now, datagrams.iter().map(|(from, bytes)| ((*from, 9).into(), &bytes[..])));
        assert_eq!(lobby.stats().listed, size as usize);
    }
}
