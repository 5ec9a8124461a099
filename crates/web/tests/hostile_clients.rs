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
    until("both listen", || (site.web.live().listeners() == 2).then_some(()));
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
        (site.web.live().listeners() == 1).then_some(())
    });
}
