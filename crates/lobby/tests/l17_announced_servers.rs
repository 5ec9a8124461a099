//! Bloodmasters servers that announce themselves are probed, and listed if they reply (L17).

use crate::common;

use common::{
    Lobby, eventually, fetch,
    game_server::{info, respond},
    names, request,
};
use rallypoint_lobby::{AnnouncementError, LobbyOptions, Verification};
use rallypoint_lobby_proto::{Ban, BanList, BanSubject, ListingOrigin, doors::BLOODMASTERS};
use rallypoint_wire::lobby::ListId;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    time::{Instant, SystemTime},
};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn options() -> LobbyOptions {
    LobbyOptions { probe_sockets: 64, ..common::options() }
}

fn announce(lobby: &Lobby, addr: SocketAddr, is_exempt: bool) -> Result<(), AnnouncementError> {
    lobby.runtime.block_on(lobby.handle_announcement(
        &BLOODMASTERS,
        addr.ip(),
        addr.port().try_into().unwrap(),
        is_exempt,
    ))
}

fn listed_names(lobby: &Lobby) -> Vec<String> {
    names(&fetch(lobby.addr(), &request(ListId::BLOODMASTERS)))
}

/// Code of the last outcome, and whether it is about this server.
fn last_outcome(lobby: &Lobby, addr: SocketAddr) -> Option<(&'static str, bool)> {
    let outcomes = lobby.runtime.block_on(lobby.recent_outcomes(LOOPBACK));
    outcomes.last().map(|recent| (recent.outcome.code(), recent.port == Some(addr.port())))
}

#[test]
fn l17_an_announced_server_that_replies_is_listed_and_verified() {
    let lobby = Lobby::start(options());
    assert_eq!(announce(&lobby, respond(&info("Blood", 3)), true), Ok(()));
    eventually("the server is in the list", || listed_names(&lobby) == ["Blood"]);
    eventually("the server is verified in the table", || {
        let snapshot = lobby.servers().snapshot();
        snapshot.records().next().is_some_and(|record| {
            (record.origin, record.verification) == (ListingOrigin::Announced, Verification::Verified)
        })
    });
}

#[test]
fn l17_an_announced_server_that_does_not_reply_is_unreachable() {
    let lobby = Lobby::start(options());
    let silent = UdpSocket::bind(common::any_v4()).unwrap();
    let addr = silent.local_addr().unwrap();
    assert_eq!(announce(&lobby, addr, true), Ok(()));
    assert_eq!(last_outcome(&lobby, addr), Some(("unreachable", true)));
    assert!(listed_names(&lobby).is_empty());
}

#[test]
fn l17_a_banned_server_is_refused_and_its_network_is_rate_limited() {
    let ban = Ban { subject: BanSubject::Network("127.0.0.0/8".parse().unwrap()), reason: "".into(), until: None };
    let mut options = options();
    options.registry.bans = BanList::new([ban], Instant::now(), SystemTime::now());
    let lobby = Lobby::start(options);
    let addr = respond(&info("Blood", 3));
    assert_eq!(announce(&lobby, addr, false), Ok(()));
    assert_eq!(last_outcome(&lobby, addr), Some(("banned", true)));
    assert_eq!(lobby.probe_stats().unwrap().sent, 0, "the server was not probed");
    eventually("the rate limit is reached", || announce(&lobby, addr, false) == Err(AnnouncementError::RateLimited));
    assert_eq!(announce(&lobby, addr, true), Ok(()), "exempt servers are not limited");
}

#[test]
fn l17_without_probe_sockets_announcements_are_disabled() {
    let lobby = Lobby::start(common::options());
    let addr = respond(&info("Blood", 3));
    assert_eq!(announce(&lobby, addr, true), Err(AnnouncementError::Disabled));
}
