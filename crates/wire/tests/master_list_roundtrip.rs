//! Requests and bodies of the Bloodmasters master list (L17) round-trip.

use proptest::{collection::vec, option, prelude::*};
use rallypoint_wire::{
    bloodmasters::{
        PORT,
        master_list::{AddressPattern, Request, Update, bans, emit_bans, emit_servers, servers},
    },
    lobby::Endpoint,
};
use std::{
    net::{IpAddr, Ipv4Addr},
    num::NonZeroU16,
};

#[test]
fn b8_the_port_is_6969() {
    assert_eq!(PORT, 6_969);
}

fn endpoint() -> impl Strategy<Value = Endpoint<IpAddr>> {
    let ip = prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)];
    (ip, 1..=u16::MAX).prop_map(|(ip, port)| Endpoint { ip, port: NonZeroU16::new(port).unwrap() })
}

/// Varies a list as other programs write it; also returns the number of invalid lines.
fn disturbed(list: &[u8], noise: &[u8]) -> (Vec<u8>, usize) {
    let mut text = Vec::new();
    let mut nonsense = 0;
    for (line, noise) in list.split_inclusive(|&byte| byte == b'\n').zip(noise.iter().cycle()) {
        let line = line.trim_ascii();
        match noise % 5 {
            0 => text.extend(b"\r\n \t\r\n"),
            1 => text.extend(b"  "),
            2 => {
                text.extend(b"<br>\n\xff\xff\n");
                nonsense += 2;
            }
            _ => {}
        }
        text.extend(line);
        text.extend(if noise % 2 == 0 { &b"\n"[..] } else { b" \r\n" });
    }
    (text, nonsense)
}

proptest! {
    #[test]
    fn l17_a_list_of_servers(list in vec(endpoint(), 0..20), noise in vec(any::<u8>(), 1..20)) {
        let mut text = Vec::new();
        emit_servers(list.iter().copied(), &mut text);
        prop_assert_eq!(servers(&text).collect::<Vec<_>>(), list.clone());
        let (text, nonsense) = disturbed(&text, &noise);
        let mut read = servers(&text);
        prop_assert_eq!(read.by_ref().collect::<Vec<_>>(), list);
        prop_assert_eq!(read.skipped(), nonsense);
    }

    #[test]
    fn l17_a_list_of_bans(
        list in vec(any::<[Option<u8>; 4]>(), 0..20),
        noise in vec(any::<u8>(), 1..20),
        address in any::<[u8; 4]>(),
    ) {
        let list: Vec<AddressPattern> = list.into_iter().map(AddressPattern::new).collect();
        let mut text = Vec::new();
        emit_bans(list.iter().copied(), &mut text);
        let (text, nonsense) = disturbed(&text, &noise);
        let mut read = bans(&text);
        prop_assert_eq!(read.by_ref().collect::<Vec<_>>(), list.clone());
        prop_assert_eq!(read.skipped(), nonsense);
        for ban in list {
            // An address that fills in the wildcards matches; one that differs in a fixed octet does not.
            let mut octets = address;
            ban.octets().iter().zip(&mut octets).for_each(|(fixed, octet)| *octet = fixed.unwrap_or(*octet));
            prop_assert!(ban.matches(Ipv4Addr::from(octets)));
            if let Some(place) = ban.octets().iter().position(Option::is_some) {
                octets[place] = octets[place].wrapping_add(1);
                prop_assert!(!ban.matches(Ipv4Addr::from(octets)));
            }
        }
    }

    #[test]
    fn l17_an_announcement(port in 1..=u16::MAX, time in option::of(any::<i64>())) {
        let request = Request::Update(Update { port: NonZeroU16::new(port).unwrap(), time });
        let mut text = Vec::new();
        request.emit(&mut text);
        prop_assert_eq!(Request::parse(std::str::from_utf8(&text).unwrap()), Ok(request));
    }

    #[test]
    fn arbitrary_text(bytes in vec(any::<u8>(), 0..300), query in "([a-z&=0-9%]|action=|update|&port=|&time=){0,12}") {
        let lines = bytes.split(|&byte| byte == b'\n').count();
        let mut read = servers(&bytes);
        prop_assert!(read.by_ref().count() + read.skipped() <= lines);
        let mut read = bans(&bytes);
        prop_assert!(read.by_ref().count() + read.skipped() <= lines);
        if let Ok(request) = Request::parse(&query) {
            prop_assert_eq!(Request::parse(&request.to_string()), Ok(request));
        }
    }
}
