//! Large registrations.

use crate::support;
use rallypoint_lobby_proto::{Config, RegistrationOutcome};
use rallypoint_wire::lobby::{MAX_BLOCK, blocks};
use support::*;

/// A registration of exactly this size in bytes.
fn of_size(size: usize) -> Server {
    let server = udp(1).key("x-filler", "");
    let missing = size - server.datagram().len();
    let server = server.key("x-filler", vec![b'x'; missing]);
    assert_eq!(server.datagram().len(), size);
    server
}

#[test]
fn l15_more_than_4096_bytes_are_refused_by_default() {
    let mut lobby = Lobby::default();
    assert_eq!(lobby.register("203.0.113.9", &of_size(4_096)), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("203.0.113.9", &of_size(4_097)), RegistrationOutcome::TooLarge);
    assert_eq!(lobby.list().len(), 1);
}

#[test]
fn l15_a_datagram_that_is_too_large_is_charged_with_its_full_length() {
    let mut lobby = Lobby::default();
    let from = (ip("203.0.113.9"), 9).into();
    let now = lobby.now;
    let outcomes: Vec<_> = (0..40).map(|_| lobby.handle_too_large(now, from, 60_000).code()).collect();
    let allowed = outcomes.iter().filter(|code| **code == "too_large").count();
    assert_eq!(allowed, 1_200_000 / 60_000, "of one address, 1.2 MB at once");
    assert!(outcomes[allowed..].iter().all(|code| *code == "over_budget"));
    assert_eq!(lobby.recent_outcomes(ip("203.0.113.9")).len(), 2);
}

#[test]
fn l15_the_limit_can_be_configured_up_to_what_fits_in_a_datagram() {
    let mut lobby = Lobby::with(|config| config.max_registration = 65_507);
    assert_eq!(lobby.register("203.0.113.9", &of_size(65_507)), RegistrationOutcome::Listed);
    let mut config = Config::default();
    for (size, is_valid) in [(60, false), (61, true), (65_507, true), (65_508, false)] {
        config.max_registration = size;
        assert_eq!(config.validate().is_ok(), is_valid, "{size}");
    }
}

#[test]
fn l15_no_block_of_the_list_is_larger_than_clients_accept() {
    let mut lobby = Lobby::with(|config| config.max_registration = 65_507);
    lobby.register("203.0.113.9", &of_size(65_507));
    lobby.register("2001:db8::9", &of_size(65_507));
    lobby.list();
    let reply: Vec<u8> = lobby.lists().list(&LOBBY).pieces().flatten().copied().collect();
    assert!(reply.len() - 8 <= MAX_BLOCK);
    assert_eq!(blocks(&reply).filter(Result::is_ok).count(), 1);
}
