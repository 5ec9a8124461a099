//! Old Gang Garrison 2 servers and clients.

use crate::support;
use rallypoint_lobby_proto::{CheckKind, RegistrationOutcome};
use rallypoint_wire::{
    legacy::{Counts, Info, ListEntry, Registration, entries, protocol_of_version},
    lobby::{ListBlock, Occupancy, ProtocolId},
};
use support::*;

fn registration(version: u8, port: u16, text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let info = Info::parse(text.as_bytes());
    Registration { protocol_id: protocol_of_version(version), port: port.try_into().unwrap(), info }.emit(&mut bytes);
    bytes
}

impl Lobby {
    /// The legacy list as a client parses it: endpoint and text.
    fn legacy_list(&mut self, protocol: ProtocolId) -> Vec<String> {
        self.registry.publish(self.now);
        let reply = self.legacy_reply(protocol);
        let servers: Vec<ListEntry<'_>> = entries(&reply).collect::<Result<_, _>>().expect("a valid reply");
        assert_eq!(servers.len(), usize::from(reply[0]));
        let show = |server: &ListEntry<'_>| {
            let mut text = Vec::new();
            server.info.emit(&mut text);
            format!("{} {}", server.endpoint, String::from_utf8_lossy(&text))
        };
        servers.iter().map(show).collect()
    }
}

#[test]
fn l16_a_legacy_server_is_checked_and_shown_in_both_lists() {
    let mut lobby = Lobby::default();
    let datagram = registration(41, 8190, "!private![ctf_truefort] Bacon Town [3/10] - Randomizer");
    assert_eq!(lobby.send_legacy("203.0.113.9", &datagram), RegistrationOutcome::Checking);
    assert_eq!(lobby.checks()[0].kind, CheckKind::Connect);
    lobby.report(
        rallypoint_lobby_proto::CheckTarget { addr: "203.0.113.9:8190".parse().unwrap(), kind: CheckKind::Connect },
        REACHABLE,
    );
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp Bacon Town"]);
    let list = lobby.lists().list(&LOBBY);
    let block = list.servers().next().unwrap().block();
    assert_eq!(block.occupancy, Occupancy { slots: 10, players: 3, bots: 0, password: true });
    assert_eq!(block.table.get(b"map"), Some(&b"ctf_truefort"[..]));
    assert_eq!(block.table.get(b"game"), Some(&b"Randomizer"[..]));
    assert_eq!(block.table.get(b"protocol_id"), Some(&protocol_of_version(41).as_bytes()[..]));
    assert_eq!(
        lobby.legacy_list(protocol_of_version(41)),
        ["203.0.113.9:8190 !private![ctf_truefort] Bacon Town [3/10] - Randomizer"]
    );
    assert_eq!(lobby.legacy_list(protocol_of_version(42)), [""; 0]);
}

#[test]
fn w95_the_game_of_a_legacy_server_is_named_as_by_the_reference() {
    let mut lobby = Lobby::unchecked();
    let games =
        [("Bacon Town [3/10]", "Legacy Gang Garrison 2 version or mod"), ("Tofu [3/10] - Randomizer", "Randomizer")];
    for (port, (text, _)) in (8190..).zip(games) {
        assert_eq!(lobby.send_legacy("203.0.113.9", &registration(41, port, text)), RegistrationOutcome::Listed);
    }
    let _ = lobby.list();
    let list = lobby.lists().list(&LOBBY);
    for (port, (text, game)) in (8190..).zip(games) {
        let is_it = |block: &ListBlock<'_>| block.endpoints().any(|addr| addr.port() == port);
        let server = list.servers().find(|server| is_it(&server.block())).unwrap();
        let table = server.block().table;
        assert_eq!(
            (table.get(b"game"), table.get(b"game_short")),
            (Some(game.as_bytes()), Some(&b"old"[..])),
            "{text}"
        );
    }
    // The texts of the reference are for the current list only.
    let shown = games.map(|(text, _)| text);
    let listed = lobby.legacy_list(protocol_of_version(41));
    assert!(shown.iter().all(|text| listed.iter().any(|line| line.ends_with(text))), "{listed:?}");
}

#[test]
fn w15_a_legacy_server_is_refreshed_and_expires() {
    let mut lobby = Lobby::unchecked();
    let datagram = registration(41, 8190, "Bacon Town [0/10]");
    assert_eq!(lobby.send_legacy("203.0.113.9", &datagram), RegistrationOutcome::Listed);
    for _ in 0..5 {
        lobby.wait(secs(30));
        assert_eq!(lobby.send_legacy("203.0.113.9", &datagram), RegistrationOutcome::Refreshed);
    }
    assert_eq!(
        lobby.send_legacy("203.0.113.9", &registration(41, 8190, "Bacon Town [1/10]")),
        RegistrationOutcome::Changed
    );
    assert_eq!(lobby.legacy_list(protocol_of_version(41)), ["203.0.113.9:8190 Bacon Town [1/10]"]);
    lobby.wait(secs(71));
    assert_eq!(lobby.legacy_list(protocol_of_version(41)), [""; 0]);
}

#[test]
fn l16_several_legacy_servers_can_share_an_address() {
    let mut lobby = Lobby::unchecked();
    for port in 1..=3 {
        assert_eq!(lobby.send_legacy("203.0.113.9", &registration(41, port, "name")), RegistrationOutcome::Listed);
    }
    assert_eq!(lobby.legacy_list(protocol_of_version(41)).len(), 3);
    assert_eq!(lobby.stats().registered, 3);
}

#[test]
fn l16_current_servers_are_shown_to_legacy_clients_of_their_protocol() {
    let mut lobby = Lobby::unchecked();
    let protocol = ProtocolId::from_bytes([7; 16]);
    let server = tcp(1).key("map", "koth").key("game", "Gang Garrison 2").key("protocol_id", [7; 16]);
    let server = Server { occupancy: Occupancy { slots: 10, players: 2, bots: 4, password: false }, ..server };
    lobby.register("203.0.113.9", &server);
    assert_eq!(lobby.legacy_list(protocol), ["203.0.113.9:8190 [koth] server 1 [2+4/10]"]);
    lobby.register("203.0.113.9", &server.clone().key("protocol_id", [8; 16]));
    assert_eq!(lobby.legacy_list(protocol), [""; 0], "it has been updated");
    assert_eq!(lobby.legacy_list(ProtocolId::from_bytes([8; 16])).len(), 1);
}

#[test]
fn l16_only_servers_of_the_game_with_an_ipv4_endpoint_are_shown() {
    let mut lobby = Lobby::unchecked();
    let server = |id| tcp(id).key("protocol_id", [7; 16]);
    lobby.register("203.0.113.9", &server(1).lobby(support::lobby(1)));
    lobby.register("2001:db8::9", &server(2));
    lobby.register("203.0.113.10", &tcp(3));
    let protocol = ProtocolId::from_bytes([7; 16]);
    assert_eq!(lobby.legacy_list(protocol), [""; 0]);
    lobby.register("203.0.113.11", &server(2));
    assert_eq!(lobby.legacy_list(protocol).len(), 1);
    // Its IPv4 endpoint expires, the other one stays.
    for _ in 0..3 {
        lobby.wait(secs(30));
        lobby.register("2001:db8::9", &server(2));
    }
    assert_eq!(lobby.list().len(), 1);
    assert_eq!(lobby.legacy_list(protocol), [""; 0]);
}

#[test]
fn l16_of_more_than_255_servers_the_oldest_are_shown() {
    let mut lobby = Lobby::unchecked();
    for n in 0..300 {
        lobby.register(address(n), &tcp(n.into()).key("protocol_id", [7; 16]));
        lobby.wait(ms(10));
    }
    let list = lobby.legacy_list(ProtocolId::from_bytes([7; 16]));
    assert_eq!(list.len(), 255);
    assert!((0..255).all(|n| list.iter().any(|line| line.starts_with(&format!("{}:", address(n))))));
}

#[test]
fn l16_invented_protocols_cannot_displace_real_ones() {
    let mut lobby = Lobby::unchecked();
    let invented = |n: u32| u128::from(n).to_be_bytes();
    for n in 0..2_000 {
        lobby.register(address(n), &tcp(n.into()).key("protocol_id", invented(n)));
        lobby.wait(ms(1));
    }
    assert_eq!(lobby.legacy_list(ProtocolId::from_bytes(invented(0))).len(), 1);
    let shown = (0..2_000).filter(|n| !lobby.legacy_list(ProtocolId::from_bytes(invented(*n))).is_empty()).count();
    assert_eq!(shown, 1_000);
    assert_eq!(lobby.list().len(), 2_000, "the current list has all of them");
    lobby.wait(secs(71));
    lobby.register(address(1), &tcp(1).key("protocol_id", invented(9_999)));
    assert_eq!(lobby.legacy_list(ProtocolId::from_bytes(invented(9_999))).len(), 1);
}

#[test]
fn l16_malformed_datagrams_have_an_outcome() {
    let mut lobby = Lobby::default();
    assert_eq!(lobby.send_legacy("203.0.113.9", b"nonsense").code(), "malformed");
    assert_eq!(lobby.send_legacy("203.0.113.9", &udp(1).datagram()).code(), "malformed");
    assert_eq!(lobby.send_legacy("0.0.0.0", b"nonsense"), RegistrationOutcome::InvalidSource);
    assert_eq!(lobby.stats().outcomes.iter().sum::<u64>(), 3);
    assert_eq!(lobby.recent_outcomes(ip("203.0.113.9"))[0].times, 2);
}

#[test]
fn l16_counts_are_optional() {
    let mut lobby = Lobby::unchecked();
    lobby.send_legacy("203.0.113.9", &registration(41, 8190, "just a name"));
    assert_eq!(lobby.legacy_list(protocol_of_version(41)), ["203.0.113.9:8190 just a name [0/0]"]);
    assert_eq!(Info::parse(b"just a name").counts, None::<Counts>);
}

#[test]
fn w29_a_server_that_uses_both_protocols_keeps_the_data_of_the_current_one() {
    let mut lobby = Lobby::unchecked();
    lobby.register("203.0.113.9", &tcp(1).port(8190).name("modern").key("x-respawntime", "5"));
    let old = registration(41, 8190, "[ctf_truefort] legacy [3/10]");
    assert_eq!(lobby.send_legacy("203.0.113.9", &old), RegistrationOutcome::Refreshed);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp modern"]);
    lobby.wait(secs(71));
    assert_eq!(lobby.list(), Vec::<String>::new(), "only registrations of the current protocol extend that lease");
    assert_eq!(lobby.send_legacy("203.0.113.9", &old), RegistrationOutcome::Listed);
    assert_eq!(lobby.list(), ["203.0.113.9:8190 tcp legacy"]);
}

#[test]
fn l16_a_waiting_protocol_is_shown_when_another_is_removed() {
    let mut lobby = Lobby::unchecked();
    lobby.skips_invariants = true;
    let protocol = |n: u32| ProtocolId::from_bytes(u128::from(n).to_be_bytes());
    for n in 0..1_002 {
        lobby.register(address(n), &tcp(n.into()).key("protocol_id", protocol(n).as_bytes()));
        lobby.wait(ms(1));
    }
    lobby.wait(secs(1));
    assert_eq!([1_000, 1_001].map(|n| lobby.legacy_list(protocol(n)).len()), [0, 0]);
    lobby.unregister(address(1_001), 1_001);
    lobby.unregister(address(7), 7);
    assert_eq!([7, 1_000, 1_001].map(|n| lobby.legacy_list(protocol(n)).len()), [0, 1, 0]);
    lobby.register(address(7), &tcp(2_000).key("protocol_id", protocol(2_000).as_bytes()));
    assert_eq!(lobby.legacy_list(protocol(2_000)).len(), 0);
    lobby.unregister(address(1_000), 1_000);
    assert_eq!(lobby.legacy_list(protocol(2_000)).len(), 1);
}

/// Legacy lists are rendered when a client requests one, so large tables cost nothing when the list is published.
#[test]
fn l16_hundreds_of_keys_and_many_protocols_cost_nothing_to_publish() {
    let mut lobby = Lobby::unchecked();
    lobby.skips_invariants = true;
    lobby.set(|config| config.limit_exempt = networks(&["0.0.0.0/0"]));
    let protocol = |n: u32| ProtocolId::from_bytes(u128::from(n).to_be_bytes());
    for n in 0..500u32 {
        let mut server = tcp(n.into()).key("protocol_id", protocol(n).as_bytes()).name(&"n".repeat(200));
        server.keys.extend((0..100u32).map(|key| (key.to_be_bytes()[2..].to_vec(), Vec::new())));
        assert_eq!(lobby.register(address(n), &server), RegistrationOutcome::Listed);
    }
    lobby.registry.publish(lobby.now);
    let shown = |lobby: &Lobby| (0..500).filter(|&n| lobby.legacy_reply(protocol(n)).len() > 1).count();
    assert_eq!(shown(&lobby), 500);
}

#[test]
fn l16_a_change_after_the_first_255_servers_rewrites_nothing() {
    let mut lobby = Lobby::unchecked();
    let server = |n: u32| tcp(n.into()).key("protocol_id", [7; 16]);
    for n in 0..300 {
        lobby.register(address(n), &server(n));
        lobby.wait(ms(10));
    }
    let protocol = ProtocolId::from_bytes([7; 16]);
    lobby.legacy_list(protocol);
    let before = lobby.legacy_reply(protocol);
    lobby.register(address(290), &server(290).players(3));
    lobby.unregister(address(295), 295);
    lobby.legacy_list(protocol);
    assert!(std::sync::Arc::ptr_eq(&before, &lobby.legacy_reply(protocol)));
    lobby.unregister(address(3), 3);
    let list = lobby.legacy_list(protocol);
    assert_eq!(list.len(), 255);
    assert!(list.iter().any(|line| line.starts_with(&format!("{}:", address(255)))), "the next one moves up");
}
