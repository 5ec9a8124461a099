//! The whole grid of what `fair_sharing` shows with a few cells: loss of downloads side by side, and the share of one beside a
//! CUBIC flow (S26). With `cargo xtask test --full` each test runs all cells of a rate with several seeds; otherwise one cell
//! with one seed, or none of a high rate, which takes long. The variable `RALLYPOINT_GRID_SEED` chooses another seed.

use crate::common;

use common::{bottleneck::*, *};

/// Bytes of a datagram of the CUBIC flows: by default the same as those of the sessions, which is the hardest comparison for
/// loss. The variable `RALLYPOINT_GRID_SEGMENT` chooses another length.
const SEGMENT: u64 = 411;

fn segment() -> usize {
    variable("RALLYPOINT_GRID_SEGMENT").unwrap_or(SEGMENT) as usize
}

/// Seeds that every cell is run with, and the number of them for high rates, which take long. The first four come first because
/// earlier versions missed their goals with them: a download that came second got 29 % of 100 Mbit/s (second and third seed),
/// and one that came first 84 % with a short queue (fourth). docs/session.md names other seeds that were measured, and the cell
/// that is missed with one of them.
const SEEDS: [u64; 7] = [101, 70_002, 70_003, 80_001, 70_001, 70_004, 70_005];
const HIGH_RATE_SEEDS: usize = 4;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Runs the cells of a rate in Mbit/s, and fails after the last of them if one or more missed their goal.
fn check_cells<T: Copy>(rate: u64, all: &[T], check: impl Fn(u64, T) -> Result<(), String>) {
    let (cells, seeds) = match variable("RALLYPOINT_SEEDS") {
        Some(..2_500) if rate > 10 => return,
        Some(..2_500) => (&all[..1], &SEEDS[..1]),
        _ if rate > 20 => (all, &SEEDS[..HIGH_RATE_SEEDS]),
        _ => (all, &SEEDS[..]),
    };
    let seeds = variable("RALLYPOINT_GRID_SEED").map_or(seeds.to_vec(), |seed| vec![seed]);
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

/// Parallel downloads lose at most 2 %, or 1.5 times what as many CUBIC flows lose.
fn check_loss(rate: u64) {
    let all: Vec<(usize, f64)> =
        [2, 4, 8, 16].into_iter().flat_map(|flows| [1.0, 0.5, 4.0].map(|queue| (flows, queue))).collect();
    check_cells(rate, &all, |seed, (flows, queue)| {
        let mut sessions = shared(seed, rate, queue, 4_096);
        sessions.add(flows, 0, segment());
        let measured = sessions.measure(secs(20));
        let mut cubics = shared(seed, rate, queue, 4_096);
        cubics.add(0, flows, segment());
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
    check_loss(1);
}

#[test]
fn s26_downloads_at_5_mbit_lose_about_as_much_as_cubic_flows() {
    check_loss(5);
}

#[test]
fn s26_downloads_at_10_mbit_lose_about_as_much_as_cubic_flows() {
    check_loss(10);
}

#[test]
fn s26_downloads_at_20_mbit_lose_about_as_much_as_cubic_flows() {
    check_loss(20);
}

#[test]
fn s26_downloads_at_50_mbit_lose_about_as_much_as_cubic_flows() {
    check_loss(50);
}

#[test]
fn s26_a_download_at_1_mbit_shares_with_a_cubic_flow() {
    check_share(1, 4_096);
}

#[test]
fn s26_a_download_at_5_mbit_shares_with_a_cubic_flow() {
    check_share(5, 4_096);
}

#[test]
fn s26_a_download_at_10_mbit_shares_with_a_cubic_flow() {
    check_share(10, 4_096);
}

#[test]
fn s26_a_download_at_20_mbit_shares_with_a_cubic_flow() {
    check_share(20, 4_096);
}

#[test]
fn s26_a_download_at_50_mbit_shares_with_a_cubic_flow() {
    check_share(50, 16_384);
}

#[test]
fn s26_a_download_at_100_mbit_shares_with_a_cubic_flow() {
    check_share(100, 16_384);
}
