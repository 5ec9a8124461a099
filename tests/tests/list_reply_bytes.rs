//! The contents of a registration reach players byte for byte.

use rallypoint_harness::{GameServer, Lobby, TcpPort, eventually, has_ipv6, hex, skip, vectors};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A registration as Gang Garrison 2 sends it, with this port.
fn registration(port: u16) -> Vec<u8> {
    let case =
        vectors("lobby").into_iter().find(|case| case["name"] == "a full registration as Gang Garrison 2 sends it");
    let mut bytes = hex(case.unwrap()["bytes"].as_str().unwrap());
    bytes[49..51].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// The reply of document 001, assembled by offsets. From the player slots on it is a copy of the registration.
fn reply(registration: &[u8], v4: Option<Ipv4Addr>, v6: Option<Ipv6Addr>) -> Vec<u8> {
    let port = &registration[49..51];
    let mut block = vec![registration[48]];
    block.extend(v4.map_or(vec![0; 6], |ip| [port, &ip.octets()].concat()));
    block.extend(v6.map_or(vec![0; 18], |ip| [port, &ip.octets()].concat()));
    block.extend(&registration[51..]);
    [&1_u32.to_be_bytes()[..], &(block.len() as u32).to_be_bytes(), &block].concat()
}

#[test]
fn a_gang_garrison_2_server() {
    let lobby = Lobby::start();
    let port = TcpPort::open("127.4.3.2");
    let datagram = registration(port.number());
    lobby.send([127, 4, 3, 2], &datagram);
    lobby.wait_until_listed(&["Bacon Town 24/7"]);
    assert_eq!(lobby.list_reply(), reply(&datagram, Some([127, 4, 3, 2].into()), None));
}

#[test]
fn both_families() {
    if !has_ipv6() {
        return skip("this machine has no IPv6");
    }
    let lobby = Lobby::with(&["checks.enabled=false"]);
    let datagram = registration(8_190);
    lobby.send(Ipv6Addr::LOCALHOST, &datagram);
    lobby.wait_until_listed(&["Bacon Town 24/7"]);
    assert_eq!(lobby.list_reply(), reply(&datagram, None, Some(Ipv6Addr::LOCALHOST)));
    lobby.send([127, 4, 3, 2], &datagram);
    let both = reply(&datagram, Some([127, 4, 3, 2].into()), Some(Ipv6Addr::LOCALHOST));
    eventually("the list has both", || lobby.list_reply() == both);
}

#[test]
fn l2_l3_l4_reserved_flags_trailing_bytes_and_repeated_keys_are_not_forwarded() {
    let lobby = Lobby::with(&["checks.enabled=false"]);
    let table = |entries: &[(&str, &str)]| {
        let mut table = (entries.len() as u16).to_be_bytes().to_vec();
        for (key, value) in entries {
            table.extend([&[key.len() as u8][..], key.as_bytes(), &(value.len() as u16).to_be_bytes()].concat());
            table.extend(value.as_bytes());
        }
        table
    };
    // Reserved flags, a repeated key, and bytes after the table.
    let start = &registration(8_190)[..57];
    let sent = table(&[("name", "old"), ("map", "a"), ("name", "new")]);
    lobby.send([127, 4, 3, 2], &[start, &[0xff, 0xff], &sent, b"more"].concat());
    lobby.wait_until_listed(&["new"]);
    let expected = [start, &[0, 1], &table(&[("name", "new"), ("map", "a")])].concat();
    assert_eq!(lobby.list_reply(), reply(&expected, Some([127, 4, 3, 2].into()), None));
}

#[test]
fn l5_text_is_bytes() {
    let lobby = Lobby::start();
    let odd: Vec<u8> = (0..=255).collect();
    lobby.register(&GameServer::named("odd").key("x-all", &odd).key("x-empty", "").key("", "no key"));
    lobby.wait_until_listed(&["odd"]);
    let shown = lobby.server("odd").unwrap();
    assert_eq!(shown.key("x-all"), Some(&odd[..]));
    assert_eq!((shown.key("x-empty"), shown.key("")), (Some(&b""[..]), Some(&b"no key"[..])));
}
