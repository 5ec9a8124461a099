//! Delivery times and goodput by round-trip time and loss. The tables are committed, so that a regression shows up in
//! review. `RALLYPOINT_BLESS=1` writes them again.

use crate::common;

use common::{traffic::*, *};
use rallypoint_netsim::Link;
use rallypoint_session_proto::Encryption;
use std::fmt::Write;

const RTT: [u64; 3] = [10, 50, 150];
const LOSS: [f64; 5] = [0.0, 0.01, 0.05, 0.1, 0.2];

fn compare_with_snapshot(name: &str, table: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var("RALLYPOINT_BLESS").is_ok() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, table).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(table, known, "{name} has changed; if that is intended, write it again with RALLYPOINT_BLESS=1");
}

#[test]
fn game_traffic_matches_the_committed_table() {
    let mut table = String::from(
        "60 messages of 100 bytes per second each way, 60 s; times in ms; wire = bytes with headers of IP and UDP per byte of payload\n\n",
    );
    writeln!(table, "{:>4} {:>5} {:>8} {:>8} {:>8} {:>6}", "RTT", "loss", "p50", "p99", "max", "wire").unwrap();
    for rtt in RTT {
        for loss in LOSS {
            let link = Link::default().delay(ms(rtt) / 2).loss(loss);
            let game = game(7, link, secs(60), Encryption::Plain);
            let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| game.at(share).as_secs_f64() * 1e3);
            let percent = loss * 100.0;
            writeln!(table, "{rtt:>4} {percent:>4}% {p50:>8.1} {p99:>8.1} {max:>8.1} {:>6.2}", game.overhead).unwrap();
        }
    }
    println!("{table}");
    compare_with_snapshot("game.txt", &table);
}

#[test]
fn bulk_transfers_match_the_committed_table() {
    let mut table = String::from(
        "8 MB in messages of 400 bytes from server to client; goodput in MB/s; wire = bytes sent per byte of payload\n\n",
    );
    writeln!(table, "{:>4} {:>5} {:>8} {:>6}", "RTT", "loss", "goodput", "wire").unwrap();
    for rtt in RTT {
        for loss in LOSS {
            let link = Link::default().delay(ms(rtt) / 2).loss(loss);
            let bulk = bulk(7, link, 8_000_000, Encryption::Plain);
            let percent = loss * 100.0;
            let goodput = bulk.goodput / 1e6;
            writeln!(table, "{rtt:>4} {percent:>4}% {goodput:>8.2} {:>6.2}", bulk.overhead).unwrap();
        }
    }
    println!("{table}");
    compare_with_snapshot("bulk.txt", &table);
}
