//! `cargo xtask bench wire`
#![forbid(unsafe_code)]

use rallypoint_bench::Micro;
use rallypoint_machine::Transmit;
use std::{hint::black_box, net::SocketAddr, process::ExitCode};

fn main() -> ExitCode {
    let bytes = [7; 12_000];
    let transmit = Transmit { to: SocketAddr::from(([127, 0, 0, 1], 9)), len: bytes.len(), segment: Some(1200) };

    let mut suite = Micro::new();
    suite.op("ten datagrams out of one buffer", bytes.len(), || {
        transmit.datagrams(black_box(&bytes)).map(<[u8]>::len).sum::<usize>()
    });
    suite.main()
}
