//! The whole grid of what `fair_sharing` shows with a few cells: loss of downloads side by side, and the share of one beside a
//! CUBIC flow (S26). With `cargo xtask test --full` each test runs all cells of a rate; otherwise one cell, or none of a high
//! rate, which takes long. The variable `RALLYPOINT_GRID_SEED` chooses another seed.

use crate::common;

use common::{bottleneck::*, *};

const SEGMENT: usize = 411;

fn seed() -> u64 {
    std::env::var("RALLYPOINT_GRID_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(101)
}

/// The cells of a rate in Mbit/s that are run.
fn cells<T: Copy>(rate: u64, all: &[T]) -> &[T] {
    let seeds: Option<u64> = std::env::var("RALLYPOINT_SEEDS").ok().and_then(|text| text.parse().ok());
    match seeds {
        Some(..2_500) if rate > 10 => &[],
        Some(..2_500) => &all[..1],
        _ => all,
    }
}

fn shared(megabits: u64, queue: f64, window: usize) -> SharedBottleneck {
    SharedBottleneck::with_window(seed(), ms(50), megabits * 1_000_000, queue, window)
}

/// Parallel downloads lose at most 2 %, or 1.5 times what as many CUBIC flows lose.
fn check_loss(rate: u64) {
    let all: Vec<(usize, f64)> =
        [2, 4, 8, 16].into_iter().flat_map(|flows| [1.0, 0.5, 4.0].map(|queue| (flows, queue))).collect();
    for &(flows, queue) in cells(rate, &all) {
        let mut sessions = shared(rate, queue, 4_096);
        sessions.add(flows, 0, SEGMENT);
        let measured = sessions.measure(secs(20));
        let mut cubics = shared(rate, queue, 4_096);
        cubics.add(0, flows, SEGMENT);
        let cubic_loss = cubics.measure(secs(20)).cubic_loss;
        let loss = measured.session_loss;
        let used = measured.sessions.iter().sum::<u64>() as f64 * 8.0 / (rate * 20_000_000) as f64;
        println!("{flows} flows, {rate} Mbit/s, queue {queue}: {loss:.4}, CUBIC {cubic_loss:.4}, used {used:.2}");
        assert!(loss <= (1.5 * cubic_loss).max(0.02), "{flows} flows, {rate} Mbit/s, {queue}: {loss}, {cubic_loss}");
        assert!(used > 0.85, "{flows} flows, {rate} Mbit/s, {queue}: {used}");
    }
}

/// A download and a CUBIC flow share the bottleneck, whichever begins.
fn check_share(rate: u64, window: usize) {
    let all = [(1.0, true), (1.0, false), (4.0, true), (4.0, false), (0.5, true), (0.5, false)];
    for &(queue, is_first) in cells(rate, &all) {
        let mut shared = shared(rate, queue, window);
        shared.add(usize::from(is_first), usize::from(!is_first), SEGMENT);
        shared.net.run_for(secs(5));
        shared.add(usize::from(!is_first), usize::from(is_first), SEGMENT);
        let share = shared.measure(secs(60)).of_sessions();
        let range = if rate == 1 || queue == 0.5 { 0.2..=0.8 } else { 0.3..=0.7 };
        println!("{rate} Mbit/s, queue {queue}, window {window}, first {is_first}: {share:.2}");
        assert!(range.contains(&share), "{rate} Mbit/s, queue {queue}, window {window}, first {is_first}: {share}");
    }
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
