//! Legacy clients get legacy and modern servers, and modern clients get legacy servers.

use crate::common;

use common::{Lobby, any_v4, any_v6, eventually, options, send};
use rallypoint_lobby::LobbyOptions;
use rallypoint_lobby_proto::doors::LEGACY;
use rallypoint_wire::{
    legacy::{Counts, Info, ListRequest, Registration, entries, protocol_of_version},
    lobby::Transport,
};
use std::io::Write;

fn lobby() -> Lobby {
    let mut options = LobbyOptions { doors: common::doors(vec![any_v4(), any_v6()]), ..options() };
    options.registry.checks.enabled = false;
    Lobby::start(options)
}

fn legacy_server(name: &[u8]) -> Vec<u8> {
    let counts = Some(Counts { players: 3, bots: 0, slots: 10 });
    let info = Info { map: Some(b"ctf_truefort"), name, counts, ..Info::default() };
    let mut datagram = Vec::new();
    Registration { protocol_id: protocol_of_version(41), port: 8190.try_into().unwrap(), info }.emit(&mut datagram);
    datagram
}

fn legacy_names(reply: &[u8]) -> Vec<String> {
    let mut names: Vec<_> =
        entries(reply).map(|entry| String::from_utf8(entry.unwrap().info.name.to_vec()).unwrap()).collect();
    names.sort();
    names
}

#[test]
fn l16_legacy_and_modern_servers_are_in_both_lists() {
    let lobby = lobby();
    let [legacy_v4, legacy_v6] = lobby.local_addrs()[&LEGACY][..] else { panic!("two addresses") };
    assert_eq!(common::fetch(legacy_v4, &[41]), [0]);
    send(legacy_v4, &legacy_server(b"old"));
    lobby.wait_until_listed(&["old"]);
    let protocol = protocol_of_version(41);
    let keys: [(&str, &[u8]); 1] = [("protocol_id", protocol.as_bytes())];
    lobby.send(&common::registration("new", 8_191, Transport::Tcp, &keys));
    lobby.send(&common::registration("of another version", 8_192, Transport::Tcp, &[("protocol_id", &[7; 16])]));
    lobby.wait_until_listed(&["new", "of another version", "old"]);
    for addr in [legacy_v4, legacy_v6] {
        assert_eq!(legacy_names(&common::fetch(addr, &[41])), ["new", "old"]);
    }
    let mut by_uuid = vec![128];
    by_uuid.extend_from_slice(&[7; 16]);
    assert_eq!(legacy_names(&common::fetch(legacy_v4, &by_uuid)), ["of another version"]);
    assert_eq!(common::fetch(legacy_v4, &[42]), [0]);
    lobby.shutdown();
}

#[test]
fn l16_a_request_may_arrive_in_parts_and_be_followed_by_other_bytes() {
    let lobby = lobby();
    let legacy = lobby.local_addrs()[&LEGACY][0];
    send(legacy, &legacy_server(b"old"));
    eventually("the server is listed", || legacy_names(&common::fetch(legacy, b"\x29more")) == ["old"]);
    let mut request = Vec::new();
    ListRequest { protocol_id: protocol_of_version(128) }.emit(&mut request);
    assert_eq!(request.len(), 17);
    let mut client = common::connect(legacy);
    for byte in request {
        client.write_all(&[byte]).unwrap();
    }
    assert_eq!(common::read_all(&mut client), [0]);
    lobby.shutdown();
}
