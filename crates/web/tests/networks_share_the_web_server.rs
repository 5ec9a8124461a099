//! Clients that hold connections, event streams or unread responses do not keep those of other networks out: a connection without
//! a request is closed first, then one of the network that has most.

use crate::common;

use common::{EventStream, Response, Server, Site, read_response, wait_until};
use rallypoint_web::{WebLimits, WebOptions};
use std::{
    io::{BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

/// The sources of an attack, and of visitors.
const ATTACK: [u8; 2] = [127, 1];
const VISITORS: [u8; 2] = [127, 2];

fn with_limits(set: impl FnOnce(&mut WebLimits)) -> Site {
    let mut options = WebOptions::default();
    options.settings.exempt.clear();
    options.settings.requests = None;
    set(&mut options.limits);
    Site::with_options(options)
}

/// Connects from an address of this machine.
fn connect_from(site: &Site, [a, b]: [u8; 2], host: u8) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.set_read_timeout(Some(common::TIMEOUT)).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(a, b, 0, host), 0)).into()).unwrap();
    socket.connect(&site.addr().into()).unwrap();
    socket.into()
}

fn get_from(site: &Site, network: [u8; 2], host: u8, path: &str) -> Option<Response> {
    let mut tcp = connect_from(site, network, host);
    write!(tcp, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").ok()?;
    read_response(&mut BufReader::new(tcp), false)
}

fn assert_visitors_are_served(site: &Site) {
    for visitor in 1..=20 {
        for path in ["/", "/api/v1/servers?limit=1", "/healthz"] {
            let response = get_from(site, VISITORS, visitor, path);
            assert_eq!(response.map(|response| response.status), Some(200), "visitor {visitor}, {path}");
        }
    }
    assert_eq!(site.get("/metrics").status, 200);
}

/// Requests an event stream, and reads only the status.
fn request_stream(site: &Site, host: u8) -> (TcpStream, [u8; 12]) {
    let mut tcp = connect_from(site, ATTACK, host);
    tcp.write_all(b"GET /api/v1/events HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut status = [0; 12];
    tcp.read_exact(&mut status).unwrap();
    (tcp, status)
}

/// Opens an event stream, and reads only its first bytes.
fn unread_stream(site: &Site, host: u8) -> TcpStream {
    let (tcp, status) = request_stream(site, host);
    assert_eq!(&status, b"HTTP/1.1 200");
    tcp
}

#[test]
fn silent_connections_do_not_keep_visitors_out() {
    let site = with_limits(|limits| limits.connections = 64);
    let _silent: Vec<_> = (0..100).map(|number| connect_from(&site, ATTACK, 1 + number % 50)).collect();
    assert_visitors_are_served(&site);
}

#[test]
fn unread_event_streams_do_not_keep_visitors_out() {
    let site = with_limits(|limits| {
        limits.connections = 64;
        limits.listeners = 64;
    });
    let _streams: Vec<_> = (0..64).map(|number| unread_stream(&site, 1 + number % 2)).collect();
    assert_visitors_are_served(&site);
}

#[test]
fn event_streams_of_one_network_make_room_for_others() {
    let site = with_limits(|limits| limits.listeners = 16);
    let _streams: Vec<_> = (0..16).map(|number| unread_stream(&site, 1 + number % 8)).collect();
    let mut visitor = EventStream::new(site.addr(), "/api/v1/events", &[]);
    assert_eq!(visitor.next().unwrap().name, "hello");
    // More attempts of the same network are refused, or evict its own streams.
    let _more: Vec<_> = (0..32).map(|number| request_stream(&site, 1 + number % 16).0).collect();
    site.register(&Server::new(1, "one"));
    assert_eq!(visitor.next().unwrap().name, "listed");
}

/// Registers many large servers: a response with all of them has a little more than 1 MiB.
fn register_large_list(site: &Site) {
    // The number of servers per address is limited.
    for network in 1..=8u8 {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::new(127, 0, network, 1), 0)).unwrap();
        for number in (network - 1) * 31..network * 31 {
            socket.send_to(&Server::large(number, "large").datagram(), site.lobby_addr()).unwrap();
        }
        site.wait_for("/api/v1/servers?limit=1", |list| list["total"] == u64::from(network) * 31);
    }
}

#[test]
fn slow_readers_do_not_keep_pages_from_others() {
    let site = with_limits(|limits| {
        limits.answer_bytes = 4 << 20;
        limits.answer_bytes_per_address = 2 << 20;
        limits.stall_timeout = Duration::from_secs(600);
    });
    register_large_list(&site);
    let mut slow = Vec::new();
    for host in 1..=5 {
        let mut tcp = connect_from(&site, ATTACK, host);
        tcp.write_all(b"GET /api/v1/servers?sort=-name HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut status = [0; 12];
        tcp.read_exact(&mut status).unwrap();
        slow.push(tcp);
    }
    for path in ["/", "/?q=x&per_page=500", "/api/v1/servers?sort=name", "/status"] {
        // Within the first second, the slow readers might still finish.
        wait_until(path, || get_from(&site, VISITORS, 1, path).filter(|response| response.status == 200).map(|_| ()));
    }
}
