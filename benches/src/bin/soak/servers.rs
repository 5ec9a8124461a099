//! Game servers that register, change, leave and come, and junk.

use crate::{Load, lobby::Addrs};
use rallypoint_bench::{Random, address, registration};
use rallypoint_wire::lobby::{Datagram, Unregister};
use std::{
    net::{Ipv4Addr, UdpSocket},
    sync::atomic::Ordering::Relaxed,
    thread,
    time::{Duration, Instant},
};

/// Number of servers that are registered at the same time.
pub const SERVERS: u32 = 2_000;
/// Number of invalid datagrams per second.
pub const JUNK_PER_SECOND: u32 = 1_000;

/// Interval in which each server refreshes.
const REFRESH: Duration = Duration::from_secs(30);
/// One server in this many leaves at each of its refreshes, and another one comes.
const CHURN: u32 = 50;
/// One server in this many has changed at each of its refreshes.
const CHANGES: u32 = 10;
/// Churn and changes while the lobby is filled: each server leaves or has changed.
const FILLING: (u32, u32) = (2, 1);

/// Registers servers until the run is over.
pub fn register_servers(load: &Load, addrs: Addrs) {
    let mut random = Random::new(1);
    let mut servers: Vec<(u32, u16)> = (0..SERVERS).map(|server| (server, 0)).collect();
    let mut next = SERVERS;
    let mut at = 0;
    let mut due = Instant::now();
    while !load.is_over.load(Relaxed) {
        let (server, players) = &mut servers[at];
        let (churn, changes) = if load.is_filling.load(Relaxed) { FILLING } else { (CHURN, CHANGES) };
        if random.below(churn) == 0 {
            let bytes = registration(*server, *players);
            if let Some(server_id) = Datagram::peek_registration(&bytes) {
                let mut datagram = Vec::new();
                Unregister { server_id }.emit(&mut datagram);
                send(address(*server), addrs, &datagram);
            }
            *server = next;
            next += 1;
        } else if random.below(changes) == 0 {
            *players = random.below(24) as u16;
        }
        send(address(*server), addrs, &registration(*server, *players));
        at = (at + 1) % servers.len();
        due += REFRESH / SERVERS;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Sends random bytes and truncated registrations until the run is over.
pub fn send_junk(load: &Load, addrs: Addrs) {
    let mut random = Random::new(2);
    let mut due = Instant::now();
    while !load.is_over.load(Relaxed) {
        let from = Ipv4Addr::from_bits(Ipv4Addr::new(127, 128, 0, 0).to_bits() + random.below(1 << 22));
        let mut bytes = registration(random.below(1_000_000), 0);
        let length = random.below(bytes.len() as u32) as usize;
        if random.below(2) == 0 {
            bytes.iter_mut().for_each(|byte| *byte = random.below(256) as u8);
        }
        send(from, addrs, &bytes[..length]);
        due += Duration::from_secs(1) / JUNK_PER_SECOND;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Sends a datagram from an address of this machine. What fails is lost, like any datagram.
fn send(from: Ipv4Addr, addrs: Addrs, datagram: &[u8]) {
    let _ = UdpSocket::bind((from, 0)).and_then(|socket| socket.send_to(datagram, addrs.lobby));
}
