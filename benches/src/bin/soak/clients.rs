//! Clients: lists and pages, whose latencies are measured, and clients that never read.

use crate::{
    Load,
    latency::Latencies,
    lobby::{Addrs, get},
};
use rallypoint_bench::Failure;
use rallypoint_wire::lobby::{ListId, ListRequest};
use socket2::{Domain, Socket, Type};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::{Mutex, atomic::Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// Pause between two requests of a client.
pub const PAUSE: Duration = Duration::from_millis(50);
/// Number of list connections that are never read.
pub const UNREAD_LISTS: u8 = 100;
/// Number of event streams that are never read.
pub const UNREAD_STREAMS: u8 = 100;

/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The pages, in turn.
const PAGES: [&str; 5] = ["/", "/?q=server&sort=name", "/api/v1/servers?limit=100", "/lists", "/api/v1/servers"];

/// Fetches lists until the run is over.
pub fn fetch_lists(load: &Load, addrs: Addrs) {
    fetch(load, &load.lists, |_| {
        let mut tcp = TcpStream::connect(addrs.lobby)?;
        tcp.set_read_timeout(Some(TIMEOUT))?;
        tcp.write_all(&list_request())?;
        let mut reply = Vec::new();
        tcp.read_to_end(&mut reply)?;
        if reply.len() < 4 { Err(Failure("an empty reply".into())) } else { Ok(()) }
    });
}

/// Fetches pages until the run is over.
pub fn fetch_pages(load: &Load, addrs: Addrs) {
    fetch(load, &load.pages, |number| get(addrs.web, PAGES[number % PAGES.len()]).map(drop));
}

/// Keeps list connections open that are never read.
pub fn hold_lists(load: &Load, addrs: Addrs) {
    hold(load, addrs.lobby, UNREAD_LISTS, &list_request());
}

/// Keeps event streams open that are never read.
pub fn hold_streams(load: &Load, addrs: Addrs) {
    hold(load, addrs.web, UNREAD_STREAMS, b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

fn fetch(load: &Load, latencies: &Mutex<Latencies>, mut request: impl FnMut(usize) -> Result<(), Failure>) {
    for number in 0.. {
        if load.is_over.load(Relaxed) {
            return;
        }
        let was_restarting = load.is_restarting.load(Relaxed);
        let start = Instant::now();
        let result = request(number);
        let is_disturbed = was_restarting || load.is_restarting.load(Relaxed);
        match result {
            Ok(()) => latencies.lock().expect("no thread panics").add(start.elapsed()),
            Err(_) if is_disturbed => {}
            Err(failure) => {
                eprintln!("{failure}");
                load.failures.fetch_add(1, Relaxed);
            }
        }
        thread::sleep(PAUSE);
    }
}

/// Replaces one unread connection after another, so that each lives for some minutes, or as long as the lobby lets it.
fn hold(load: &Load, to: SocketAddr, count: u8, request: &[u8]) {
    let mut held: Vec<Option<Socket>> = (0..count).map(|_| None).collect();
    for number in 0.. {
        if load.is_over.load(Relaxed) {
            return;
        }
        let place = number % held.len();
        held[place] = connect(place as u8, to, request).ok();
        let is_filled = number >= held.len();
        thread::sleep(if is_filled { Duration::from_secs(1) } else { Duration::from_millis(20) });
    }
}

fn connect(host: u8, to: SocketAddr, request: &[u8]) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_recv_buffer_size(4_096)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 99, 0, host), 0)).into())?;
    socket.connect(&to.into())?;
    (&socket).write_all(request)?;
    Ok(socket)
}

fn list_request() -> Vec<u8> {
    let mut request = Vec::new();
    ListRequest { list_id: ListId::GANG_GARRISON_2 }.emit(&mut request);
    request
}
