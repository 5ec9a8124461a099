//! Statistics of round-trip times.

use serde_json::{Value, json};
use std::fmt;

/// Counts and sums of round-trip times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Number of queries sent.
    pub sent: u64,
    answered: u64,
    least: f64,
    most: f64,
    sum: f64,
    squares: f64,
}

impl Stats {
    /// Adds the round-trip time of a reply.
    pub fn add_reply(&mut self, ms: f64) {
        self.least = if self.answered == 0 { ms } else { self.least.min(ms) };
        self.most = self.most.max(ms);
        self.sum += ms;
        self.squares += ms * ms;
        self.answered += 1;
    }

    fn average(&self) -> f64 {
        self.sum / self.answered.max(1) as f64
    }

    /// The standard deviation, as ping(8) prints it.
    fn deviation(&self) -> f64 {
        (self.squares / self.answered.max(1) as f64 - self.average().powi(2)).max(0.0).sqrt()
    }

    /// Lost queries in percent.
    fn lost(&self) -> f64 {
        100.0 * (self.sent.saturating_sub(self.answered)) as f64 / self.sent.max(1) as f64
    }

    pub fn json(&self, target: &str) -> Value {
        let ms = |value: f64| (self.answered > 0).then_some((value * 1e3).round() / 1e3);
        json!({
            "type": "statistics", "target": target, "sent": self.sent, "answered": self.answered,
            "lost_percent": (self.lost() * 10.0).round() / 10.0,
            "min_ms": ms(self.least), "avg_ms": ms(self.average()), "max_ms": ms(self.most), "mdev_ms": ms(self.deviation()),
        })
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, answered, least, most, .. } = self;
        write!(f, "{sent} sent, {answered} answered, {}% lost", (self.lost() * 10.0).round() / 10.0)?;
        if *answered > 0 {
            let (average, deviation) = (self.average(), self.deviation());
            write!(f, "\nmin/avg/max/mdev = {least:.3}/{average:.3}/{most:.3}/{deviation:.3} ms")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_ping() {
        let mut stats = Stats { sent: 3, ..Stats::default() };
        assert_eq!(stats.to_string(), "3 sent, 0 answered, 100% lost");
        stats.add_reply(10.0);
        stats.add_reply(20.0);
        let text = "3 sent, 2 answered, 33.3% lost\nmin/avg/max/mdev = 10.000/15.000/20.000/5.000 ms";
        assert_eq!(stats.to_string(), text);
        assert_eq!(Stats::default().to_string(), "0 sent, 0 answered, 0% lost");
    }
}
