//! The history as CSV or JSON.

use crate::{Point, Series, Subject, Summary, UnixSeconds};
use jiff::Timestamp;
use serde::Serialize;
use std::io::{self, Write};

/// What an export looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A heading, and a line for each point.
    #[default]
    Csv,
    /// One object for each series, each on its own line.
    Json,
}

/// The heading of the CSV, which comes once.
pub const CSV_HEADING: &str =
    "kind,id,time,seconds,minutes_observed,minutes_up,players_min,players_avg,players_max,bots,slots,servers\n";

/// Writes the points of a subject as lines of CSV: without the heading, and without steps in which nobody looked.
pub fn csv(out: &mut dyn Write, subject: &Subject, series: &Series) -> io::Result<()> {
    for point in series.points.iter().filter(|point| point.observed > 0) {
        let (kind, time) = (subject.kind(), rfc3339(point.time));
        write!(out, "{kind},{subject},{time},{},{},{},", series.step, point.observed, point.up)?;
        match point.players {
            None => out.write_all(b",,,,,\n")?,
            Some(seen) => {
                let [avg, bots, slots, servers] = [seen.avg, seen.bots, seen.slots, seen.servers].map(rounded);
                writeln!(out, "{},{avg},{},{bots},{slots},{servers}", seen.min, seen.max)?;
            }
        }
    }
    Ok(())
}

/// Writes the points of a subject as one object of JSON on one line. In a step in which nobody looked, `observed` is 0.
pub fn json(out: &mut dyn Write, subject: &Subject, summary: Option<&Summary>, series: &Series) -> io::Result<()> {
    let object = Object {
        kind: subject.kind(),
        id: (*subject != Subject::Total).then(|| subject.to_string()),
        name: summary.map(|summary| summary.name.as_str()).filter(|name| !name.is_empty()),
        first_seen: summary.map(|summary| rfc3339(summary.first)),
        step: series.step,
        points: series.points.iter().map(Row::new).collect(),
    };
    serde_json::to_writer(&mut *out, &object)?;
    out.write_all(b"\n")
}

/// A moment as people and programs read it: `2026-11-16T00:00:00Z`.
#[must_use]
pub fn rfc3339(time: UnixSeconds) -> String {
    Timestamp::from_second(time).map_or_else(|_| time.to_string(), |time| time.to_string())
}

/// Reads such a moment, or a number of seconds since 1970.
pub fn parse_time(text: &str) -> Result<UnixSeconds, InvalidTime> {
    let date = || format!("{text}T00:00:00Z").parse::<Timestamp>();
    let time = text.parse::<Timestamp>().or_else(|_| date()).map(Timestamp::as_second);
    time.ok().or_else(|| text.parse().ok()).ok_or(InvalidTime)
}

/// What was given is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as 2026-11-16 or 2026-11-16T12:00:00Z, or seconds since 1970")]
pub struct InvalidTime;

#[derive(Serialize)]
struct Object<'a> {
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_seen: Option<String>,
    step: i64,
    points: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    time: UnixSeconds,
    observed: u32,
    up: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    players: Option<Players>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bots: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slots: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<f64>,
}

#[derive(Serialize)]
struct Players {
    min: u32,
    avg: f64,
    max: u32,
}

impl Row {
    fn new(point: &Point) -> Self {
        let Point { time, observed, up, players } = *point;
        Self {
            time,
            observed,
            up,
            players: players.map(|seen| Players { min: seen.min, avg: rounded(seen.avg), max: seen.max }),
            bots: players.map(|seen| rounded(seen.bots)),
            slots: players.map(|seen| rounded(seen.slots)),
            servers: players.map(|seen| rounded(seen.servers)),
        }
    }
}

/// More digits would only look like more knowledge.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
