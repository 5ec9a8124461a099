//! Asking servers and lobbies: what `query`, `ping`, `list`, `check` and their relatives have in common.
//!
//! ```text
//! gather, target    what a person names
//! survey            one look at all of it, with news as they come; attend: for somebody who waits for it
//!   ├─ lobby        lists of servers
//!   └─ sweep        servers: resolve (names), then
//!      └─ engine    a prober on sockets, with findings as they come
//! output, exit      table, JSON, lines of JSON, CSV; the exit code
//! ```

pub mod attend;
pub mod capture;
pub mod connect;
pub mod engine;
pub mod exit;
pub mod gather;
pub mod http;
pub mod lobby;
pub mod options;
pub mod outcomes;
pub mod output;
pub mod resolve;
pub mod route;
pub mod survey;
pub mod sweep;
pub mod tap;
pub mod target;
pub mod trouble;

pub use engine::{Engine, Finding, Found};
pub use exit::Exit;
pub use options::Asking;
pub use sweep::{Sweep, Whom};
pub use target::{Protocol, Target};
pub use trouble::Trouble;

use crate::error::CommandError;

/// Runs what a command does, to its end.
///
/// Whatever is still being looked up then is not waited for: that takes as long as the system's resolver wants.
pub fn block_on<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}
