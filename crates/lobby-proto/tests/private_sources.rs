//! Servers in private networks: accepted in a LAN, refused by a public lobby, or listed under their public address.

use crate::support;
use rallypoint_lobby_proto::{AddressMap, Config, Mapping, RegistrationOutcome, RegistryConfigError};
use support::*;

const PRIVATE: [&str; 6] = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.0.7", "::1", "fd00::1"];

fn map(from: &str, port: Option<u16>, to: &str, to_port: Option<u16>) -> Mapping {
    Mapping { from: from.parse().unwrap(), port, to: ip(to), to_port }
}

#[test]
fn private_sources_are_accepted_by_default() {
    let mut lobby = Lobby::default();
    for (id, from) in (1..).zip(PRIVATE) {
        assert_eq!(lobby.register(from, &udp(id)), RegistrationOutcome::Listed, "{from}");
    }
}

#[test]
fn a_public_lobby_refuses_them() {
    let mut lobby = Lobby::with(|config| config.allow_private = false);
    for from in PRIVATE {
        assert_eq!(lobby.register(from, &udp(1)), RegistrationOutcome::PrivateSource, "{from}");
    }
    assert_eq!(lobby.register("9.9.9.9", &udp(1)), RegistrationOutcome::Listed);
    assert_eq!(lobby.recent_outcomes(ip("10.1.2.3"))[0].outcome.code(), "private_source");
}

/// Addresses that no player can reach, or that a gateway of the lobby's own network translates to private ones, are neither
/// checked nor listed.
#[test]
fn a_public_lobby_refuses_special_purpose_addresses() {
    let mut lobby = Lobby::with(|config| config.allow_private = false);
    for from in [
        "198.18.0.1",
        "192.0.0.9",
        "203.0.113.9",
        "fec0::1",
        "64:ff9b::192.168.1.1",
        "64:ff9b:1::1",
        "2002:c0a8:101::1",
        "2001:0:a00:1::1",
        "::9.9.9.9",
        "100::1",
        "2001:db8::1",
    ] {
        assert_eq!(lobby.register(from, &tcp(1)), RegistrationOutcome::PrivateSource, "{from}");
    }
    assert_eq!((lobby.checks().len(), lobby.list().len()), (0, 0));
    for (id, from) in (1..).zip(["64:ff9b::9.9.9.9", "2002:909:909::1", "2620:fe::9"]) {
        assert_eq!(lobby.register(from, &udp(id)), RegistrationOutcome::Listed, "{from}");
    }
}

#[test]
fn impossible_source_addresses_are_refused() {
    let mut lobby = Lobby::default();
    for from in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "::ffff:0.0.0.0"] {
        assert_eq!(lobby.register(from, &udp(1)), RegistrationOutcome::InvalidSource, "{from}");
    }
}

#[test]
fn the_address_map_lists_internal_servers_under_their_external_address() {
    let mut lobby = Lobby::with(|config| {
        config.allow_private = false;
        config.address_map = [map("192.168.1.0/24", None, "203.0.113.5", None)].into_iter().collect();
    });
    assert_eq!(lobby.register("192.168.1.10", &udp(1)), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("192.168.2.10", &udp(2)), RegistrationOutcome::PrivateSource);
    assert_eq!(lobby.register("fd00::1", &udp(1)), RegistrationOutcome::PrivateSource);
    assert_eq!(lobby.list(), ["203.0.113.5:8190 udp server 1"]);
}

#[test]
fn the_address_map_can_depend_on_the_port_and_change_it() {
    let mut lobby = Lobby::with(|config| {
        config.address_map = [
            map("192.168.1.10/32", Some(8190), "203.0.113.5", Some(9000)),
            map("192.168.1.0/24", None, "203.0.113.5", None),
            map("fd00::/8", None, "2001:db8::5", Some(9001)),
        ]
        .into_iter()
        .collect();
    });
    lobby.register("192.168.1.10", &udp(1));
    lobby.register("fd00::1", &udp(1));
    lobby.register("192.168.1.10", &udp(2).port(8191));
    assert_eq!(lobby.list(), ["203.0.113.5:8191 udp server 2", "[2001:db8::5]:9001 203.0.113.5:9000 udp server 1"]);
}

#[test]
fn l12_a_mapped_server_is_checked_where_the_lobby_can_reach_it() {
    let mapping = map("192.168.1.0/24", None, "203.0.113.5", Some(9000));
    let mut lobby = Lobby::with(|config| config.address_map = [mapping].into_iter().collect());
    lobby.register("192.168.1.10", &tcp(1));
    assert_eq!(lobby.checks()[0].addr, "192.168.1.10:8190".parse().unwrap());
}

#[test]
fn a_listed_server_has_the_internal_address_of_a_mapped_endpoint() {
    let mappings = [map("192.168.1.0/24", None, "203.0.113.5", Some(9000)), map("fd00::/8", None, "2001:db8::5", None)];
    let mut lobby = Lobby::with(|config| config.address_map = mappings.into_iter().collect());
    let inside = |lobby: &mut Lobby, listed: [&str; 2]| {
        assert_eq!(lobby.list().len(), 1);
        let directory = lobby.lists().snapshot();
        let listing = directory.lists().flat_map(|(_, list)| list.servers()).next().unwrap();
        listed.map(|listed| listing.internal_addr(listed.parse().unwrap()).to_string())
    };
    let listed = ["203.0.113.5:9000", "[2001:db8::5]:8190"];
    lobby.register("192.168.1.10", &udp(1));
    lobby.register("fd00::1", &udp(1));
    assert_eq!(inside(&mut lobby, listed), ["192.168.1.10:8190", "[fd00::1]:8190"]);
    // Its internal address changes, but not the external one.
    lobby.register("192.168.1.11", &udp(1));
    assert_eq!(inside(&mut lobby, listed), ["192.168.1.11:8190", "[fd00::1]:8190"]);
    lobby.set(|config| config.address_map = AddressMap::default());
    lobby.register("192.168.1.11", &udp(1));
    lobby.register("fd00::1", &udp(1));
    let listed = ["192.168.1.11:8190", "[fd00::1]:8190"];
    assert_eq!(inside(&mut lobby, listed), listed);
}

#[test]
fn the_address_map_cannot_change_the_family() {
    for (from, to) in [("192.168.1.0/24", "2001:db8::5"), ("fd00::/8", "203.0.113.5")] {
        let address_map: AddressMap = [map(from, None, to, None)].into_iter().collect();
        let error = Config { address_map, ..Config::default() }.validate().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the address map cannot map an address to one of the other family: {from} -> {to}")
        );
    }
    for (port, to, to_port) in [(Some(0), "203.0.113.5", None), (None, "203.0.113.5", Some(0)), (None, "0.0.0.0", None)]
    {
        let address_map: AddressMap = [map("192.168.1.0/24", port, to, to_port)].into_iter().collect();
        let error = Config { address_map, ..Config::default() }.validate().unwrap_err();
        assert!(matches!(error, RegistryConfigError::MappedPort(_) | RegistryConfigError::MappedAddress(_)), "{error}");
    }
}

/// Two hosts behind one external address: the second one must choose another port.
#[test]
fn w44_an_internal_host_does_not_replace_the_server_of_another_one() {
    let mut lobby = Lobby::with(|config| {
        config.address_map = [map("192.168.1.0/24", None, "203.0.113.5", None)].into_iter().collect();
    });
    lobby.register("192.168.1.10", &udp(1));
    assert_eq!(lobby.register("192.168.1.11", &udp(2)), RegistrationOutcome::EndpointTaken);
    assert_eq!(lobby.list(), ["203.0.113.5:8190 udp server 1"]);
    assert_eq!(lobby.register("192.168.1.11", &udp(2).port(8191)), RegistrationOutcome::Listed);
    // A known server cannot move there either.
    assert_eq!(lobby.register("192.168.1.11", &udp(2)), RegistrationOutcome::EndpointTaken);
    // L8: a restarted server replaces its own entry.
    assert_eq!(lobby.register("192.168.1.10", &udp(3)), RegistrationOutcome::Listed);
    assert_eq!(lobby.list(), ["203.0.113.5:8190 udp server 3", "203.0.113.5:8191 udp server 2"]);
    lobby.wait(secs(70) + GRAIN);
    assert_eq!(lobby.register("192.168.1.11", &udp(2)), RegistrationOutcome::Listed, "the place is free");
}

/// Sources outside can be forged, also the external address itself.
#[test]
fn w44_a_mapped_host_precedes_the_external_address_itself() {
    let mut lobby = Lobby::with(|config| {
        config.address_map = [map("192.168.1.0/24", None, "203.0.113.5", None)].into_iter().collect();
    });
    lobby.register("203.0.113.5", &udp(1));
    assert_eq!(lobby.register("192.168.1.10", &udp(2)), RegistrationOutcome::Listed);
    assert_eq!(lobby.register("203.0.113.5", &udp(1)), RegistrationOutcome::EndpointTaken);
    assert_eq!(lobby.list(), ["203.0.113.5:8190 udp server 2"]);
}
