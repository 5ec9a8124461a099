//! Fuzz targets: functions that must not panic for any input.
//!
//! Each target is an ordinary function, so that its corpus is replayed by `cargo nextest run` on stable Rust
//! (`tests/corpus.rs`), and libFuzzer, through the thin programs in `fuzz_targets/`, is only needed to search for new inputs.
//!
//! A new target `name` is:
//!
//! 1. `src/name.rs` with `pub fn run(data: &[u8])`, its `pub mod` below and its line in [`TARGETS`];
//! 2. `fuzz_targets/name.rs` and its `[[bin]]` in `Cargo.toml`, like the others;
//! 3. at least one file in `corpus/name/`, for example a real datagram. Names are free: only files named by a hash (as the
//!    fuzzer names them) are replaced by `cargo xtask fuzz --minimise`.
//!
//! An input that once failed is kept in `regressions/name/` under a descriptive name.
#![forbid(unsafe_code)]

pub mod bloodmasters;
pub mod channel_peers;
pub mod channels;
mod delivery;
pub mod doors;
pub mod ffi;
pub mod legacy;
pub mod limit;
pub mod list_reply;
pub mod lobby;
pub mod master_list;
pub mod mirror;
pub mod prober;
pub mod queries;
pub mod registry;
pub mod responder;
pub mod session;
pub mod session_endpoint;
pub mod session_pair;
pub mod transmit;
pub mod web_query;

/// A function that panics if a property does not hold for its input.
pub type Target = fn(&[u8]);

/// Every target, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("bloodmasters", bloodmasters::run),
    ("channel_peers", channel_peers::run),
    ("channels", channels::run),
    ("doors", doors::run),
    ("ffi", ffi::run),
    ("legacy", legacy::run),
    ("limit", limit::run),
    ("list_reply", list_reply::run),
    ("lobby", lobby::run),
    ("master_list", master_list::run),
    ("mirror", mirror::run),
    ("prober", prober::run),
    ("queries", queries::run),
    ("registry", registry::run),
    ("responder", responder::run),
    ("session", session::run),
    ("session_endpoint", session_endpoint::run),
    ("session_pair", session_pair::run),
    ("transmit", transmit::run),
    ("web_query", web_query::run),
];
