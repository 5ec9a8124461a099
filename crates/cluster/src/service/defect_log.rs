//! The log's lines about the content of the store.

use crate::StoreDefect;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Minimum time between two lines about the same defect: another program may cause it again and again.
const INTERVAL: Duration = Duration::from_secs(60);

/// Logs what was found to be wrong with the content of the store.
#[derive(Debug, Default)]
pub(super) struct DefectLog {
    last: HashMap<StoreDefect, Instant>,
}

impl DefectLog {
    /// Logs a defect, unless the same one was logged shortly before.
    pub fn write(&mut self, now: Instant, defect: StoreDefect) {
        if self.is_due(now, defect) {
            tracing::warn!(defect = defect.code(), "{}", defect.summary());
        }
    }

    fn is_due(&mut self, now: Instant, defect: StoreDefect) -> bool {
        let is_due = self.last.get(&defect).is_none_or(|last| now.saturating_duration_since(*last) >= INTERVAL);
        if is_due {
            self.last.insert(defect, now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_logged_once_a_minute() {
        let start = Instant::now();
        let mut log = DefectLog::default();
        let logged: Vec<_> =
            (0..130).filter(|second| log.is_due(start + Duration::from_secs(*second), StoreDefect::Emptied)).collect();
        assert_eq!(logged, [0, 60, 120]);
        assert!(log.is_due(start + Duration::from_secs(130), StoreDefect::LostServers), "another defect");
    }
}
