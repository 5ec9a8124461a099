//! Limits against slow, oversized, malformed and too many requests.

use crate::common;

use common::{EventStream, Server, Site, connect, read_response, wait_until};
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
    Site::with_options(options)
}

#[test]
fn an_unfinished_request_head_times_out() {
    let site = with_limits(|limits| limits.request_timeout = Duration::from_millis(200));
    let mut slow = connect(site.addr());
    slow.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ").unwrap();
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{rest:?}");
    let mut silent = connect(site.addr());
    assert!(matches!(silent.read(&mut [0; 1]), Ok(0) | Err(_)), "a connection without a request is closed too");
}

#[test]
fn an_idle_keep_alive_connection_is_closed() {
    let site = with_limits(|limits| limits.request_timeout = Duration::from_millis(300));
    let mut tcp = connect(site.addr());
    let mut responses = BufReader::new(tcp.try_clone().unwrap());
    for _ in 0..3 {
        tcp.write_all(b"GET /api/v1/lists HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        assert_eq!(read_response(&mut responses, false).unwrap().status, 200);
    }
    assert!(read_response(&mut responses, false).is_none(), "closed after the timeout");
}

#[test]
fn an_oversized_request_head_is_refused() {
    let site = Site::start();
    for head in [format!("x-long: {}\r\n", "x".repeat(100_000)), "x-many: 1\r\n".repeat(200)] {
        let mut tcp = connect(site.addr());
        // The server may have closed already.
        let _ = write!(tcp, "GET / HTTP/1.1\r\nhost: x\r\n{head}\r\n");
        let mut response = Vec::new();
        let _ = tcp.read_to_end(&mut response);
        assert!(response.is_empty() || response.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&response));
    }
    assert_eq!(site.get("/api/v1/lists").status, 200);
}

#[test]
fn non_http_input_is_refused() {
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
        let mut response = Vec::new();
        let _ = tcp.read_to_end(&mut response);
        assert!(
            response.is_empty() || response.starts_with(b"HTTP/1.1 4") || response.starts_with(b"HTTP/1.1 505"),
            "{response:?}"
        );
    }
    assert_eq!(site.get("/api/v1/lists").status, 200);
}

#[test]
fn connections_per_address_are_limited() {
    let site = with_limits(|limits| limits.per_address = 3);
    let mut held: Vec<_> = (0..3).map(|_| EventStream::new(site.addr(), "/api/v1/events", &[])).collect();
    let mut one_too_many = connect(site.addr());
    let _ = one_too_many.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(matches!(one_too_many.read(&mut [0; 1]), Ok(0) | Err(_)));
    held.pop();
    wait_until("a connection is accepted again", || {
        let mut tcp = connect(site.addr());
        tcp.write_all(b"GET /api/v1/lists HTTP/1.1\r\nhost: x\r\n\r\n").ok()?;
        read_response(&mut BufReader::new(tcp), false)
    });
}

#[test]
fn a_stalled_event_stream_is_closed_and_others_continue() {
    let site = with_limits(|limits| limits.stall_timeout = Duration::from_millis(300));
    let mut idle = connect(site.addr());
    idle.write_all(b"GET /api/v1/events HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut stream = EventStream::new(site.addr(), "/api/v1/events", &[]);
    stream.next().unwrap();
    wait_until("both streams are open", || (site.web.listeners() == 2).then_some(()));
    let mut number = 0u32;
    wait_until("the stalled stream is closed", || {
        number += 1;
        let name = number.to_string();
        for server in 1..=60 {
            site.register(&Server::large(server, &name));
        }
        // The other stream receives events all the time.
        stream.next().expect("events");
        (site.web.listeners() == 1).then_some(())
    });
}

/// Registers many large servers: a response with all of them has a little more than 1 MiB.
fn register_large_list(site: &Site) {
    // The number of servers per address is limited.
    for network in 1..=8u8 {
        let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::new(127, 0, network, 1), 0)).unwrap();
        for number in (network - 1) * 31..network * 31 {
            socket.send_to(&Server::large(number, "large").datagram(), site.lobby_addr()).unwrap();
        }
        site.wait_for("/api/v1/servers?limit=1", |list| list["total"] == u64::from(network) * 31);
    }
}

/// A client that requests a long response and reads only its first bytes.
fn slow_client(site: &Site, path: &str) -> (std::net::TcpStream, String) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.set_read_timeout(Some(common::TIMEOUT)).unwrap();
    socket.connect(&site.addr().into()).unwrap();
    let mut tcp = std::net::TcpStream::from(socket);
    write!(tcp, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut status = [0; 12];
    tcp.read_exact(&mut status).unwrap();
    (tcp, String::from_utf8_lossy(&status).into_owned())
}

#[test]
fn unread_responses_are_limited_in_bytes() {
    let site = with_limits(|limits| {
        limits.answer_bytes = 6 << 20;
        limits.answer_bytes_per_address = 2 << 20;
    });
    register_large_list(&site);
    let path = "/api/v1/servers?sort=-name";
    let size = site.get(path).body.len();
    assert!((1 << 20..2 << 20).contains(&size), "one response is within the limit, two are not: {size}");
    // The response just read may still be counted for a moment.
    let held = wait_until("the first request is accepted", || {
        let (tcp, status) = slow_client(&site, path);
        (status == "HTTP/1.1 200").then_some(tcp)
    });
    let refused = site.get(path);
    assert_eq!((refused.status, refused.header("content-type")), (503, Some("application/problem+json")));
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(site.get("/api/v1/servers").status, 200, "shared lists are counted separately");
    assert_eq!(site.get("/api/v1/servers?sort=-name&limit=5").status, 200, "a small response is within the limit");
    drop(held);
    wait_until("the bytes are released", || (site.get(path).status == 200).then_some(()));
}

#[test]
fn a_stalled_connection_is_reset() {
    let site = with_limits(|limits| {
        limits.stall_timeout = Duration::from_millis(200);
        limits.answer_bytes_per_address = 2 << 20;
    });
    register_large_list(&site);
    let path = "/api/v1/servers?sort=-name";
    let mut held = wait_until("the request is accepted", || {
        let (tcp, status) = slow_client(&site, path);
        (status == "HTTP/1.1 200").then_some(tcp)
    });
    wait_until("the stalled connection is closed", || (site.get(path).status == 200).then_some(()));
    let error = held.read_to_end(&mut Vec::new()).expect_err("the connection is not closed cleanly");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn unread_prebuilt_lists_are_limited_per_address() {
    let site = with_limits(|limits| limits.list_bytes_per_address = 1 << 20);
    register_large_list(&site);
    let list = "/api/v1/servers";
    let held = wait_until("a single list above the limit is still sent", || {
        let (tcp, status) = slow_client(&site, list);
        (status == "HTTP/1.1 200").then_some(tcp)
    });
    assert_eq!(site.get(list).status, 503, "one list at a time");
    drop(held);
    wait_until("the bytes are released", || (site.get(list).status == 200).then_some(()));
}
