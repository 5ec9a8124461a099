//! A minimal query program: sends queries, receives replies, and records which servers replied.

use crate::sys::{self, BATCH, Batch};
use rallypoint_bench::address;
use rallypoint_wire::bloodmasters::{Echo, Query};
use std::{
    io::{self, BufWriter, Write},
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    time::{Duration, Instant},
};

/// Queries each server once, `rate` servers per second.
pub fn query(port: u16, count: u32, rate: u32) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    sys::prepare(&socket, false)?;
    let mut batch = Batch::new();
    let mut answered = vec![false; count as usize];
    let mut done = 0;
    let start = Instant::now();
    let mut sent = 0u32;
    let mut query = Vec::new();
    Query { echo: Echo(*b"mini") }.emit(&mut query);
    while done < count && start.elapsed() < Duration::from_secs(10) {
        let due = (start.elapsed().as_secs_f64() * f64::from(rate)) as u32;
        let end = due.min(count).min(sent + BATCH as u32).max(sent);
        let to = (sent..end).map(|n| (SocketAddrV4::new(address(n), port), Ipv4Addr::UNSPECIFIED, &query[..]));
        batch.send(&socket, to)?;
        sent = end;
        let received = batch.receive(&socket, false)?;
        for n in 0..received {
            let (from, _, _) = batch.received(n);
            let number = from.ip().to_bits().wrapping_sub(address(0).to_bits()) as usize;
            if let Some(answered) = answered.get_mut(number).filter(|answered| !**answered) {
                *answered = true;
                done += 1;
            }
        }
        // Wakes up once per millisecond, like `rallypoint query`.
        if received < BATCH {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let mut out = BufWriter::new(io::stdout().lock());
    for (number, _) in answered.iter().enumerate().filter(|(_, answered)| **answered) {
        writeln!(out, "{}", address(number as u32))?;
    }
    out.flush()
}
