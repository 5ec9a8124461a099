//! The history of the list: samples of servers and lobbies, rolled up in a SQLite file.
//!
//! * [`History`] owns the thread that writes. Once a minute it is given the listed servers ([`Observation`]), which never
//!   blocks; the thread decides what to record and writes it in one transaction. Minutes are rolled up to hours and days,
//!   each kept for a configurable time ([`Retention`]).
//! * [`HistoryReader`] reads, from any thread: [`Series`] for graphs, [`Summary`], [`HistoryEvent`]s. It can also read the
//!   file of another running program.
//! * [`export`] writes series as CSV or JSON.
//!
//! The caller supplies the time, in seconds since 1970. [`History`] has an example.
#![forbid(unsafe_code)]

mod clock;
mod delete;
mod error;
mod event;
pub mod export;
mod layout;
mod observation;
mod options;
mod pack;
mod read;
mod reader;
mod recorder;
mod row_batch;
mod sample;
mod schema;
mod series;
mod stats;
mod store;
mod subject;
mod summary;
mod trend;
mod write;

pub use error::HistoryError;
pub use event::{EventKind, HistoryEvent};
pub use observation::{ListChange, ListChangeKind, Observation, ObservedServer, ServerSource};
pub use options::{HistoryOptions, Retention, SubjectLimits};
pub use reader::HistoryReader;
pub use sample::Sample;
pub use series::{Players, Point, Resolution, Series};
pub use stats::HistoryStats;
pub use store::History;
pub use subject::{Subject, UnixSeconds};
pub use summary::{Peak, Summary};
pub use trend::ServerTrend;
