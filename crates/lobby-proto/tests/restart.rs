//! A restart of the lobby does not empty its list.

use crate::support;
use proptest::prelude::*;
use rallypoint_lobby_proto::{
    Ban, BanSubject, Config, RegistrationOutcome, RestoreError, SaveFileWriter, UnlistedServer,
};
use rallypoint_wire::lobby::Transport;
use support::*;

/// A lobby after a restart.
fn restarted(save: &[u8], config: Config) -> (Lobby, Result<usize, RestoreError>) {
    let mut lobby = Lobby::new(config);
    let result = lobby.registry.restore(lobby.now, save);
    lobby.check_invariants();
    (lobby, result)
}

fn full() -> Lobby {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1).players(3).key("map", "ctf_truefort"));
    lobby.register("2001:db8::9", &udp(1).port(9000).players(3).key("map", "ctf_truefort"));
    lobby.register("203.0.113.10", &tcp(2));
    lobby.settle(REACHABLE);
    lobby.register("203.0.113.11", &udp(3).lobby(support::lobby(7)));
    lobby
}

#[test]
fn all_listed_servers_are_restored() {
    let mut lobby = full();
    let (mut again, count) = restarted(&lobby.save(), Config::default());
    assert_eq!(count, Ok(3));
    assert_eq!(published(&again, LOBBY).len(), 2, "at once");
    assert_eq!(again.list(), lobby.list());
    assert_eq!(again.list_of(support::lobby(7)), lobby.list_of(support::lobby(7)));
    assert_eq!(again.stats().registered, 3);
    assert_eq!(again.events(), [""; 0], "there are no events");
}

#[test]
fn restored_servers_keep_their_public_id_and_age() {
    let mut lobby = full();
    lobby.wait(secs(60));
    lobby.list();
    let (again, _) = restarted(&lobby.save(), Config::default());
    let facts = |lobby: &Lobby| {
        let list = lobby.lists().list(&LOBBY);
        let age = |since| lobby.now.duration_since(since).as_secs();
        let mut facts: Vec<_> = list.servers().map(|server| (server.public_id(), age(server.since()))).collect();
        facts.sort();
        facts
    };
    assert_eq!(facts(&again), facts(&lobby));
    assert_eq!(facts(&again)[0].1, 60);
}

#[test]
fn l13_the_secret_id_is_restored() {
    let (mut again, _) = restarted(&full().save(), Config::default());
    assert_eq!(
        again.register("203.0.113.9", &udp(1).players(3).key("map", "ctf_truefort")),
        RegistrationOutcome::Refreshed
    );
    assert_eq!(again.unregister("198.51.100.1", 2), RegistrationOutcome::Unregistered);
    assert_eq!(again.register("203.0.113.11", &udp(4).lobby(lobby(7))), RegistrationOutcome::Listed);
    assert_eq!(again.list_of(lobby(7)), ["203.0.113.11:8190 udp server 4"]);
}

#[test]
fn l10_the_rest_of_each_lease_is_restored() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(10));
    let (mut again, _) = restarted(&lobby.save(), Config::default());
    again.wait(secs(60) - ms(1));
    assert_eq!(again.list().len(), 1);
    again.wait(ms(1) + 2 * GRAIN);
    assert_eq!(again.list(), [""; 0]);
}

#[test]
fn l10_a_restored_lease_is_at_least_35_s_so_that_every_server_can_refresh() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    lobby.wait(secs(69));
    let (mut again, _) = restarted(&lobby.save(), Config::default());
    again.wait(secs(35) - ms(1));
    assert_eq!(again.list().len(), 1);
    assert!(again.register("203.0.113.9", &udp(1)).is_listed());
    again.wait(secs(70) - ms(1));
    assert_eq!(again.list().len(), 1);
    again.wait(ms(1) + GRAIN);
    assert_eq!(again.list(), [""; 0]);
}

#[test]
fn l12_restored_servers_are_checked_in_the_background() {
    let (mut again, _) = restarted(&full().save(), Config::default());
    assert_eq!(again.checks(), []);
    for _ in 0..3 {
        again.wait(secs(30));
        assert!(again.register("203.0.113.10", &tcp(2)).is_listed());
    }
    assert_eq!(again.settle(rallypoint_lobby_proto::CheckResult::Unreachable), 1);
    assert_eq!(again.list(), [""; 0]);
}

#[test]
fn banned_and_private_servers_are_not_restored() {
    let network = BanSubject::Network("203.0.113.10/32".parse().unwrap());
    let mut lobby = full();
    lobby.list();
    let id = lobby.lists().list(&support::lobby(7)).servers().next().unwrap().public_id();
    let server = BanSubject::Server(UnlistedServer {
        id,
        name: String::new(),
        transport: Transport::Udp,
        addresses: Vec::new(),
    });
    for (subject, left) in [(network, [1, 1]), (server, [2, 0])] {
        let bans = permanent([Ban { subject, reason: "spam".into(), until: None }]);
        let (mut again, count) = restarted(&lobby.save(), Config { bans, ..Config::default() });
        assert_eq!(count, Ok(2));
        assert_eq!([again.list().len(), again.list_of(support::lobby(7)).len()], left);
    }

    let mut lobby = Lobby::default();
    lobby.register("192.168.0.1", &udp(1));
    lobby.register("192.168.0.2", &udp(2));
    lobby.register("2620:fe::9", &udp(2));
    let (mut again, count) = restarted(&lobby.save(), Config { allow_private: false, ..Config::default() });
    assert_eq!((count, again.list()), (Ok(1), vec!["[2620:fe::9]:8190 udp server 2".to_owned()]));
}

#[test]
fn servers_beyond_a_cap_are_not_restored() {
    let mut config = Config::default();
    config.caps.total = 2;
    let (again, count) = restarted(&full().save(), config);
    assert_eq!((count, again.stats().registered), (Ok(2), 2));
}

#[test]
fn servers_that_have_registered_already_are_not_overwritten() {
    let mut again = Lobby::default();
    again.register("203.0.113.9", &udp(77).name("newer"));
    let now = again.now;
    assert_eq!(again.registry.restore(now, &full().save()), Ok(2));
    again.check_invariants();
    assert!(again.list().contains(&"203.0.113.9:8190 udp newer".to_owned()));
    assert_eq!(again.registry.restore(now, &full().save()), Ok(0), "twice is once");
}

#[test]
fn servers_that_are_not_listed_are_not_saved() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.10", &tcp(2));
    assert_eq!(restarted(&lobby.save(), Config::default()).1, Ok(0));
}

#[test]
fn a_save_can_be_written_in_steps_while_the_registry_changes() {
    let mut lobby = Lobby::default();
    (0..50).for_each(|n| assert_eq!(lobby.register(address(n), &udp(n.into())), RegistrationOutcome::Listed));
    let (mut saver, mut file) = (SaveFileWriter::new(), Vec::new());
    let mut n = 50;
    while !lobby.save_next(lobby.now, &mut saver, 3) {
        file.extend(saver.take());
        lobby.unregister(address(0), n - 50);
        lobby.register(address(n as u32), &udp(n));
        n += 1;
    }
    file.extend(saver.finish());
    let (again, count) = restarted(&file, Config::default());
    assert!((45..=70).contains(&count.unwrap()), "{count:?}");
    assert_eq!(again.stats().listed, count.unwrap());
}

#[test]
fn a_save_is_the_same_in_one_step_and_in_many() {
    let lobby = full();
    let (mut saver, mut pieces) = (SaveFileWriter::new(), Vec::new());
    while !lobby.save_next(lobby.now, &mut saver, 1) {
        pieces.extend(saver.take());
    }
    pieces.extend(saver.finish());
    assert_eq!(pieces, lobby.save());
}

#[test]
fn a_truncated_save_is_rejected() {
    let save = full().save();
    let mut lobby = Lobby::default();
    let now = lobby.now;
    for length in 0..save.len() {
        let expected = if length < 8 { RestoreError::NotASave } else { RestoreError::Damaged };
        assert_eq!(lobby.registry.restore(now, &save[..length]), Err(expected), "{length}");
    }
    assert_eq!(lobby.stats().registered, 0);
    let (_, result) = restarted(&[&save[..], b"!"].concat(), Config::default());
    assert_eq!(result, Err(RestoreError::Damaged));
}

#[test]
fn every_flipped_bit_is_detected() {
    let mut lobby = Lobby::default();
    lobby.register("203.0.113.9", &udp(1));
    let save = lobby.save();
    let mut registry = Lobby::default();
    let now = registry.now;
    for bit in 0..8 * save.len() {
        let mut wrong = save.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert!(registry.registry.restore(now, &wrong).is_err(), "bit {bit}");
    }
    assert_eq!(registry.stats().registered, 0);
}

#[test]
fn a_newer_format_is_distinguished_from_damage() {
    let mut save = full().save();
    save[8..12].copy_from_slice(&9u32.to_be_bytes());
    let error = restarted(&save, Config::default()).1.unwrap_err();
    assert_eq!(error, RestoreError::TooNew(9));
    assert_eq!(error.to_string(), "it was written by a later version of this program (format 9)");
    assert_eq!(restarted(b"", Config::default()).1, Err(RestoreError::NotASave));
    assert_eq!(restarted(b"something else entirely", Config::default()).1, Err(RestoreError::NotASave));
}

/// A save with a valid checksum over this body.
fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&body);
    body.extend(crc.finalize().to_be_bytes());
    body
}

proptest! {
    #[test]
    fn invalid_contents_with_a_valid_checksum_are_harmless(
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        value in any::<u8>(),
        is_cut in any::<bool>(),
    ) {
        let save = full().save();
        let mut body = save[..save.len() - 4].to_vec();
        let place = 12 + at.index(body.len() - 12);
        body[place] = value;
        if is_cut {
            body.truncate(12 + cut.index(body.len() - 12));
        }
        let (mut lobby, result) = restarted(&sealed(body), Config::default());
        if result.is_err() {
            prop_assert_eq!(lobby.stats().registered, 0);
        }
        lobby.list();
        lobby.wait(secs(100));
        prop_assert_eq!(lobby.stats().registered, 0);
    }
}
