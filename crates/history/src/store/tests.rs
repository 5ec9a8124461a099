//! What the log is told.

use super::*;
use crate::{Listed, Seen};
use std::sync::atomic::AtomicUsize;
use tracing::{Event, Metadata, Subscriber, span};

/// Nobody.
#[derive(Debug)]
struct Empty;

impl Listed for Empty {
    fn each(&self, _: &mut dyn FnMut(Seen<'_>)) {}
}

/// Counts the lines of the log.
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
fn a_clock_that_is_behind_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut keeper = Keeper::new(Options::new(folder.path().join("history.db")), Arc::default());
    let lines = Lines::default();
    let mut told = |minute: i64| {
        keeper.handle_sweep(&Sweep { time: 1_800_000_000 + 60 * minute, listed: Arc::new(Empty), moves: Vec::new() });
        lines.0.swap(0, Relaxed)
    };
    tracing::subscriber::with_default(lines.clone(), || {
        assert_eq!((0..100).map(&mut told).sum::<usize>(), 0);
        assert_eq!([1, 2, 3, 100, 101, 50, 51].map(&mut told), [1, 0, 0, 0, 0, 1, 0]);
    });
    assert_eq!(keeper.shared.stats().written, 102);
}
