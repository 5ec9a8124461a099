//! The whole grid of what `fair_sharing` shows with a few cells: loss of downloads side by side, and the share of one beside a
//! CUBIC flow (S26), with the window of `ConnectionConfig::default()` unless a test says otherwise. With `cargo xtask test --full`
//! each test runs all cells of a rate with several seeds; otherwise one cell with one seed, another one for each rate. Rates above
//! 50 Mbit/s, which take long, are run with `--full` only. The variable `RALLYPOINT_GRID_SEED` chooses another seed, and with it another cell.

use crate::common;

use common::{bottleneck::*, *};
use rallypoint_netsim::{is_full, number_from_env};
use std::time::Duration;

/// Bytes of a datagram of the CUBIC flows: by default the same as those of the sessions, which is the hardest comparison for
/// loss. The variable `RALLYPOINT_GRID_SEGMENT` chooses another length.
const SEGMENT: u64 = 411;

fn segment() -> usize {
    number_from_env("RALLYPOINT_GRID_SEGMENT").unwrap_or(SEGMENT) as usize
}

/// Seeds that every cell is run with, and the number of them for high rates, which take long. With those that come first, earlier
/// versions missed their goals: a download that came second got 29 % of 100 Mbit/s (second and third seed), one that came first 84 %
/// with a short queue (fourth), and 29 % of 50 Mbit/s and 19 % of 2 Mbit/s with a queue of four bandwidth-delay products (fifth and
/// sixth). docs/session.md says what was measured with others.
const SEEDS: [u64; 9] = [101, 70_002, 70_003, 80_001, 777, 20_261, 70_001, 70_004, 70_005];
const HIGH_RATE_SEEDS: usize = 6;

/// The window of `ConnectionConfig::default()`, in messages.
const DEFAULT_WINDOW: usize = 4_096;

/// Runs the cells of a rate in Mbit/s, and fails after the last of them if one or more missed their goal.
fn check_cells<T: Copy>(rate: u64, all: &[T], check: impl Fn(u64, T) -> Result<(), String>) {
    let chosen = number_from_env("RALLYPOINT_GRID_SEED");
    // Each rate and each seed takes another cell.
    let sample = (rate + chosen.unwrap_or_default()) as usize % all.len();
    let cells = if is_full() { all } else { &all[sample..=sample] };
    let seeds = match (is_full(), rate) {
        (false, _) => &SEEDS[..1],
        (true, 21..) => &SEEDS[..HIGH_RATE_SEEDS],
        (true, _) => &SEEDS[..],
    };
    let seeds = chosen.map_or(seeds.to_vec(), |seed| vec![seed]);
    let runs = seeds.iter().flat_map(|&seed| cells.iter().map(move |&cell| (seed, cell)));
    let missed: Vec<String> = runs.filter_map(|(seed, cell)| check(seed, cell).err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

fn goal(is_met: bool, measured: String) -> Result<(), String> {
    println!("{measured}");
    if is_met { Ok(()) } else { Err(measured) }
}

fn shared(seed: u64, megabits: u64, queue: f64, window: usize) -> SharedBottleneck {
    SharedBottleneck::with_window(seed, ms(50), megabits * 1_000_000, queue, window)
}

/// Parallel downloads lose at most 2 %, or 1.5 times what as many CUBIC flows lose. They begin this far apart, or a few milliseconds.
fn check_loss(rate: u64, flows: &[usize], pause: Option<Duration>) {
    let all: Vec<(usize, f64)> = flows.iter().flat_map(|&flows| [1.0, 0.5, 4.0].map(|queue| (flows, queue))).collect();
    check_cells(rate, &all, |seed, (flows, queue)| {
        let mut sessions = shared(seed, rate, queue, DEFAULT_WINDOW);
        sessions.add_apart(flows, 0, segment(), pause);
        let measured = sessions.measure(secs(20));
        let mut cubics = shared(seed, rate, queue, DEFAULT_WINDOW);
        cubics.add_apart(0, flows, segment(), pause);
        let cubic_loss = cubics.measure(secs(20)).cubic_loss;
        let loss = measured.session_loss;
        let used = measured.sessions.iter().sum::<u64>() as f64 * 8.0 / (rate * 20_000_000) as f64;
        let limit = (1.5 * cubic_loss).max(0.02);
        goal(
            loss <= limit && used > 0.85,
            format!(
                "seed {seed}, {flows} flows, {rate} Mbit/s, queue {queue}: {loss:.4}, CUBIC {cubic_loss:.4}, {:.2} of the limit, used {used:.2}",
                loss / limit
            ),
        )
    });
}

/// A download and a CUBIC flow share the bottleneck, whichever begins.
fn check_share(rate: u64, window: usize) {
    let all = [(1.0, true), (1.0, false), (4.0, true), (4.0, false), (0.5, true), (0.5, false)];
    check_cells(rate, &all, |seed, (queue, is_first)| {
        let mut shared = shared(seed, rate, queue, window);
        shared.add(usize::from(is_first), usize::from(!is_first), segment());
        shared.net.run_for(secs(5));
        shared.add(usize::from(!is_first), usize::from(is_first), segment());
        let share = shared.measure(secs(60)).of_sessions();
        let range = if rate == 1 || queue == 0.5 { 0.2..=0.8 } else { 0.3..=0.7 };
        goal(
            range.contains(&share),
            format!("seed {seed}, {rate} Mbit/s, queue {queue}, window {window}, first {is_first}: {share:.3}"),
        )
    });
}

#[test]
fn s26_downloads_at_1_mbit_lose_about_as_much_as_cubic_flows() {
    check_loss(1, &[2, 4, 8, 16], None);
}

#[test]
fn s26_downloads_at_5_mbit_lose_about_as_much_as_cubic_flows() {
    check_loss(5, &[2, 4, 8, 16], None);
}

#[test]
fn s26_downloads_at_10_mbit_lose_about_as_much_as_cubic_flows() {
    check_loss(10, &[2, 4, 8, 16], None);
}

#[test]
fn s26_downloads_at_20_mbit_lose_about_as_much_as_cubic_flows() {
    check_loss(20, &[2, 4, 8, 16], None);
}

#[test]
fn s26_downloads_at_50_mbit_lose_about_as_much_as_cubic_flows() {
    check_loss(50, &[2, 4, 8, 16], None);
}

#[test]
fn s26_downloads_at_30_mbit_lose_about_as_much_as_cubic_flows() {
    check_loss(30, &[3, 6, 12], None);
}

#[test]
fn s26_downloads_that_begin_at_the_same_instant_lose_about_as_much_as_cubic_flows() {
    for rate in [2, 5, 10] {
        check_loss(rate, &[2, 3, 6, 12], Some(Duration::ZERO));
    }
}

#[test]
fn s26_downloads_that_begin_seconds_apart_lose_about_as_much_as_cubic_flows() {
    for rate in [2, 5, 10] {
        check_loss(rate, &[2, 3, 6, 12], Some(ms(1_500)));
    }
}

#[test]
fn s26_a_download_at_1_mbit_shares_with_a_cubic_flow() {
    check_share(1, DEFAULT_WINDOW);
}

#[test]
fn s26_a_download_at_5_mbit_shares_with_a_cubic_flow() {
    check_share(5, DEFAULT_WINDOW);
}

#[test]
fn s26_a_download_at_10_mbit_shares_with_a_cubic_flow() {
    check_share(10, DEFAULT_WINDOW);
}

#[test]
fn s26_a_download_at_20_mbit_shares_with_a_cubic_flow() {
    check_share(20, DEFAULT_WINDOW);
}

#[test]
fn s26_a_download_at_50_mbit_shares_with_a_cubic_flow() {
    check_share(50, DEFAULT_WINDOW);
}

#[test]
fn s26_a_download_at_30_mbit_shares_with_a_cubic_flow() {
    check_share(30, DEFAULT_WINDOW);
}

#[test]
fn s26_a_download_at_50_mbit_with_a_large_window_shares_with_a_cubic_flow() {
    check_share(50, 16_384);
}

/// Rates that take long.
mod full {
    use super::*;

    #[test]
    fn s26_a_download_at_100_mbit_shares_with_a_cubic_flow() {
        check_share(100, DEFAULT_WINDOW);
    }

    #[test]
    fn s26_a_download_at_100_mbit_with_a_large_window_shares_with_a_cubic_flow() {
        check_share(100, 16_384);
    }
}
