//! A server that registers over IPv4 and IPv6 is one entry with two endpoints (L9).

use rallypoint_harness::{GameServer, Lobby, ParsedServer, eventually, has_ipv6, list_request, send_request, skip};
use rallypoint_wire::lobby::LobbyId;

#[test]
fn l9_two_families_one_entry() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let lobby = Lobby::start();
    let server = GameServer::named("both").from_ip("127.3.2.1");
    lobby.register(&server);
    lobby.wait_until_listed(&["both"]);
    lobby.register(&server.clone().from_ip("::1"));
    eventually("the second family is listed", || lobby.server("both").unwrap().v6.is_some());
    let [both] = &lobby.servers()[..] else { panic!("one entry") };
    assert_eq!(both.v4, Some("127.3.2.1:8190".parse().unwrap()));
    assert_eq!(both.v6, Some("[::1]:8190".parse().unwrap()));
    // Clients of both families get the same list.
    assert_eq!(
        ParsedServer::parse_all(&send_request(lobby.v6(), &list_request(LobbyId::GANG_GARRISON_2))),
        lobby.servers()
    );
    lobby.unregister(&server);
    lobby.wait_until_listed(&[]);
}
