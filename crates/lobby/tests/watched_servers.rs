//! Servers that do not register are probed if the operator watches them, and are listed while they reply.

use crate::common;

use common::{
    LOBBY, Lobby, eventually,
    game_server::{info, respond},
};
use rallypoint_lobby::{LobbyOptions, Verification, WatchTarget};
use rallypoint_lobby_proto::{Config, ListingOrigin, Mapping};
use rallypoint_query_proto::Protocol;
use rallypoint_wire::lobby::Transport;
use std::{
    io::ErrorKind,
    net::{SocketAddr, UdpSocket},
};

fn start() -> Lobby {
    Lobby::start(LobbyOptions { probe_sockets: 64, ..common::options() })
}

fn target(addr: SocketAddr, host: &str, protocol: Protocol) -> WatchTarget {
    WatchTarget { host: host.into(), port: addr.port().try_into().unwrap(), protocol, list: LOBBY }
}

fn watch(lobby: &Lobby, targets: &[WatchTarget]) {
    lobby.runtime.block_on(lobby.set_watched_servers(targets));
}

#[test]
fn a_watched_server_is_listed_until_it_is_no_longer_watched() {
    let lobby = start();
    let targets = [
        target(respond(&info("Blood", 3)), "127.0.0.1", Protocol::Bloodmasters),
        target(respond(&info("Session", 2)), "localhost", Protocol::Session),
    ];
    watch(&lobby, &targets);
    lobby.wait_until_listed(&["Blood", "Session"]);
    eventually("both are verified in the table", || {
        let snapshot = lobby.servers().snapshot();
        let is_verified =
            |verification, origin| (verification, origin) == (Verification::Verified, ListingOrigin::Watched);
        snapshot.len() == 2 && snapshot.records().all(|record| is_verified(record.verification, record.origin))
    });
    watch(&lobby, &targets[..1]);
    lobby.wait_until_listed(&["Blood"]);
}

#[test]
fn w38_a_registration_does_not_replace_a_watched_server() {
    let lobby = start();
    let addr = respond(&info("Watched", 3));
    watch(&lobby, &[target(addr, "127.0.0.1", Protocol::Bloodmasters)]);
    lobby.wait_until_listed(&["Watched"]);
    let keys: &[(&str, &[u8])] = &[("x-query", b"session:9")];
    lobby.send(&common::registration("Bait", addr.port(), Transport::Udp, keys));
    eventually("the owner can read the reason", || {
        let outcomes = lobby.runtime.block_on(lobby.recent_outcomes([127, 0, 0, 1].into()));
        outcomes.last().is_some_and(|recent| recent.outcome.code() == "listed_by_query")
    });
    assert_eq!(lobby.names(), ["Watched"]);
}

/// The name of a watched server may resolve to an address of the lobby's own network, which its owner decides.
#[test]
fn a_watched_server_with_a_private_address_is_not_probed_unless_those_are_listed() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let public = respond(&info("Public", 3));
    let mapping = Mapping {
        from: "127.0.0.1/32".parse().unwrap(),
        port: Some(public.port()),
        to: [9, 9, 9, 9].into(),
        to_port: None,
    };
    let registry =
        Config { allow_private: false, address_map: [mapping].into_iter().collect(), ..common::options().registry };
    let lobby = Lobby::start(LobbyOptions { probe_sockets: 64, registry, ..common::options() });
    let private = target(silent.local_addr().unwrap(), "localhost", Protocol::Bloodmasters);
    watch(&lobby, &[private, target(public, "127.0.0.1", Protocol::Bloodmasters)]);
    lobby.wait_until_listed(&["Public"]);
    let received = silent.recv(&mut [0; 64]).map_err(|error| error.kind());
    assert_eq!(received, Err(ErrorKind::WouldBlock), "no probe was sent to a private address");
}
