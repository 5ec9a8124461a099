//! The text exposition format of Prometheus, version 0.0.4.

use std::{
    fmt::{Display, Write},
    time::Duration,
};

/// Metrics in the text exposition format. Each family is begun once, and all of its samples follow.
///
/// ```
/// use rallypoint_web::metrics::{Exposition, MetricKind};
///
/// let mut out = Exposition::default();
/// out.family("queries_total", MetricKind::Counter, "Queries.").sample(&[("result", "complete")], 7);
/// let text = "# HELP queries_total Queries.\n# TYPE queries_total counter\nqueries_total{result=\"complete\"} 7\n";
/// assert_eq!(out.finish(), text);
/// ```
#[derive(Debug, Default)]
pub struct Exposition(String);

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Increases only, except for a reset to zero at a restart.
    Counter,
    /// Increases and decreases.
    Gauge,
}

/// One metric, to which samples can be added.
#[derive(Debug)]
pub struct MetricFamily<'a> {
    out: &'a mut String,
    name: &'static str,
}

impl Exposition {
    /// The content type of the format.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Begins a metric, with its help text and type.
    pub fn family(&mut self, name: &'static str, kind: MetricKind, help: &str) -> MetricFamily<'_> {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        self.head(name, kind, help);
        MetricFamily { out: &mut self.0, name }
    }

    /// Adds a counter without labels.
    pub fn counter(&mut self, name: &'static str, help: &str, value: u64) {
        self.family(name, MetricKind::Counter, help).sample(&[], value);
    }

    /// Adds a gauge without labels.
    pub fn gauge(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(name, MetricKind::Gauge, help).sample(&[], value);
    }

    /// Adds a histogram of durations. Each bucket has its upper bound and the number of durations up to that, but above the
    /// bound before; the last bound is [`Duration::MAX`].
    pub fn histogram(&mut self, name: &str, help: &str, buckets: &[(Duration, u64)], sum: Duration) {
        self.head(name, "histogram", help);
        let mut count = 0;
        for (bound, in_bucket) in buckets {
            count += in_bucket;
            // Writing to a string does not fail, here and below.
            let _ = match *bound {
                Duration::MAX => writeln!(self.0, "{name}_bucket{{le=\"+Inf\"}} {count}"),
                bound => writeln!(self.0, "{name}_bucket{{le=\"{}\"}} {count}", bound.as_secs_f64()),
            };
        }
        let _ = writeln!(self.0, "{name}_sum {}\n{name}_count {count}", sum.as_secs_f64());
    }

    /// The text.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
}

impl MetricFamily<'_> {
    /// Adds a sample with these labels.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.out.push_str(self.name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{before}{label}=\"{}\"", escaped(value));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{after} {value}");
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_follows_the_format() {
        let mut out = Exposition::default();
        out.counter("a_total", "Back\\slash and\nline.", 7);
        out.gauge("b", "B.", 0.25);
        let mut family = out.family("c", MetricKind::Gauge, "C.");
        family.sample(&[("x", "1"), ("y", "a\"b\\c\nd")], 3);
        family.sample(&[("x", "2"), ("y", "")], 4);
        let times = [(1, 2), (250, 0), (1_000, 3)].map(|(ms, count)| (Duration::from_millis(ms), count));
        out.histogram("d", "D.", &[&times[..], &[(Duration::MAX, 1)]].concat(), Duration::from_millis(1_500));
        let expected = r#"# HELP a_total Back\\slash and\nline.
# TYPE a_total counter
a_total 7
# HELP b B.
# TYPE b gauge
b 0.25
# HELP c C.
# TYPE c gauge
c{x="1",y="a\"b\\c\nd"} 3
c{x="2",y=""} 4
# HELP d D.
# TYPE d histogram
d_bucket{le="0.001"} 2
d_bucket{le="0.25"} 2
d_bucket{le="1"} 5
d_bucket{le="+Inf"} 6
d_sum 1.5
d_count 6
"#;
        assert_eq!(out.finish(), expected);
    }
}
