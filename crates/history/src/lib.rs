//! The history of the list: samples of servers and lists, rolled up in an SQLite file.
//!
//! * [`History`] owns the thread that writes. Once a minute it is given the listed servers ([`Observation`]), which never
//!   blocks; the thread decides what to record and writes it in one transaction. Minutes are rolled up to hours and days,
//!   each kept for a configurable time ([`Retention`]).
//! * [`HistoryReader`] reads, from any thread: [`Series`] for graphs, [`Summary`], [`HistoryEvent`]s. It can also read the
//!   file of another running program.
//! * [`export`] writes series as CSV or JSON.
//!
//! The caller supplies the time, in seconds since 1970.
//!
//! ```
//! use rallypoint_history::{History, HistoryOptions, Resolution, Subject, Observation};
//! use rallypoint_lobby_proto::{Config, Registry, HashKeys};
//! use std::time::Instant;
//!
//! # let folder = std::env::temp_dir().join(format!("rallypoint-history-example-{}", std::process::id()));
//! let registry = Registry::new(Config::default(), HashKeys::default(), Instant::now())?;
//! let history = History::start(HistoryOptions::new(folder.join("history.db")))?;
//! history.record(Observation { time: 1_800_000_000, servers: registry.lists().snapshot(), changes: Vec::new() });
//! history.flush();
//!
//! let handle = history.reader();
//! let series = handle.series(&Subject::Total, 1_800_000_000..1_800_000_060, Resolution::Minute)?;
//! assert_eq!(series.points[0].up_share(), Some(1.0));
//! # drop(history);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
