//! The last 24 hours and the popularity of every listed server, from the history.
//!
//! A list shows them for each of its rows, so they are read for all servers at once and kept in memory: about 80 bytes for each
//! server with a history, whose number the history bounds. A read costs some microseconds per server, in a thread of its own.

use crate::state::AppState;
use rallypoint_history::{HistoryReader, ServerTrend, UnixSeconds};
use rallypoint_lobby::unix_now;
use rallypoint_lobby_proto::PublicId;
use std::{collections::HashMap, fmt::Write, sync::Arc, time::Duration};

/// Times between the first checks for new trends after a start, in seconds.
const FIRST_INTERVALS: [u64; 3] = [2, 5, 20];

/// Interval of the later checks. The history adds to the trends once per hour, so most checks read nothing.
const INTERVAL: Duration = Duration::from_secs(60);

/// Height of a sparkline, in units of its view box; its width is 23, one less than its points.
const HEIGHT: f32 = 10.0;

/// The trends of all servers that were listed in the last seven days.
#[derive(Debug, Default)]
pub(crate) struct Trends(HashMap<PublicId, Trend>);

/// The trend of one server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trend {
    /// Average number of players of each of the last 24 hours, in eighths, the oldest first; `u16::MAX` where it was not listed.
    hours: [u16; 24],
    /// Average number of players in the last seven days.
    pub week: f32,
}

/// Reads the trends whenever they have changed, until the task is aborted.
pub(crate) async fn refresh(history: HistoryReader, state: Arc<AppState>) {
    let mut shown = None;
    for round in 0_usize.. {
        let now = unix_now() as UnixSeconds;
        // The window moves on with the hour, also while nothing is recorded.
        let version = (history.stats().revision, now.div_euclid(3_600));
        if shown != Some(version) {
            let history = history.clone();
            let read = move || Some(Trends::new(&history.trends(now).ok()?));
            // A failed read is in the metrics and in the log of the history; the trends of before remain until the next try.
            if let Ok(Some(trends)) = tokio::task::spawn_blocking(read).await {
                state.trends.store(Arc::new(trends));
                shown = Some(version);
            }
        }
        tokio::time::sleep(FIRST_INTERVALS.get(round).map_or(INTERVAL, |seconds| Duration::from_secs(*seconds))).await;
    }
}

impl Trends {
    fn new(all: &HashMap<PublicId, ServerTrend>) -> Self {
        Self(all.iter().map(|(id, trend)| (*id, Trend::new(trend))).collect())
    }

    pub fn get(&self, id: PublicId) -> Option<&Trend> {
        self.0.get(&id)
    }

    /// The popularity of a server: 0 if it is not known.
    pub fn week(&self, id: PublicId) -> f32 {
        self.get(id).map_or(0.0, |trend| trend.week)
    }
}

impl Trend {
    fn new(trend: &ServerTrend) -> Self {
        let eighths = |players: f32| (players * 8.0).round().min(f32::from(u16::MAX - 1)) as u16;
        Self { hours: trend.hours.map(|hour| hour.map_or(u16::MAX, eighths)), week: trend.week }
    }

    /// Whether it was listed in at least two hours: otherwise there is nothing to draw.
    pub fn is_drawable(&self) -> bool {
        self.hours.iter().filter(|hour| **hour != u16::MAX).count() > 1
    }

    /// The trend as an SVG path, as high as the number of slots.
    pub fn path(&self, slots: u16) -> String {
        let maximum = self.hours.iter().filter(|hour| **hour != u16::MAX).max().copied().unwrap_or(0);
        let top = f32::from(slots).max(f32::from(maximum) / 8.0).max(1.0);
        let mut path = String::new();
        let mut is_connected = false;
        for (x, hour) in self.hours.iter().enumerate() {
            if *hour == u16::MAX {
                is_connected = false;
                continue;
            }
            let y = HEIGHT * (1.0 - f32::from(*hour) / 8.0 / top);
            let command = if is_connected { 'L' } else { 'M' };
            // Writing to memory does not fail. One decimal is more than the pixels of a row.
            let _ = write!(path, "{command}{x} {}", (y * 10.0).round() / 10.0);
            is_connected = true;
        }
        path
    }

    /// The trend in words, for screen readers and as a tooltip.
    pub fn in_words(&self) -> String {
        let known = || self.hours.iter().filter(|hour| **hour != u16::MAX);
        let maximum = f32::from(known().max().copied().unwrap_or(0)) / 8.0;
        format!("Players in the last 24 hours: at most {maximum:.0} on average in an hour; {:.1} this week", self.week)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_has_gaps_where_the_server_was_not_listed() {
        let mut hours = [None; 24];
        hours[20] = Some(5.0);
        hours[22] = Some(0.0);
        hours[23] = Some(10.0);
        let trend = Trend::new(&ServerTrend { hours, week: 1.25 });
        assert!(trend.is_drawable());
        assert_eq!(trend.path(10), "M20 5M22 10L23 0");
        assert_eq!(trend.path(0), "M20 5M22 10L23 0", "a server without slots is drawn up to its maximum");
        assert!(trend.in_words().contains("at most 10 ") && trend.in_words().contains("1.2 this week"));
        assert!(!Trend::new(&ServerTrend::default()).is_drawable());
        assert_eq!(Trend::new(&ServerTrend { hours: [Some(f32::MAX); 24], week: 0.0 }).hours, [u16::MAX - 1; 24]);
    }
}
