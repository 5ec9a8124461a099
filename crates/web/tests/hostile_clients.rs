//! Clients that want too much, or too slowly, or for ever.

mod common;

use common::{Listener, Server, Site, connect, read_answer, until};
use rallypoint_web::{WebLimits, WebOptions};
use std::{
    io::{BufReader, Read, Write},
    time::Duration,
};

fn with_limits(set: impl FnOnce(&mut WebLimits)) -> Site {
    let mut options = WebOptions::default();
    options.settings.exempt.clear();
    options.settings.requests = None;
    set(&mut options.limits);
    Site::with(options)
}

#[test]
fn a_head_that_never_ends_is_given_up() {
    let site = with_limits(|limits| limits.request_timeout = Duration::from_millis(200));
    let mut slow = connect(site.addr());
    slow.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ").unwrap();
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{rest:?}");
    let mut silent = connect(site.addr());
    assert!(matches!(silent.read(&mut [0; 1]), Ok(0) | Err(_)), "who says nothing at all, too");
}

#[test]
fn a_connection_is_kept_for_the_next_request_but_not_for_ever() {
    let site = with_limits(|limits| limits.request_timeout = Duration::from_millis(300));
    let mut tcp = connect(site.addr());
    let mut answers = BufReader::new(tcp.try_clone().unwrap());
    for _ in 0..3 {
        tcp.write_all(b"GET /api/v1/lobbies HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        assert_eq!(read_answer(&mut answers, false).unwrap().status, 200);
    }
    assert!(read_answer(&mut answers, false).is_none(), "closed when nothing more comes");
}

#[test]
fn a_huge_head_is_refused() {
    let site = Site::start();
    for head in [format!("x-long: {}\r\n", "x".repeat(100_000)), "x-many: 1\r\n".repeat(200)] {
        let mut tcp = connect(site.addr());
        // The server may have closed already.
        let _ = write!(tcp, "GET / HTTP/1.1\r\nhost: x\r\n{head}\r\n");
        let mut answer = Vec::new();
        let _ = tcp.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(site.get("/api/v1/lobbies").status, 200);
}

#[test]
fn what_is_not_http_does_no_harm() {
    let site = Site::start();
    for junk in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n\r\n\r\n",
    ] {
        let mut tcp = connect(site.addr());
        tcp.write_all(junk).unwrap();
        let _ = tcp.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = tcp.read_to_end(&mut answer);
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4") || answer.starts_with(b"HTTP/1.1 505"),
            "{answer:?}"
        );
    }
    assert_eq!(site.get("/api/v1/lobbies").status, 200);
}

#[test]
fn one_address_cannot_have_all_connections() {
    let site = with_limits(|limits| limits.per_address = 3);
    let mut held: Vec<_> = (0..3).map(|_| Listener::new(site.addr(), "/api/v1/events", &[])).collect();
    let mut one_too_many = connect(site.addr());
    let _ = one_too_many.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(matches!(one_too_many.read(&mut [0; 1]), Ok(0) | Err(_)));
    held.pop();
    until("there is a place again", || {
        let mut tcp = connect(site.addr());
        tcp.write_all(b"GET /api/v1/lobbies HTTP/1.1\r\nhost: x\r\n\r\n").ok()?;
        read_answer(&mut BufReader::new(tcp), false)
    });
}

#[test]
fn a_listener_that_does_not_read_is_cut_and_others_go_on() {
    let site = with_limits(|limits| limits.stall_timeout = Duration::from_millis(300));
    let mut idle = connect(site.addr());
    idle.write_all(b"GET /api/v1/events HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut listener = Listener::new(site.addr(), "/api/v1/events", &[]);
    listener.next().unwrap();
    until("both listen", || (site.web.listeners() == 2).then_some(()));
    let long = "x".repeat(3_500);
    let mut number = 0u32;
    until("the one that does not read is cut", || {
        number += 1;
        let name = format!("{long}{number}");
        for server in 1..=60 {
            site.register(&Server::new(server, &name));
        }
        // The one that reads is told all the time.
        listener.next().expect("events");
        (site.web.listeners() == 1).then_some(())
    });
}

/// Many servers that say much about themselves: about 2 MB of JSON.
fn talkative(site: &Site) {
    let long = "x".repeat(3_500);
    // One address cannot have that many servers.
    for network in 1..=8u8 {
        let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::new(127, 0, network, 1), 0)).unwrap();
        for number in (network - 1) * 31..network * 31 {
            socket.send_to(&Server::new(number, &long).datagram(), site.lobby.local_addrs().lobby[0]).unwrap();
        }
        site.wait_for("/api/v1/servers?limit=1", |list| list["total"] == u64::from(network) * 31);
    }
}

/// A client that asks for something long and takes only the beginning of the answer.
fn slow_client(site: &Site, path: &str) -> (std::net::TcpStream, String) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.set_read_timeout(Some(common::PATIENCE)).unwrap();
    socket.connect(&site.addr().into()).unwrap();
    let mut tcp = std::net::TcpStream::from(socket);
    write!(tcp, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut status = [0; 12];
    tcp.read_exact(&mut status).unwrap();
    (tcp, String::from_utf8_lossy(&status).into_owned())
}

#[test]
fn answers_that_nobody_takes_do_not_fill_the_memory() {
    let site = with_limits(|limits| {
        limits.answer_bytes = 6 << 20;
        limits.answer_bytes_per_address = 3 << 20;
    });
    talkative(&site);
    let own = "/api/v1/servers?sort=-name";
    let size = site.get(own).body.len();
    assert!((3 << 19..3 << 20).contains(&size), "one answer fits, two do not: {size}");
    // The answer that was taken may be counted for a moment longer.
    let held = until("the first is answered", || {
        let (tcp, status) = slow_client(&site, own);
        (status == "HTTP/1.1 200").then_some(tcp)
    });
    let refused = site.get(own);
    assert_eq!((refused.status, refused.header("content-type")), (503, Some("application/problem+json")));
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(site.get("/api/v1/servers").status, 200, "what is the same for all is counted apart");
    assert_eq!(site.get("/api/v1/servers?sort=-name&limit=5").status, 200, "what is small fits");
    drop(held);
    until("there is room again", || (site.get(own).status == 200).then_some(()));
}

#[test]
fn who_takes_nothing_is_reset_so_that_the_system_forgets_the_rest() {
    let site = with_limits(|limits| {
        limits.stall_timeout = Duration::from_millis(200);
        limits.answer_bytes_per_address = 3 << 20;
    });
    talkative(&site);
    let own = "/api/v1/servers?sort=-name";
    let mut held = until("it is answered", || {
        let (tcp, status) = slow_client(&site, own);
        (status == "HTTP/1.1 200").then_some(tcp)
    });
    until("it is cut", || (site.get(own).status == 200).then_some(()));
    let error = held.read_to_end(&mut Vec::new()).expect_err("no orderly end");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn one_address_cannot_hold_on_to_many_versions_of_the_list() {
    let site = with_limits(|limits| limits.list_bytes_per_address = 1 << 20);
    talkative(&site);
    let list = "/api/v1/servers";
    let held = until("a list that is longer than that is still told", || {
        let (tcp, status) = slow_client(&site, list);
        (status == "HTTP/1.1 200").then_some(tcp)
    });
    assert_eq!(site.get(list).status, 503, "but only one at a time");
    drop(held);
    until("there is room again", || (site.get(list).status == 200).then_some(()));
}
