//! The log, on standard error.

use crate::config::{LogFormat, LogSettings};
use jiff::Zoned;
use std::io::IsTerminal;
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

/// The log of a running program, whose level can be changed.
pub struct Log(Option<reload::Handle<LevelFilter, Registry>>);

impl Log {
    /// Starts logging.
    pub fn start(settings: LogSettings) -> Self {
        let (filter, handle) = reload::Layer::new(LevelFilter::from_level(settings.level));
        let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
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
            LogFormat::Text if std::io::stderr().is_terminal() => registry.with(lines.with_timer(TimeOfDay)).try_init(),
            LogFormat::Text => registry.with(lines).try_init(),
        };
        Self(started.ok().map(|()| handle))
    }

    /// Changes the level.
    pub fn set_level(&self, level: tracing::Level) {
        if let Some(handle) = &self.0 {
            let _ = handle.modify(|filter| *filter = LevelFilter::from_level(level));
        }
    }
}
