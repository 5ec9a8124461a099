//! A server that is not heard of any more leaves the list when its lease ends (L10).

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
    let [lively, silent] = ["lively", "silent"].map(GameServer::named);
    let lively = lively.port(8191);
    lobby.register(&lively);
    lobby.register(&silent);
    lobby.wait_until_listed(&["lively", "silent"]);
    eventually("only the silent one has gone", || {
        lobby.register(&lively);
        lobby.names() == ["lively"]
    });
}

#[test]
fn l9_each_family_has_a_lease_of_its_own() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let lobby = Lobby::with(&["lobby.lease=2s"]);
    let v4 = GameServer::named("both");
    let v6 = v4.clone().from_ip("::1");
    lobby.register(&v6);
    eventually("it is there by IPv4 only", || {
        lobby.register(&v4);
        lobby.server("both").is_some_and(|server| server.v4.is_some() && server.v6.is_none())
    });
}
