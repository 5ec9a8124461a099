//! Export of series as CSV or JSON.

use crate::{Point, Series, Subject, Summary, UnixSeconds};
use jiff::{
    Timestamp,
    civil::{DateTime, Time},
    fmt::temporal::Pieces,
};
use serde::Serialize;
use std::io::{self, Write};

/// The format of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A header line, and a line for each point.
    #[default]
    Csv,
    /// One JSON object per series, each on its own line.
    Json,
}

/// The header line of the CSV.
pub const CSV_HEADING: &str =
    "kind,id,time,seconds,minutes_observed,minutes_up,players_min,players_avg,players_max,bots,slots,servers\n";

/// Writes the points of a subject as lines of CSV, without the header line and without steps that were not recorded.
pub fn csv(out: &mut dyn Write, subject: &Subject, series: &Series) -> io::Result<()> {
    for point in series.points.iter().filter(|point| point.observed > 0) {
        let kind = subject.kind();
        let time = rfc3339(point.time);
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

/// Writes the points of a subject as one JSON object on one line. In steps that were not recorded, `observed` is 0.
pub fn json(out: &mut dyn Write, subject: &Subject, summary: Option<&Summary>, series: &Series) -> io::Result<()> {
    let object = HistorySeries {
        kind: subject.into(),
        id: (*subject != Subject::Total).then(|| subject.to_string()),
        name: summary.map(|summary| summary.name.as_str()).filter(|name| !name.is_empty()),
        first_seen: summary.map(|summary| rfc3339(summary.first)),
        step: series.step,
        points: series.points.iter().map(HistoryPoint::new).collect(),
    };
    serde_json::to_writer(&mut *out, &object)?;
    out.write_all(b"\n")
}

/// A time in RFC 3339 format: `2026-11-16T00:00:00Z`.
#[must_use]
pub fn rfc3339(time: UnixSeconds) -> String {
    Timestamp::from_second(time).map_or_else(|_| time.to_string(), |time| time.to_string())
}

/// Parses a time in RFC 3339 format, a date, or a number of seconds since 1970.
pub fn parse_time(text: &str) -> Result<UnixSeconds, InvalidTime> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let pieces = Pieces::parse(text).map_err(|_| InvalidTime)?;
    let offset = match (pieces.time(), pieces.to_numeric_offset()) {
        (_, Some(offset)) => offset.seconds(),
        // A date starts at midnight in UTC.
        (None, None) => 0,
        (Some(_), None) => return Err(InvalidTime),
    };
    let local = pieces.date().to_datetime(pieces.time().unwrap_or_else(Time::midnight));
    let since_1970 = local.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0));
    Ok(since_1970.as_secs() - i64::from(offset))
}

/// A text that is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as 2026-11-16 or 2026-11-16T12:00:00Z, or seconds since 1970")]
pub struct InvalidTime;

/// Players and servers over time, as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = History))]
pub struct HistorySeries<'a> {
    /// The subject.
    kind: SubjectKind,
    /// The public ID of a server or the UUID of a list; null for the total.
    #[cfg_attr(feature = "openapi", schema(required))]
    id: Option<String>,
    /// The last name of a server.
    #[cfg_attr(feature = "openapi", schema(required))]
    name: Option<&'a str>,
    /// The beginning of the history; null if there is none yet.
    #[cfg_attr(feature = "openapi", schema(required, format = "date-time"))]
    first_seen: Option<String>,
    /// Duration of a point in seconds.
    #[cfg_attr(feature = "openapi", schema(minimum = 0))]
    step: i64,
    /// The points.
    points: Vec<HistoryPoint>,
}

/// The subject of a history.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
enum SubjectKind {
    Total,
    List,
    Server,
}

impl From<&Subject> for SubjectKind {
    fn from(subject: &Subject) -> Self {
        match subject {
            Subject::Total => Self::Total,
            Subject::List(_) => Self::List,
            Subject::Server(_) => Self::Server,
        }
    }
}

/// The state of a subject in one step. What is not known is null.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct HistoryPoint {
    /// The beginning of the step.
    #[cfg_attr(feature = "openapi", schema(format = "date-time"))]
    time: String,
    /// Number of minutes that were recorded.
    observed: u32,
    /// Number of these minutes in which the subject was listed.
    up: u32,
    /// Players while it was listed.
    #[cfg_attr(feature = "openapi", schema(required, inline))]
    players: Option<HistoryPlayers>,
    /// Average number of bots.
    #[cfg_attr(feature = "openapi", schema(required))]
    bots: Option<f64>,
    /// Average number of slots.
    #[cfg_attr(feature = "openapi", schema(required))]
    slots: Option<f64>,
    /// Average number of servers.
    #[cfg_attr(feature = "openapi", schema(required))]
    servers: Option<f64>,
}

/// Players of a subject in one step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct HistoryPlayers {
    /// Minimum.
    min: u32,
    /// Average.
    avg: f64,
    /// Maximum.
    max: u32,
}

impl HistoryPoint {
    fn new(point: &Point) -> Self {
        let Point { time, observed, up, players } = *point;
        Self {
            time: rfc3339(time),
            observed,
            up,
            players: players.map(|seen| HistoryPlayers { min: seen.min, avg: rounded(seen.avg), max: seen.max }),
            bots: players.map(|seen| rounded(seen.bots)),
            slots: players.map(|seen| rounded(seen.slots)),
            servers: players.map(|seen| rounded(seen.servers)),
        }
    }
}

/// Rounds to two digits: more would suggest a precision that the samples do not have.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
