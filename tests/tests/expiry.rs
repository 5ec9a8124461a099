//! A server that stops refreshing leaves the list when its lease expires (L10).

use rallypoint_harness::{GameServer, Lobby, eventually, has_ipv6, skip};

#[test]
fn l10_a_silent_server_leaves_the_list() {
    let lobby = Lobby::with(&["lobby.lease=2s"]);
    lobby.register(&GameServer::named("silent"));
    lobby.wait_until_listed(&["silent"]);
    lobby.wait_until_listed(&[]);
}

#[test]
fn l10_a_server_that_refreshes_stays() {
    let lobby = Lobby::with(&["lobby.lease=2s"]);
    let [active, silent] = ["active", "silent"].map(GameServer::named);
    let active = active.port(8191);
    lobby.register(&active);
    lobby.register(&silent);
    lobby.wait_until_listed(&["active", "silent"]);
    eventually("only the silent server has expired", || {
        lobby.register(&active);
        lobby.names() == ["active"]
    });
}

#[test]
fn l9_each_family_has_its_own_lease() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let lobby = Lobby::with(&["lobby.lease=2s"]);
    let v4 = GameServer::named("both");
    let v6 = v4.clone().from_ip("::1");
    lobby.register(&v6);
    eventually("only the IPv4 endpoint is listed", || {
        lobby.register(&v4);
        lobby.server("both").is_some_and(|server| server.v4.is_some() && server.v6.is_none())
    });
}
