//! Loss and round-trip time in the statistics, compared with what the network did, over a grid of paths and streams (W82).
//!
//! The truth is the share of the datagrams with messages that the link dropped, copies and resends included. A few cells are
//! run by default. The variable `RALLYPOINT_STATISTICS_GRID` is the number of starts with which all of them are run, and
//! `RALLYPOINT_GRID_SEED` the first seed.

use crate::common;

use common::{
    forge::{PLAIN, SEALED},
    *,
};
use rallypoint_netsim::{DeliveryStatus, Link, number_from_env};
use rallypoint_session_proto::{ConnectionStats, Encryption, ONLY_CHANNEL};
use std::{fmt, time::Duration};

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traffic {
    /// Messages of 100 bytes to the server, this many per second.
    Steady(u32),
    /// Messages of 100 bytes both ways; the statistics of the server are measured.
    Game(u32),
    /// As much as possible to the client, in messages of 400 bytes; the statistics of the server are measured at the end.
    Download,
}

/// A path and a stream.
#[derive(Clone, Copy, Debug)]
struct Cell {
    percent: u32,
    /// Mean number of datagrams that are lost in a row; 1 if each is lost independently of the others.
    burst: u32,
    is_symmetric: bool,
    rtt: u64,
    traffic: Traffic,
    is_encrypted: bool,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { percent, burst, is_symmetric, rtt, traffic, is_encrypted } = self;
        let directions = if *is_symmetric { "both" } else { "one" };
        let protection = if *is_encrypted { "encrypted" } else { "plain" };
        write!(f, "{percent:>2} % x{burst} {directions:>4} RTT {rtt:>3} ms {traffic:?} {protection}")
    }
}

/// What the sender shows, and the truth.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    shown_loss: f64,
    true_loss: f64,
    shown_rtt: f64,
}

impl Cell {
    fn path(&self) -> Link {
        Link::default().delay(ms(self.rtt) / 2)
    }

    fn lossy(&self) -> Link {
        let share = f64::from(self.percent) / 100.0;
        if self.burst > 1 { self.path().bursts(share, self.burst.into()) } else { self.path().loss(share) }
    }

    /// A pair whose link loses from now on, the login excepted.
    fn start(&self, seed: u64) -> Pair {
        let encryption = if self.is_encrypted { Encryption::Encrypted } else { Encryption::Plain };
        let mut pair = Pair::connect(seed, self.path(), encryption);
        let (client, server) = (pair.client, pair.server);
        let (forth, back) = if self.is_symmetric { (self.lossy(), self.lossy()) } else { (self.lossy(), self.path()) };
        match self.traffic {
            Traffic::Steady(_) => {
                pair.net.set_link(client, server, forth);
                pair.net.set_link(server, client, back);
            }
            Traffic::Game(_) | Traffic::Download => {
                pair.net.set_link(server, client, forth);
                pair.net.set_link(client, server, back);
            }
        }
        pair.net.record(1_000_000);
        pair
    }

    fn stats(&self, pair: &Pair) -> ConnectionStats {
        match self.traffic {
            Traffic::Steady(_) => pair.client().client.connection().unwrap().stats(),
            Traffic::Game(_) | Traffic::Download => {
                let server = pair.server();
                server.endpoint.connection(server.player()).unwrap().stats()
            }
        }
    }

    /// The share of the sender's datagrams with messages that were lost.
    fn true_loss(&self, pair: &Pair) -> f64 {
        let from = match self.traffic {
            Traffic::Steady(_) => pair.net.address(pair.client),
            Traffic::Game(_) | Traffic::Download => pair.net.address(pair.server),
        };
        let mut sent = 0;
        let mut lost = 0;
        let records = pair.net.log().records();
        for record in records.filter(|record| record.from == from && [PLAIN, SEALED].contains(&record.bytes[0])) {
            sent += 1;
            lost += u32::from(matches!(record.status, DeliveryStatus::LostRandom | DeliveryStatus::LostBurst));
        }
        f64::from(lost) / f64::from(sent)
    }

    fn measure(&self, seed: u64) -> Measured {
        let mut pair = self.start(seed);
        match self.traffic {
            Traffic::Steady(rate) => self.stream(&mut pair, rate, false),
            Traffic::Game(rate) => self.stream(&mut pair, rate, true),
            Traffic::Download => self.download(&mut pair),
        }
    }

    /// Sends for a minute, or for two if that are few messages. The round-trip time is averaged over the second half.
    fn stream(&self, pair: &mut Pair, rate: u32, is_both_ways: bool) -> Measured {
        let duration = if rate < 30 { 120 } else { 60 };
        let mut shown = Vec::new();
        for number in 0..duration * rate {
            let _ = pair.net.with(pair.client, |app, now| app.client.send(now, ONLY_CHANNEL, &numbered(number, 100)));
            if is_both_ways {
                pair.net.with(pair.server, |app, now| {
                    let player = app.player();
                    let _ = app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(number, 100));
                });
            }
            pair.net.run_for(secs(1) / rate);
            if number.is_multiple_of(rate) && number >= duration * rate / 2 {
                shown.push(self.stats(pair));
            }
        }
        pair.net.run_for(secs(1));
        let count = shown.len() as f64;
        // The loss at the end is that of the whole time, unless there were more messages than the meter remembers. Then it is averaged.
        let at_end = [self.stats(pair)];
        let of_last_quarter = if rate < 30 { &at_end[..] } else { &shown[shown.len() / 2..] };
        Measured {
            shown_loss: of_last_quarter.iter().map(|stats| stats.loss).sum::<f64>() / of_last_quarter.len() as f64,
            true_loss: self.true_loss(pair),
            shown_rtt: shown.iter().filter_map(|stats| stats.rtt).sum::<Duration>().as_secs_f64() / count,
        }
    }

    fn download(&self, pair: &mut Pair) -> Measured {
        let messages = 20_000;
        let mut next = 0;
        let mut rtt = Vec::new();
        while next < messages {
            pair.net.with(pair.server, |app, now| {
                let player = app.player();
                while next < messages && app.endpoint.send(now, player, ONLY_CHANNEL, &numbered(next, 400)).is_ok() {
                    next += 1;
                }
            });
            pair.net.run_for(ms(2));
            rtt.extend(self.stats(pair).rtt);
        }
        pair.net.run_for(secs(3));
        Measured {
            shown_loss: self.stats(pair).loss,
            true_loss: self.true_loss(pair),
            shown_rtt: rtt.iter().sum::<Duration>().as_secs_f64() / rtt.len() as f64,
        }
    }

    /// The loss and the round-trip time that are shown, in relation to the truth, averaged over starts.
    fn ratios(&self, seeds: std::ops::Range<u64>) -> (f64, f64) {
        let count = (seeds.end - seeds.start) as f64;
        let mut sum = Measured::default();
        for measured in seeds.map(|seed| self.measure(seed)) {
            sum.shown_loss += measured.shown_loss;
            sum.true_loss += measured.true_loss;
            sum.shown_rtt += measured.shown_rtt;
        }
        (sum.shown_loss / sum.true_loss, sum.shown_rtt / count / ms(self.rtt).as_secs_f64())
    }
}

fn check(cells: impl IntoIterator<Item = Cell>, seeds: u64) {
    let first = number_from_env("RALLYPOINT_GRID_SEED").unwrap_or(1);
    let mut wrong = Vec::new();
    for cell in cells {
        let (loss, rtt) = cell.ratios(first..first + seeds);
        let is_wrong = [loss, rtt].iter().any(|ratio| !(0.9..=1.1).contains(ratio));
        let line = format!("{cell}: loss {loss:.3}, RTT {rtt:.3} of the truth");
        println!("{line}{}", if is_wrong { " WRONG" } else { "" });
        if is_wrong {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// All paths with these streams, and as many starts as `RALLYPOINT_STATISTICS_GRID` says. Without it, every seventh path with six
/// starts.
fn check_all(streams: &[(Traffic, bool)]) {
    let (starts, step) = match number_from_env("RALLYPOINT_STATISTICS_GRID") {
        Some(starts) => (starts, 1),
        None => (6, 7),
    };
    let mut cells = Vec::new();
    for percent in [2, 5, 10, 20, 30] {
        for (burst, is_symmetric) in [(1, false), (1, true), (3, false), (3, true)] {
            for rtt in [5, 20, 50, 100, 300] {
                let cell = |&(traffic, is_encrypted)| Cell { percent, burst, is_symmetric, rtt, traffic, is_encrypted };
                cells.extend(streams.iter().map(cell));
            }
        }
    }
    check(cells.into_iter().step_by(step), starts);
}

/// A few paths, with this many datagrams lost in a row.
fn check_some(burst: u32) {
    let streams = [Traffic::Steady(5), Traffic::Steady(20), Traffic::Game(10), Traffic::Game(60)];
    let mut cells = Vec::new();
    for (percent, is_symmetric, rtt) in [(5, true, 50), (10, true, 20), (20, false, 100), (30, true, 5)] {
        for (traffic, is_encrypted) in streams.into_iter().zip([false, true, false, true]) {
            cells.push(Cell { percent, burst, is_symmetric, rtt, traffic, is_encrypted });
        }
    }
    let download =
        Cell { traffic: Traffic::Download, percent: 10, burst, is_symmetric: true, rtt: 50, is_encrypted: true };
    cells.push(download);
    check(cells, 6);
}

#[test]
fn w82_loss_and_round_trip_time_are_true_although_acks_are_lost_as_well() {
    check_some(1);
}

#[test]
fn w82_loss_and_round_trip_time_are_true_although_loss_comes_in_bursts() {
    check_some(3);
}

/// A part of all paths, or all of them.
mod full {
    use super::*;

    #[test]
    fn w82_all_steady_streams() {
        check_all(&[5, 20, 60, 200].map(|rate| (Traffic::Steady(rate), rate == 20)));
    }

    #[test]
    fn w82_all_games() {
        check_all(&[10, 30, 60].map(|rate| (Traffic::Game(rate), rate == 60)));
    }

    #[test]
    fn w82_all_downloads() {
        check_all(&[(Traffic::Download, false)]);
    }
}
