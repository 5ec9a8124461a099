//! Every datagram ends in exactly one outcome, and the counters add up.

use crate::support;
use proptest::prelude::*;
use rallypoint_lobby_proto::{RegistrationOutcome, UnlistReason};
use std::collections::HashSet;
use support::*;

#[test]
fn codes_are_distinct_and_stable() {
    let codes: HashSet<_> = RegistrationOutcome::CODES.into_iter().chain(UnlistReason::CODES).collect();
    for code in codes {
        assert!(code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
    }
    assert_eq!(RegistrationOutcome::CODES.iter().collect::<HashSet<_>>().len(), RegistrationOutcome::CODES.len());
    assert_eq!(RegistrationOutcome::CODES[..3], ["listed", "changed", "refreshed"]);
    assert_eq!(UnlistReason::Expired.code(), "expired");
}

#[test]
fn every_outcome_has_an_explanation() {
    let mut lobby = Lobby::with(|config| config.allow_private = false);
    let mut told = HashSet::new();
    for (from, bytes) in [
        ("9.9.9.9", udp(1).datagram()),
        ("9.9.9.9", udp(1).datagram()),
        ("9.9.9.9", udp(1).players(1).datagram()),
        ("9.9.9.8", tcp(2).datagram()),
        ("10.0.0.1", udp(3).datagram()),
        ("0.0.0.0", udp(3).datagram()),
        ("9.9.9.9", unregister(1)),
        ("9.9.9.9", unregister(1)),
        ("9.9.9.9", udp(1).datagram()),
        ("9.9.9.9", vec![0; 5_000]),
        ("9.9.9.9", vec![0; 50]),
    ] {
        let outcome = lobby.send(from, &bytes);
        assert!(!outcome.to_string().is_empty() && !outcome.to_string().ends_with('.'), "{outcome}");
        told.insert(outcome.code());
    }
    assert_eq!(told.len(), 11);
}

#[test]
fn the_explanation_names_the_decoding_error() {
    let mut lobby = Lobby::default();
    let mut no_port = udp(1).datagram();
    no_port[49..51].fill(0);
    assert_eq!(lobby.send("9.9.9.9", &no_port).to_string(), "the registration is not valid: port is 0");
    assert_eq!(lobby.send("9.9.9.9", b"").code(), "malformed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]
    #[test]
    fn counters_add_up(datagrams in proptest::collection::vec(
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..80),
            (0u128..8, 0u16..3, any::<bool>(), any::<Option<usize>>()).prop_map(|(id, port, is_tcp, cut)| {
                let mut bytes = if is_tcp { tcp(id) } else { udp(id) }.port(1 + port).datagram();
                let whole = bytes.len();
                cut.into_iter().for_each(|cut| bytes.truncate(cut % whole));
                bytes
            }),
            (0u128..8).prop_map(unregister),
        ],
        0..100,
    )) {
        let mut lobby = Lobby::default();
        let mut counts = [0; RegistrationOutcome::CODES.len()];
        for (n, bytes) in (0..).zip(&datagrams) {
            let outcome = lobby.send(address(n % 5), bytes);
            counts[outcome.index()] += 1;
            prop_assert_eq!(lobby.stats().outcomes, counts);
            lobby.wait(ms(u64::from(n) * 37 % 900));
        }
        let stats = lobby.stats();
        prop_assert_eq!(stats.outcomes.iter().sum::<u64>(), datagrams.len() as u64);
        // Every server that was listed is still listed, or left for a reason. (Lobby moves and checks do not occur here.)
        // A server that takes a contested address back (W100) was listed at another port until then, or is listed anew. One that was
        // replaced may return without a registration (W45).
        let listed = stats.outcome(RegistrationOutcome::Listed);
        let contested = stats.outcome(RegistrationOutcome::Contested);
        let replaced = UnlistReason::CODES.iter().position(|&code| code == UnlistReason::Replaced.code());
        let returned = replaced.map_or(0, |replaced| stats.unlisted[replaced]);
        let listings = stats.listed as u64 + stats.unlisted.iter().sum::<u64>();
        let expected = listed..=listed + contested + returned;
        prop_assert!(expected.contains(&listings), "{} of {:?}", listings, expected);
    }
}
