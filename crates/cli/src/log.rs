//! The log, on standard error.

mod queue;

use crate::{
    config::{LogFormat, LogSettings},
    error::CommandError,
    stdio::print_stderr,
};
use jiff::Zoned;
use queue::LogQueue;
use std::io::{self, IsTerminal};
use tracing_subscriber::{
    Registry,
    filter::LevelFilter,
    fmt::{self, format::Writer, time::FormatTime},
    layer::SubscriberExt,
    reload,
    util::SubscriberInitExt,
};

/// The local time of day.
struct TimeOfDay;

impl FormatTime for TimeOfDay {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        write!(out, "{}", Zoned::now().strftime("%H:%M:%S"))
    }
}

/// Standard error, if it is a terminal: lines are wrapped between words. Each line is written at once.
struct WrappedStderr;

impl io::Write for WrappedStderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        print_stderr(String::from_utf8_lossy(line).trim_end_matches('\n'));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log of a running program, whose level can be changed. Dropping it waits for the lines that are not written yet.
pub struct Log {
    filter: Option<reload::Handle<LevelFilter, Registry>>,
    queue: LogQueue,
}

impl Log {
    /// Starts logging.
    ///
    /// # Errors
    /// If the system gives no further thread.
    pub fn start(settings: LogSettings) -> Result<Self, CommandError> {
        let (filter, handle) = reload::Layer::new(LevelFilter::from_level(settings.level));
        let is_terminal = io::stderr().is_terminal();
        let is_wrapped = is_terminal && settings.format == LogFormat::Text;
        let queue = if is_wrapped { LogQueue::start(WrappedStderr) } else { LogQueue::start(io::stderr()) };
        let queue =
            queue.map_err(|error| CommandError::failed(format_args!("cannot start a thread for the log: {error}")))?;
        let lines = fmt::layer().with_writer(queue.clone()).with_target(false);
        let registry = tracing_subscriber::registry().with(filter);
        // The journal adds its own timestamps.
        let in_journal = std::env::var_os("JOURNAL_STREAM").is_some();
        let started = match settings.format {
            LogFormat::Json => {
                let json = lines.json().flatten_event(true).with_current_span(false).with_span_list(false);
                registry.with(json).try_init()
            }
            LogFormat::Text if in_journal => registry.with(lines.without_time()).try_init(),
            // In a terminal, the date and microseconds only take room.
            LogFormat::Text if is_terminal => registry.with(lines.with_timer(TimeOfDay)).try_init(),
            LogFormat::Text => registry.with(lines).try_init(),
        };
        Ok(Self { filter: started.ok().map(|()| handle), queue })
    }

    /// Waits until everything that was logged is written, unless that takes too long.
    pub fn flush(&self) {
        self.queue.flush();
    }

    /// Changes the level.
    pub fn set_level(&self, level: tracing::Level) {
        if let Some(handle) = &self.filter {
            let _ = handle.modify(|filter| *filter = LevelFilter::from_level(level));
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.flush();
    }
}
