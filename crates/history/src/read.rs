//! Queries of the file.

use crate::{
    HistoryError, HistoryEvent, Peak, Point, Resolution, Series, Subject, Summary, UnixSeconds,
    error::damaged,
    event::EventKind,
    layout::{self, Level},
    pack,
    sample::{Sample, Sum},
    subject::{Key, TOTAL},
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::ops::{Range, RangeInclusive};

/// The points of a subject in a time range, which is rounded outwards to whole steps.
pub(crate) fn series(
    connection: &Connection,
    subject: &Subject,
    range: &Range<UnixSeconds>,
    resolution: Resolution,
) -> Result<Series, HistoryError> {
    if resolution.is_too_fine(range) {
        return Err(HistoryError::TooMany);
    }
    let (level, Range { start: first, end }) = (resolution.level(range), resolution.steps(range));
    let window = Window { level, first, count: end.saturating_sub(first).max(0) };
    // A consistent view of the file while the writer rolls up hours.
    let transaction = connection.unchecked_transaction()?;
    let found = find_subject(&transaction, subject)?;
    let observed = window.observed(&transaction, found.map_or(UnixSeconds::MIN, |(_, start)| start))?;
    let sums = match found {
        None => vec![Sum::default(); observed.len()],
        Some((key, _)) => window.sums(&transaction, key)?,
    };
    let step = level.step();
    let points = (first..).zip(sums.iter().zip(&observed));
    let points = points.map(|(index, (sum, observed))| Point::new(index * step, sum, *observed)).collect();
    Ok(Series { step, points })
}

/// The key figures of a subject.
pub(crate) fn summary(
    connection: &Connection,
    subject: &Subject,
    now: UnixSeconds,
) -> Result<Option<Summary>, HistoryError> {
    let transaction = connection.unchecked_transaction()?;
    let (kind, id) = subject.parts();
    let mut select = transaction.prepare_cached(
        "SELECT key, start, name, map, first, last, listed, peak, peak_at FROM subject WHERE kind = ?1 AND id = ?2",
    )?;
    let found = select.query_row(params![kind, id], |row| Ok((row.get(0)?, row.get(1)?, summary_of(*subject, row)?)));
    let Some((key, start, mut summary)) = found.optional()? else { return Ok(None) };
    let hours = Window { level: Level::Hours, first: layout::hour(now) - 30 * 24, count: 30 * 24 + 1 };
    let sums = hours.sums(&transaction, key)?;
    let observed = hours.observed(&transaction, start)?;
    for (uptime, hours_back) in summary.uptime.iter_mut().zip([24, 7 * 24, 30 * 24]) {
        let from = 30 * 24 - hours_back;
        let up: u32 = sums[from..].iter().map(|sum| sum.up).sum();
        let recorded: u32 = observed[from..].iter().sum();
        *uptime = (recorded > 0).then(|| (f64::from(up) / f64::from(recorded)).min(1.0));
    }
    // The column `last` is updated only when an hour is rolled up.
    each_fresh(&transaction, key, 0..=layout::LAST_HOUR, |time, _| summary.last = summary.last.max(time))?;
    Ok(Some(summary))
}

fn summary_of(subject: Subject, row: &Row<'_>) -> rusqlite::Result<Summary> {
    let peak = Peak { players: row.get(7)?, time: row.get(8)? };
    Ok(Summary {
        subject,
        name: row.get(2)?,
        map: row.get(3)?,
        first: row.get(4)?,
        last: row.get(5)?,
        listed: row.get(6)?,
        peak: (peak.players > 0).then_some(peak),
        uptime: [None; 3],
    })
}

/// The latest events of a subject before a time, latest first.
pub(crate) fn events(
    connection: &Connection,
    subject: &Subject,
    limit: usize,
    before: UnixSeconds,
) -> Result<Vec<HistoryEvent>, HistoryError> {
    let Some((key, _)) = find_subject(connection, subject)? else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(
        "SELECT time, code, detail FROM event WHERE subject = ?1 AND lane IN (0, 1) AND time < ?2
         ORDER BY time DESC, number DESC LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![key, before, limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let (code, detail): (String, String) = (row.get(1)?, row.get(2)?);
        let kind = EventKind::from_parts(&code, &detail).ok_or_else(|| damaged("an event"))?;
        events.push(HistoryEvent { time: row.get(0)?, kind });
    }
    Ok(events)
}

/// The subjects after `after`: the total first, then lists, then servers, by ID.
pub(crate) fn subjects(
    connection: &Connection,
    after: Option<&Subject>,
    limit: usize,
) -> Result<Vec<Subject>, HistoryError> {
    let (kind, id) = after.map_or((-1, [0; 16]), Subject::parts);
    let mut statement = connection
        .prepare_cached("SELECT kind, id FROM subject WHERE (kind, id) > (?1, ?2) ORDER BY kind, id LIMIT ?3")?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![kind, id, limit])?;
    let mut subjects = Vec::new();
    while let Some(row) = rows.next()? {
        subjects.extend(Subject::from_parts(row.get(0)?, row.get(1)?));
    }
    Ok(subjects)
}

/// The key of a subject, and the beginning of its history.
fn find_subject(connection: &Connection, subject: &Subject) -> Result<Option<(Key, UnixSeconds)>, HistoryError> {
    let (kind, id) = subject.parts();
    let mut statement = connection.prepare_cached("SELECT key, start FROM subject WHERE kind = ?1 AND id = ?2")?;
    Ok(statement.query_row(params![kind, id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// A range of consecutive steps.
struct Window {
    level: Level,
    /// The first step, counted from 1970.
    first: i64,
    count: i64,
}

impl Window {
    /// The sum of each step.
    fn sums(&self, connection: &Connection, key: Key) -> Result<Vec<Sum>, HistoryError> {
        let mut sums = vec![Sum::default(); self.count as usize];
        if self.count > 0 {
            self.add_blocks(connection, key, &mut sums)?;
            self.add_fresh(connection, key, &mut sums)?;
        }
        Ok(sums)
    }

    /// Number of recorded minutes of each step since `start`, when the history of the subject began. In the step that contains
    /// `start`, it is at most the number of minutes that have passed since.
    fn observed(&self, connection: &Connection, start: UnixSeconds) -> Result<Vec<u32>, HistoryError> {
        let mut last = connection.prepare_cached("SELECT value FROM counter WHERE name = 'last_minute'")?;
        let end: UnixSeconds = last.query_row([], |row| row.get::<_, UnixSeconds>(0))?.saturating_add(60);
        let since = |step: i64| {
            let minutes = ((step + 1) * self.level.step()).min(end).saturating_sub(start) / 60;
            u32::try_from(minutes.max(0)).unwrap_or(u32::MAX)
        };
        let sums = self.sums(connection, TOTAL)?;
        Ok((self.first..).zip(&sums).map(|(step, sum)| sum.up.min(since(step))).collect())
    }

    fn add(&self, step: i64, sum: &Sum, sums: &mut [Sum]) {
        let index = usize::try_from(step - self.first).ok();
        if let Some(target) = index.and_then(|index| sums.get_mut(index)) {
            target.merge(sum);
        }
    }

    /// Adds the rolled-up rows.
    fn add_blocks(&self, connection: &Connection, key: Key, sums: &mut [Sum]) -> Result<(), HistoryError> {
        let per_slot = self.level.per_slot();
        let mut bounds = connection.prepare_cached(
            "SELECT (SELECT min(slot) FROM block WHERE level = ?1), (SELECT max(slot) FROM block WHERE level = ?1)",
        )?;
        let bounds: (Option<i64>, Option<i64>) =
            bounds.query_row([self.level as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (Some(oldest), Some(latest)) = bounds else { return Ok(()) };
        let slots = self.first.div_euclid(per_slot).max(oldest)
            ..=(self.first + self.count - 1).div_euclid(per_slot).min(latest);
        let mut select =
            connection.prepare_cached("SELECT data FROM block WHERE level = ?1 AND slot = ?2 AND subject = ?3")?;
        for slot in slots {
            let mut rows = select.query(params![self.level as i64, slot, key])?;
            let Some(row) = rows.next()? else { continue };
            let data = row.get_ref(0)?.as_blob().unwrap_or_default();
            let first = slot * per_slot;
            if self.level == Level::Minutes {
                let minutes = pack::unpack_minutes(data).ok_or_else(|| damaged("an hour"))?;
                for (step, sample) in (first..).zip(&minutes) {
                    sample.iter().for_each(|sample| self.add(step, &(*sample).into(), sums));
                }
            } else {
                let found = pack::unpack_sums(data).ok_or_else(|| damaged("a day"))?;
                (first..first + per_slot).zip(&found).for_each(|(step, sum)| self.add(step, sum, sums));
            }
        }
        Ok(())
    }

    /// Adds the rows that are not rolled up.
    fn add_fresh(&self, connection: &Connection, key: Key, sums: &mut [Sum]) -> Result<(), HistoryError> {
        let step = self.level.step();
        let hours = layout::hour(self.first * step)..=layout::hour((self.first + self.count) * step - 1);
        each_fresh(connection, key, hours, |time, sample| self.add(time.div_euclid(step), &sample.into(), sums))
    }
}

/// Calls a function for each minute of these hours that is not rolled up.
fn each_fresh(
    connection: &Connection,
    key: Key,
    hours: RangeInclusive<i64>,
    mut show: impl FnMut(UnixSeconds, Sample),
) -> Result<(), HistoryError> {
    let mut next = connection.prepare_cached("SELECT min(at) FROM fresh WHERE at > ?1")?;
    let mut select = connection.prepare_cached("SELECT at, data FROM fresh WHERE at BETWEEN ?1 AND ?2")?;
    let mut after = layout::fresh_of_hour((*hours.start()).clamp(0, layout::LAST_HOUR)) - 1;
    // From one existing row to the next: after a step of the clock there can be months between them.
    while let Some(at) = next.query_row([after], |row| row.get::<_, Option<i64>>(0))? {
        let hour = layout::hour_of_fresh(at);
        if !hours.contains(&hour) {
            break;
        }
        let from = layout::fresh(hour * 3_600, key);
        let mut rows = select.query(params![from, from | 0x3f])?;
        while let Some(row) = rows.next()? {
            let minute = layout::minute_of_fresh(row.get(0)?) as i64;
            let mut samples = pack::samples(row.get_ref(1)?.as_blob().unwrap_or_default());
            if let Some((_, sample)) = samples.find(|(low_byte, _)| *low_byte == key as u8) {
                show(hour * 3_600 + minute * 60, sample);
            }
        }
        after = layout::last_fresh_of_hour(hour);
    }
    Ok(())
}
