//! Log messages.

use super::*;
use crate::{ObservedServer, ServerSource};
use std::sync::atomic::AtomicUsize;
use tracing::{Event, Metadata, Subscriber, span};

/// No servers.
#[derive(Debug)]
struct Empty;

impl ServerSource for Empty {
    fn for_each(&self, _: &mut dyn FnMut(ObservedServer<'_>)) {}
}

/// Counts log messages.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicUsize>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("rallypoint_history")
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Relaxed);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[test]
fn a_clock_that_is_behind_is_logged_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer_thread = WriterThread::new(HistoryOptions::new(folder.path().join("history.db")), Arc::default());
    let lines = Lines::default();
    let mut logged = |minute: i64| {
        writer_thread.handle_observation(&Observation {
            time: 1_800_000_000 + 60 * minute,
            servers: Arc::new(Empty),
            changes: Vec::new(),
        });
        lines.0.swap(0, Relaxed)
    };
    tracing::subscriber::with_default(lines.clone(), || {
        assert_eq!((0..100).map(&mut logged).sum::<usize>(), 0);
        assert_eq!([1, 2, 3, 100, 101, 50, 51].map(&mut logged), [1, 0, 0, 0, 0, 1, 0]);
    });
    assert_eq!(writer_thread.shared.stats().written, 102);
}
