//! Players over time, as a picture.

use super::shown;
use askama::Template;
use rallypoint_history::{Point, Series, UnixSeconds, export};
use std::fmt::Write;

/// How much of the past a graph shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Span {
    #[default]
    Day,
    Week,
    Month,
}

/// A graph, ready to be written.
#[derive(Debug, Template)]
#[template(path = "graph.svg")]
pub(super) struct Graph {
    label: String,
    /// When nobody looked: from where, and how wide.
    unknown: Vec<(f64, f64)>,
    area: String,
    average: String,
    most: String,
    /// Where the lines across are, and what they stand for.
    levels: Vec<(f64, u64)>,
    ticks: Vec<(f64, String)>,
}

/// The picture within its margins.
const LEFT: f64 = 34.0;
const TOP: f64 = 8.0;
const WIDTH: f64 = 678.0;
const HEIGHT: f64 = 168.0;

/// More points than this cannot be told apart.
const MOST_POINTS: usize = 240;

impl Span {
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    pub const fn code(self) -> &'static str {
        ["24h", "7d", "30d"][self as usize]
    }

    pub const fn words(self) -> &'static str {
        ["24 hours", "7 days", "30 days"][self as usize]
    }

    pub const fn seconds(self) -> UnixSeconds {
        [86_400, 7 * 86_400, 30 * 86_400][self as usize]
    }

    /// From the part of an address behind the question mark; what is not understood is a day.
    pub fn of(query: Option<&str>) -> Self {
        let wanted = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).find(|(name, _)| name == "range");
        let known = wanted.and_then(|(_, code)| Self::ALL.into_iter().find(|span| span.code() == code));
        known.unwrap_or_default()
    }

    /// How far the marks of time are apart, and which part of a time they show.
    const fn ticks(self) -> (UnixSeconds, std::ops::Range<usize>) {
        match self {
            Self::Day => (4 * 3_600, 11..16),
            Self::Week => (86_400, 5..10),
            Self::Month => (5 * 86_400, 5..10),
        }
    }
}

/// Some points of time together.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// From 0 at the left to 1 at the right.
    from: f64,
    to: f64,
    /// Whether somebody looked.
    is_known: bool,
    /// Players on average and at most, if it was there.
    players: Option<(f64, u32)>,
}

impl Graph {
    /// Draws a series. A lobby without servers has no players; a server that is not listed has no line.
    pub fn new(series: &Series, span: Span, absent_is_zero: bool) -> Self {
        let buckets = buckets(&series.points, absent_is_zero);
        let most = buckets.iter().filter_map(|bucket| bucket.players).map(|(_, most)| most).max().unwrap_or(0);
        let step = level_step(most);
        let top = (u64::from(most).div_ceil(step) * step).max(step);
        let x = |part: f64| LEFT + part * WIDTH;
        let y = |players: f64| TOP + HEIGHT * (1.0 - players / top as f64);
        let (mut area, mut average, mut line) = (String::new(), String::new(), String::new());
        // Sections without a hole are drawn one by one.
        for section in buckets.chunk_by(|a, b| a.players.is_some() == b.players.is_some()) {
            let (Some(first), Some(last)) = (section.first(), section.last()) else { continue };
            let points: Vec<_> = section.iter().filter_map(|bucket| Some((bucket, bucket.players?))).collect();
            if points.is_empty() {
                continue;
            }
            // Writing into memory does not fail.
            let _ = write!(area, "M{:.1} {:.1}", x(first.from), y(0.0));
            for (place, (bucket, (avg, max))) in points.iter().enumerate() {
                let verb = if place == 0 { 'M' } else { 'L' };
                let (left, right, avg, max) = (x(bucket.from), x(bucket.to), y(*avg), y(f64::from(*max)));
                let _ = write!(area, "L{left:.1} {avg:.1}L{right:.1} {avg:.1}");
                let _ = write!(average, "{verb}{left:.1} {avg:.1}L{right:.1} {avg:.1}");
                let _ = write!(line, "{verb}{left:.1} {max:.1}L{right:.1} {max:.1}");
            }
            let _ = write!(area, "L{:.1} {:.1}Z", x(last.to), y(0.0));
        }
        let unknown = buckets.chunk_by(|a, b| a.is_known == b.is_known).filter(|section| !section[0].is_known);
        let unknown = unknown.map(|section| {
            let (from, to) = (section[0].from, section[section.len() - 1].to);
            (x(from), (to - from) * WIDTH)
        });
        Self {
            label: format!("Players over the last {}: {} at most", span.words(), shown::count(most)),
            unknown: unknown.collect(),
            area,
            average,
            most: line,
            levels: (0..=top / step).map(|level| (y((level * step) as f64), level * step)).collect(),
            ticks: ticks(series, span),
        }
    }
}

/// Points put together until there are few enough.
fn buckets(points: &[Point], absent_is_zero: bool) -> Vec<Bucket> {
    let together = points.len().div_ceil(MOST_POINTS).max(1);
    let total = points.len().max(1) as f64;
    let bucket = |(place, points): (usize, &[Point])| {
        let is_known = points.iter().any(|point| point.observed > 0);
        let up: u32 = points.iter().map(|point| point.up).sum();
        let sum: f64 = points.iter().filter_map(|point| Some(point.players?.avg * f64::from(point.up))).sum();
        let most = points.iter().filter_map(|point| Some(point.players?.max)).max();
        let players = most.filter(|_| up > 0).map(|most| (sum / f64::from(up), most));
        let from = place * together;
        Bucket {
            from: from as f64 / total,
            to: (from + points.len()) as f64 / total,
            is_known,
            players: players.or((is_known && absent_is_zero).then_some((0.0, 0))),
        }
    };
    points.chunks(together).enumerate().map(bucket).collect()
}

/// The distance of lines across: 1, 2 or 5 with zeros, so that there are at most five of them.
fn level_step(most: u32) -> u64 {
    let most = u64::from(most.max(1));
    let tens = std::iter::successors(Some(1_u64), |ten| ten.checked_mul(10));
    let mut steps = tens.flat_map(|ten| [ten, 2 * ten, 5 * ten]);
    steps.find(|step| most <= step * 4).unwrap_or(most)
}

/// Marks at round times, in UTC.
fn ticks(series: &Series, span: Span) -> Vec<(f64, String)> {
    let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else { return Vec::new() };
    let (every, part) = span.ticks();
    let (from, to) = (first.time, last.time + series.step);
    let length = (to - from).max(1) as f64;
    let start = (from.div_euclid(every) + 1) * every;
    let times = std::iter::successors(Some(start), |time| Some(time + every)).take_while(|time| *time < to);
    let tick = |time: UnixSeconds| {
        let text = export::rfc3339(time);
        (LEFT + WIDTH * (time - from) as f64 / length, text.get(part.clone()).unwrap_or_default().to_owned())
    };
    // What is too near to an edge would be cut.
    times.take(40).map(tick).filter(|(x, _)| (LEFT + 14.0..LEFT + WIDTH - 14.0).contains(x)).collect()
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
    fn lines_across_are_few_and_round() {
        assert_eq!([0, 1, 4, 5, 8, 9, 20, 21, 400, 401].map(level_step), [1, 1, 1, 2, 2, 5, 5, 10, 100, 200]);
        assert!(level_step(u32::MAX) > 0);
    }

    #[test]
    fn what_nobody_saw_is_not_zero() {
        let points = vec![point(0, 0, None), point(60, 1, Some(3)), point(120, 1, None), point(180, 1, Some(1))];
        let series = Series { step: 60, points };
        let graph = Graph::new(&series, Span::Day, false);
        assert_eq!(graph.unknown.len(), 1);
        assert_eq!(graph.average.matches('M').count(), 2, "a hole where it was not listed");
        assert_eq!(Graph::new(&series, Span::Day, true).average.matches('M').count(), 1);
        let svg = graph.render().unwrap();
        assert!(svg.contains("3 at most") && !svg.contains("style="), "{svg}");
        let nothing = Graph::new(&Series { step: 60, points: Vec::new() }, Span::Month, true);
        assert!(nothing.average.is_empty());
    }

    #[test]
    fn a_long_series_becomes_short() {
        let points = (0..1_440).map(|minute| point(minute * 60, 1, Some(minute as u32 % 7))).collect();
        let graph = Graph::new(&Series { step: 60, points }, Span::Day, false);
        assert!(graph.average.len() < 8_000, "{}", graph.average.len());
        assert_eq!(
            graph.ticks.iter().map(|(_, text)| &**text).collect::<Vec<_>>(),
            ["04:00", "08:00", "12:00", "16:00", "20:00"]
        );
    }
}
