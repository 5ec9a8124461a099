//! How much a run of tests covers, from the environment. The only place that reads these variables.

use std::env;

/// Number of random runs of a property test in a full run.
const FULL: u64 = 2_500;

/// Number of random runs of a property test: the variable `RALLYPOINT_SEEDS`, which is 2,500 by default.
///
/// Tests whose runs are longer than a second take a part of it.
///
/// # Panics
/// If the variable is not a number.
#[must_use]
pub fn seeds() -> u64 {
    number_from_env("RALLYPOINT_SEEDS").unwrap_or(FULL)
}

/// Whether a grid runs all its cells, and not only a sample of them. Tests that have no sample are in a module `full`, which
/// `cargo xtask test` leaves out unless it runs with `--full`.
#[must_use]
pub fn is_full() -> bool {
    seeds() >= FULL
}

/// A number in an environment variable.
///
/// # Panics
/// If the variable is set and is not a number: a typing error must not choose other tests.
#[must_use]
pub fn number_from_env(name: &str) -> Option<u64> {
    let text = env::var_os(name)?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{name} is not a number: {}", text.display())))
}
