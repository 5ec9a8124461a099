//! The async runtime of commands that scan.

use crate::error::CommandError;

/// Runs a command to its end.
///
/// Name lookups that are still running then are not waited for: they take as long as the system's resolver wants.
pub fn block_on<T>(command: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::failed)?;
    let result = runtime.block_on(command);
    runtime.shutdown_background();
    result
}
