//! Players over time, as an SVG graph.

use super::format;
use askama::Template;
use rallypoint_history::{Point, Series, UnixSeconds, export};
use std::fmt::Write;

/// The time range of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Span {
    #[default]
    Day,
    Week,
    Month,
}

/// A graph, ready to be rendered. It is as wide as its place on the page: the lines are stretched, the labels are not.
#[derive(Debug, Template)]
#[template(path = "graph.html")]
pub(super) struct Graph {
    label: String,
    /// Left edges and widths of the times without observations.
    unknown: Vec<(f64, f64)>,
    area: String,
    average: String,
    maximum: String,
    /// The number of slots, for a single server.
    slots: String,
    /// Positions and values of the horizontal lines.
    levels: Vec<(f64, u64)>,
    /// Positions in percent and labels of the marks on the time axis, in UTC.
    ticks: Vec<(f64, String)>,
    /// The beginning and the end, in seconds since 1970, and the length of the time range: the script marks local times.
    from: UnixSeconds,
    to: UnixSeconds,
    span: &'static str,
    /// Average, maximum and slots of each point, for the script: "5.2,7,16 …"; "-" where nothing is known.
    values: String,
}

/// The size of the drawing area, in units of its view box.
const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 100.0;

/// Maximum number of points: more could not be distinguished.
const MAX_POINTS: usize = 240;

impl Span {
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    pub const fn code(self) -> &'static str {
        ["24h", "7d", "30d"][self as usize]
    }

    pub const fn label(self) -> &'static str {
        ["24 hours", "7 days", "30 days"][self as usize]
    }

    pub const fn seconds(self) -> UnixSeconds {
        [86_400, 7 * 86_400, 30 * 86_400][self as usize]
    }

    /// The range that a query string names; a day if it names none.
    pub fn from_query(query: Option<&str>) -> Self {
        let range = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).find(|(name, _)| name == "range");
        range.and_then(|(_, code)| Self::ALL.into_iter().find(|span| span.code() == code)).unwrap_or_default()
    }

    /// Interval between the marks on the time axis, and the part of an RFC 3339 time that they show.
    const fn ticks(self) -> (UnixSeconds, std::ops::Range<usize>) {
        match self {
            Self::Day => (4 * 3_600, 11..16),
            Self::Week => (86_400, 5..10),
            Self::Month => (5 * 86_400, 5..10),
        }
    }
}

/// Consecutive points, drawn as one.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Position of its beginning, from 0 at the left to 1 at the right.
    from: f64,
    to: f64,
    /// Whether anything was observed.
    is_known: bool,
    /// Average and maximum of players, if the subject was listed.
    players: Option<(f64, u32)>,
    /// Average number of slots while it was listed.
    slots: f64,
}

impl Graph {
    /// Draws a series. Times at which a server was not listed are gaps; at such times a lobby has no players. A server is
    /// drawn with its slots.
    pub fn new(series: &Series, span: Span, is_server: bool) -> Self {
        let buckets = buckets(&series.points, !is_server);
        let maximum = buckets.iter().filter_map(|bucket| bucket.players).map(|(_, max)| max).max().unwrap_or(0);
        let slots = buckets.iter().filter(|_| is_server).map(|bucket| bucket.slots.ceil() as u32).max().unwrap_or(0);
        let highest = maximum.max(slots);
        let step = level_step(highest);
        let top = (u64::from(highest).div_ceil(step) * step).max(step);
        let x = |part: f64| part * WIDTH;
        let y = |players: f64| HEIGHT * (1.0 - players / top as f64);
        let mut slots_line = String::new();
        let mut area = String::new();
        let mut average = String::new();
        let mut maximum_line = String::new();
        // Every section without gaps is a path of its own.
        for section in buckets.chunk_by(|a, b| a.players.is_some() == b.players.is_some()) {
            let (Some(first), Some(last)) = (section.first(), section.last()) else { continue };
            let points: Vec<_> = section.iter().filter_map(|bucket| Some((bucket, bucket.players?))).collect();
            if points.is_empty() {
                continue;
            }
            // Writing to memory does not fail.
            let _ = write!(area, "M{:.1} {:.1}", x(first.from), y(0.0));
            for (index, (bucket, (avg, max))) in points.iter().enumerate() {
                let command = if index == 0 { 'M' } else { 'L' };
                let (left, right, avg, max) = (x(bucket.from), x(bucket.to), y(*avg), y(f64::from(*max)));
                let _ = write!(area, "L{left:.1} {avg:.1}L{right:.1} {avg:.1}");
                let _ = write!(average, "{command}{left:.1} {avg:.1}L{right:.1} {avg:.1}");
                let _ = write!(maximum_line, "{command}{left:.1} {max:.1}L{right:.1} {max:.1}");
                if is_server && bucket.slots > 0.0 {
                    let slots = y(bucket.slots);
                    let command = if slots_line.is_empty() || index == 0 { 'M' } else { 'L' };
                    let _ = write!(slots_line, "{command}{left:.1} {slots:.1}L{right:.1} {slots:.1}");
                }
            }
            let _ = write!(area, "L{:.1} {:.1}Z", x(last.to), y(0.0));
        }
        let unknown = buckets.chunk_by(|a, b| a.is_known == b.is_known).filter(|section| !section[0].is_known);
        let unknown = unknown.map(|section| {
            // `chunk_by` gives no empty sections.
            let (from, to) = (section[0].from, section[section.len() - 1].to);
            (x(from), (to - from) * WIDTH)
        });
        Self {
            label: format!("Players over the last {}: at most {}", span.label(), format::count(maximum)),
            unknown: unknown.collect(),
            area,
            average,
            maximum: maximum_line,
            slots: slots_line,
            levels: (0..=top / step).map(|level| (y((level * step) as f64), level * step)).collect(),
            ticks: ticks(series, span),
            from: series.points.first().map_or(0, |point| point.time),
            to: series.points.last().map_or(0, |point| point.time + series.step),
            span: span.code(),
            values: buckets.iter().map(|bucket| bucket.values(is_server)).collect::<Vec<_>>().join(" "),
        }
    }
}

impl Bucket {
    /// The values for the script.
    fn values(&self, is_server: bool) -> String {
        match self.players {
            None => "-".into(),
            Some((average, maximum)) if is_server => format!("{:.1},{maximum},{:.0}", average, self.slots),
            Some((average, maximum)) => format!("{average:.1},{maximum}"),
        }
    }
}

/// Combines consecutive points, so that at most [`MAX_POINTS`] remain.
fn buckets(points: &[Point], absent_is_zero: bool) -> Vec<Bucket> {
    let chunk = points.len().div_ceil(MAX_POINTS).max(1);
    let total = points.len().max(1) as f64;
    let bucket = |(index, points): (usize, &[Point])| {
        let is_known = points.iter().any(|point| point.observed > 0);
        let up: u32 = points.iter().map(|point| point.up).sum();
        let sum: f64 = points.iter().filter_map(|point| Some(point.players?.avg * f64::from(point.up))).sum();
        let max = points.iter().filter_map(|point| Some(point.players?.max)).max();
        let slots: f64 = points.iter().filter_map(|point| Some(point.players?.slots * f64::from(point.up))).sum();
        let players = max.filter(|_| up > 0).map(|max| (sum / f64::from(up), max));
        let from = index * chunk;
        Bucket {
            from: from as f64 / total,
            to: (from + points.len()) as f64 / total,
            is_known,
            players: players.or((is_known && absent_is_zero).then_some((0.0, 0))),
            slots: if up > 0 { slots / f64::from(up) } else { 0.0 },
        }
    };
    points.chunks(chunk).enumerate().map(bucket).collect()
}

/// Distance between the horizontal lines: 1, 2 or 5 times a power of ten, so that there are at most five lines.
fn level_step(maximum: u32) -> u64 {
    let maximum = u64::from(maximum.max(1));
    let powers = std::iter::successors(Some(1_u64), |power| power.checked_mul(10));
    let mut steps = powers.flat_map(|power| [power, 2 * power, 5 * power]);
    steps.find(|step| maximum <= step * 4).unwrap_or(maximum)
}

/// Marks at round times in UTC.
fn ticks(series: &Series, span: Span) -> Vec<(f64, String)> {
    let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else { return Vec::new() };
    let (interval, part) = span.ticks();
    let (from, to) = (first.time, last.time + series.step);
    let length = (to - from).max(1) as f64;
    let start = (from.div_euclid(interval) + 1) * interval;
    let times = std::iter::successors(Some(start), |time| Some(time + interval)).take_while(|time| *time < to);
    let tick = |time: UnixSeconds| {
        let text = export::rfc3339(time);
        (100.0 * (time - from) as f64 / length, text.get(part.clone()).unwrap_or_default().to_owned())
    };
    // Labels too close to an edge would be cut off.
    times.take(40).map(tick).filter(|(percent, _)| (3.0..97.0).contains(percent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_history::Players;

    fn point(time: UnixSeconds, observed: u32, players: Option<u32>) -> Point {
        let players = players.map(|players| Players {
            min: players,
            avg: f64::from(players),
            max: players,
            bots: 0.0,
            slots: 10.0,
            servers: 1.0,
        });
        Point { time, observed, up: if players.is_some() { observed } else { 0 }, players }
    }

    #[test]
    fn horizontal_lines_are_few_and_at_round_numbers() {
        assert_eq!([0, 1, 4, 5, 8, 9, 20, 21, 400, 401].map(level_step), [1, 1, 1, 2, 2, 5, 5, 10, 100, 200]);
        assert!(level_step(u32::MAX) > 0);
    }

    #[test]
    fn times_without_observations_are_not_zero() {
        let points = vec![point(0, 0, None), point(60, 1, Some(3)), point(120, 1, None), point(180, 1, Some(1))];
        let series = Series { step: 60, points };
        let graph = Graph::new(&series, Span::Day, true);
        assert_eq!(graph.unknown.len(), 1);
        assert_eq!(graph.average.matches('M').count(), 2, "a gap where it was not listed");
        assert_eq!(Graph::new(&series, Span::Day, false).average.matches('M').count(), 1);
        let svg = graph.render().unwrap();
        assert!(svg.contains("at most 3") && !svg.contains("style="), "{svg}");
        let nothing = Graph::new(&Series { step: 60, points: Vec::new() }, Span::Month, false);
        assert!(nothing.average.is_empty());
    }

    #[test]
    fn a_long_series_is_drawn_with_fewer_points() {
        let points = (0..1_440).map(|minute| point(minute * 60, 1, Some(minute as u32 % 7))).collect();
        let graph = Graph::new(&Series { step: 60, points }, Span::Day, false);
        assert!(graph.average.len() < 8_000, "{}", graph.average.len());
        assert_eq!(
            graph.ticks.iter().map(|(_, text)| &**text).collect::<Vec<_>>(),
            ["04:00", "08:00", "12:00", "16:00", "20:00"]
        );
    }
}
