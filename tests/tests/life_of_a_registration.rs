//! A server is listed, changes, restarts, is reached over both families, leaves, and expires (L8 to L11). What each step means is
//! shown by the tests of the registry.

use rallypoint_harness::{GameServer, Lobby, ParsedServer, eventually, has_ipv6, list_request, send_request};
use rallypoint_wire::lobby::ListId;

#[test]
fn l8_to_l11_from_the_first_registration_to_the_end_of_the_lease() {
    let lobby = Lobby::with(&["lobby.lease=5s"]);
    let before = GameServer::named("before the restart").from_ip("127.3.2.1");
    lobby.register(&before);
    lobby.wait_until_listed(&["before the restart"]);
    let server = before.clone().restarted().renamed("after the restart");
    lobby.register(&server);
    lobby.wait_until_listed(&["after the restart"]);
    // The old ID is unknown now.
    lobby.unregister(&before);
    lobby.settle();
    assert_eq!(lobby.names(), ["after the restart"]);
    if has_ipv6() {
        lobby.register(&server.clone().from_ip("::1"));
        eventually("the second family is listed", || {
            lobby.server("after the restart").is_some_and(|server| server.v6.is_some())
        });
        let [both] = &lobby.servers()[..] else { panic!("one entry") };
        assert_eq!(both.v4, Some("127.3.2.1:8190".parse().unwrap()));
        assert_eq!(both.v6, Some("[::1]:8190".parse().unwrap()));
        let of_ipv6_clients = send_request(lobby.v6(), &list_request(ListId::GANG_GARRISON_2));
        assert_eq!(ParsedServer::parse_all(&of_ipv6_clients), lobby.servers());
    }
    lobby.unregister(&server);
    lobby.wait_until_listed(&[]);
    lobby.register(&GameServer::named("silent").port(8_191));
    lobby.wait_until_listed(&["silent"]);
    lobby.wait_until_listed(&[]);
}
