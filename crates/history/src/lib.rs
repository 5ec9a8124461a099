//! What was listed when: samples of servers and lobbies, rolled up in a SQLite file.
//!
//! * [`History`] is the thread that writes. Once a minute it is given what is listed ([`Sweep`]), without waiting for
//!   anything; it decides what of that is worth a row, and writes it in one transaction. Minutes are rolled up to hours and
//!   days, each kept for a while ([`Retention`]).
//! * [`Handle`] reads, from any thread: [`Series`] for graphs, [`Summary`], [`Event`]s. It also reads the file
//!   of another program that runs.
//! * [`export`] writes all of it as CSV or JSON.
//!
//! Time comes in from outside, as seconds since 1970. [`History`] has an example.
#![forbid(unsafe_code)]

mod batch;
mod clock;
mod delete;
mod error;
mod event;
pub mod export;
mod handle;
mod layout;
mod options;
mod pack;
mod read;
mod recorder;
mod sample;
mod schema;
mod series;
mod stats;
mod store;
mod subject;
mod summary;
mod sweep;
mod write;

pub use error::HistoryError;
pub use event::{Event, What};
pub use handle::Handle;
pub use options::{Limits, Options, Retention};
pub use sample::Sample;
pub use series::{Players, Point, Resolution, Series};
pub use stats::Stats;
pub use store::History;
pub use subject::{Subject, UnixSeconds};
pub use summary::{Peak, Summary};
pub use sweep::{CameOrWent, Listed, Move, Seen, Sweep};
