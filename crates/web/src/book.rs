//! The lobby's table of servers under the names of this crate.

pub(crate) use crate::json::{ServerView, text};
pub(crate) use crate::live::{Batch, Cursor, LiveSnapshot};
pub use rallypoint_lobby::{ServerRecord as Row, TableSnapshot as Snapshot, Totals, Verification as Verified};
