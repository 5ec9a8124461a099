//! `cargo xtask bench session`: messages over good and bad networks, beside the libraries that games use today.
//!
//! Everything but what a datagram costs runs on virtual time: the same seeds give the same figures on any machine.
#![forbid(unsafe_code)]

mod contender;
mod enet;
mod ours;
mod quinn;
mod renet;
#[allow(dead_code, reason = "for the promises")]
mod traffic;

use contender::{Contender, ms};
use rallypoint_bench::Table;
use rallypoint_netsim::Link;
use std::time::Duration;
use traffic::{Bulk, Game};

const RTT: [u64; 3] = [10, 50, 150];
const LOSS: [f64; 5] = [0.0, 0.01, 0.05, 0.1, 0.2];
const NAMES: [&str; 4] = [ours::Ours::NAME, enet::Enet::NAME, renet::Renet::NAME, quinn::Quinn::NAME];

fn main() {
    let which = std::env::args().nth(1);
    if which.as_deref() != Some("bulk") {
        print!("{}", game());
    }
    if which.as_deref() != Some("game") {
        print!("{}", bulk());
    }
}

fn game() -> String {
    let mut times = Table::new(&["RTT", "loss", NAMES[0], NAMES[1], NAMES[2], NAMES[3], "best of others"]);
    let mut wire = Table::new(&["RTT", "loss", NAMES[0], NAMES[1], NAMES[2], NAMES[3]]);
    for rtt in RTT {
        for loss in LOSS {
            eprintln!("game {rtt} {loss}");
            let link = Link::default().delay(ms(rtt) / 2).loss(loss);
            let (seeds, length) = (5, Duration::from_secs(60));
            let games = [
                traffic::game::<ours::Ours>(seeds, link, length),
                traffic::game::<enet::Enet>(seeds, link, length),
                traffic::game::<renet::Renet>(seeds, link, length),
                traffic::game::<quinn::Quinn>(seeds, link, length),
            ];
            let cell = |game: &Game| format!("{:.0} / {:.0} / {:.0}", game.at(0.5), game.at(0.99), game.at(1.0));
            let best = [0.5, 0.99, 1.0].map(|share| {
                let others = games[1..].iter().map(|game| game.at(share));
                games[0].at(share) / others.fold(f64::INFINITY, f64::min)
            });
            let [rtt, loss] = [format!("{rtt} ms"), format!("{} %", loss * 100.0)];
            let [a, b, c, d] = games.each_ref().map(cell);
            let best = format!("{:.2} / {:.2} / {:.2}", best[0], best[1], best[2]);
            times.row([rtt.clone(), loss.clone(), a, b, c, d, best]);
            let [a, b, c, d] = games.each_ref().map(|game| format!("{:.2}", game.overhead()));
            wire.row([rtt, loss, a, b, c, d]);
        }
    }
    format!("{times}\n{wire}\n")
}

fn bulk() -> String {
    let mut table = Table::new(&["RTT", "loss", NAMES[0], NAMES[1], NAMES[2], NAMES[3]]);
    for rtt in RTT {
        for loss in LOSS {
            eprintln!("bulk {rtt} {loss}");
            let link = Link::default().delay(ms(rtt) / 2).loss(loss);
            let bulks = [
                traffic::bulk::<ours::Ours>(7, link, 8_000_000),
                traffic::bulk::<enet::Enet>(7, link, 8_000_000),
                traffic::bulk::<renet::Renet>(7, link, 8_000_000),
                traffic::bulk::<quinn::Quinn>(7, link, 8_000_000),
            ];
            let [a, b, c, d] =
                bulks.each_ref().map(|bulk: &Bulk| format!("{:.2} ({:.2})", bulk.goodput / 1e6, bulk.overhead));
            table.row([format!("{rtt} ms"), format!("{} %", loss * 100.0), a, b, c, d]);
        }
    }
    format!("{table}\n")
}
