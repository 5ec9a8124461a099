//! Programs that were built with the sockets of other platforms, for comparison.

use std::{env, path::PathBuf};

/// Names the directory with these programs. Set by `cargo xtask bench`.
const DIRECTORY: &str = "RALLYPOINT_BENCH_PORTABLE";

/// The program of this name that was built with `--cfg rallypoint_portable`, if there is one.
#[must_use]
pub fn portable(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env::var_os(DIRECTORY)?).join(name);
    path.is_file().then_some(path)
}
