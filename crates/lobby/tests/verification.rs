//! Servers that state how to query them are probed, and the table shows whether their replies confirm their registrations.

use crate::common;

use common::{
    Lobby, eventually,
    game_server::{info, respond},
};
use rallypoint_lobby::{Differences, LobbyOptions, ServerRecord, TableScope, Verification};
use rallypoint_lobby_proto::Mapping;
use rallypoint_query_proto::ServerInfo;
use rallypoint_wire::lobby::Transport;
use std::{net::UdpSocket, sync::Arc};

fn options() -> LobbyOptions {
    LobbyOptions { probe_sockets: 64, ..common::options() }
}

/// Registers "Bacon Town" with 7 players and 24 slots.
fn register(lobby: &Lobby, x_query: &str) {
    let keys: &[(&str, &[u8])] = &[("map", b"ctf_two"), ("x-query", x_query.as_bytes())];
    lobby.send(&common::registration("Bacon Town", 8_190, Transport::Udp, keys));
}

/// Waits until the only server has this verification.
fn wait_for(lobby: &Lobby, verification: Verification) -> Arc<ServerRecord> {
    let record = || lobby.servers().snapshot().records().next().cloned();
    eventually(&format!("the server is {verification:?}"), || {
        record().is_some_and(|record| record.verification == verification)
    });
    record().unwrap()
}

#[test]
fn a_reply_that_confirms_the_registration_verifies_the_server() {
    for scope in [TableScope::All, TableScope::Verifiable] {
        let lobby = Lobby::start(LobbyOptions { table_scope: scope, ..options() });
        let addr = respond(&info("Bacon Town", 6));
        register(&lobby, &format!("session:{}", addr.port()));
        let record = wait_for(&lobby, Verification::Verified);
        assert!(record.differences.is_none());
        assert_eq!(record.info.as_ref().unwrap().players, Some(6));
        assert!(lobby.probe_stats().unwrap().complete >= 1);
    }
}

#[test]
fn a_reply_that_contradicts_the_registration_is_shown_with_the_fields_that_differ() {
    let lobby = Lobby::start(options());
    let reply = ServerInfo { map: Some("dm_one".into()), max_players: Some(4), ..info("Tofu", 0) };
    register(&lobby, &format!("bloodmasters:{}", respond(&reply).port()));
    let record = wait_for(&lobby, Verification::Differs);
    let expected = Differences { players: true, slots: true, name: true, map: true, password: false };
    assert_eq!(record.differences, expected);
}

#[test]
fn a_server_behind_the_address_map_is_probed_at_its_internal_address() {
    let mut options = options();
    // The outer address is not reachable, as for a lobby behind a router without NAT loopback.
    let outside =
        Mapping { from: "127.0.0.1/32".parse().unwrap(), port: None, to: [203, 0, 113, 5].into(), to_port: None };
    options.registry.address_map = [outside].into_iter().collect();
    let lobby = Lobby::start(options);
    register(&lobby, &format!("session:{}", respond(&info("Bacon Town", 7)).port()));
    let record = wait_for(&lobby, Verification::Verified);
    assert_eq!(record.v4.unwrap().ip().octets(), [203, 0, 113, 5]);
}

#[test]
fn a_server_that_does_not_reply_is_unreachable() {
    let mut options = options();
    // Otherwise it would not even be listed (L12).
    options.registry.checks.enabled = false;
    let lobby = Lobby::start(options);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    register(&lobby, &format!("bloodmasters:{}", silent.local_addr().unwrap().port()));
    wait_for(&lobby, Verification::Unreachable);
}

#[test]
fn without_probe_sockets_no_server_is_probed() {
    let lobby = Lobby::start(common::options());
    let addr = respond(&info("Bacon Town", 7));
    register(&lobby, &format!("session:{}", addr.port()));
    lobby.wait_until_listed(&["Bacon Town"]);
    eventually("the server is in the table", || !lobby.servers().snapshot().is_empty());
    assert_eq!(wait_for(&lobby, Verification::NotProbed).info, None);
    assert_eq!(lobby.probe_stats(), None);
}
