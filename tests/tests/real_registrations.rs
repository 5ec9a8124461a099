//! Registrations of existing programs are listed or rejected as intended.

use rallypoint_harness::{Lobby, ParsedServer, hex, vectors};
use rallypoint_wire::lobby::{Datagram, LobbyId};
use std::net::Ipv4Addr;

#[test]
fn every_real_registration_is_listed_or_rejected_as_expected() {
    // The ports of these servers are closed.
    let lobby = Lobby::with(&["checks.enabled=false"]);
    let cases = vectors("real-registrations");
    assert!(cases.len() >= 12);
    for (number, case) in (1..).zip(&cases) {
        lobby.send(Ipv4Addr::new(127, 8, number, 1), &hex(case["bytes"].as_str().unwrap()));
    }
    lobby.settle();
    let gg2 = LobbyId::GANG_GARRISON_2;
    let pygg2 = "0e29560e-443a-93a3-e15e-7bd072df7506".parse().unwrap();
    let vanguard = "4fd0319b-5868-4f24-8b77-568cbb18fde9".parse().unwrap();
    let all: Vec<ParsedServer> = [gg2, pygg2, vanguard].into_iter().flat_map(|id| lobby.servers_in(id)).collect();
    for (number, case) in (1..).zip(&cases) {
        let from = Ipv4Addr::new(127, 8, number, 1);
        let found = all.iter().find(|server| server.v4.is_some_and(|v4| v4.ip() == from));
        let Some(listed) = case["listed"].as_bool() else { continue };
        assert_eq!(found.is_some(), listed, "{}", case["name"]);
        let Some(found) = found else { continue };
        let bytes = hex(case["bytes"].as_str().unwrap());
        let Ok(Datagram::Register(sent)) = Datagram::parse(&bytes) else { panic!("{}", case["name"]) };
        assert_eq!(found.v4.unwrap().port(), sent.port().get(), "{}", case["name"]);
        assert_eq!((found.transport, found.occupancy), (sent.transport(), sent.occupancy()), "{}", case["name"]);
        let keys = |table: rallypoint_wire::lobby::Table<'_>| -> Vec<_> {
            table.iter().map(|entry| (String::from_utf8_lossy(entry.key).into_owned(), entry.value.to_vec())).collect()
        };
        assert_eq!(found.keys, keys(sent.table()), "{}", case["name"]);
    }
}
