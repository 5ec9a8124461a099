//! The recent past of all servers at once, for lists.

use crate::{
    HistoryError, UnixSeconds,
    error::damaged,
    layout::{self, Level},
    pack,
    subject::TOTAL,
};
use rallypoint_lobby_proto::PublicId;
use rusqlite::{Connection, params};
use std::collections::HashMap;

/// Number of hours of a trend.
pub(crate) const HOURS: usize = 24;

/// Number of days over which the popularity of a server is averaged.
const DAYS: i64 = 7;

/// The recent past of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerTrend {
    /// Average number of players in each of the last 24 whole hours, the oldest first; `None` where it was not listed.
    pub hours: [Option<f32>; HOURS],
    /// Average number of players in the last seven days (UTC), the current one included. Times at which it was not listed
    /// count as zero players.
    pub week: f32,
}

/// The trends of all servers that were listed in the last seven days.
pub(crate) fn trends(
    connection: &Connection,
    now: UnixSeconds,
) -> Result<HashMap<PublicId, ServerTrend>, HistoryError> {
    // A consistent view of the file while the writer rolls up hours.
    let transaction = connection.unchecked_transaction()?;
    let mut trends: HashMap<PublicId, ServerTrend> = HashMap::new();
    let first_hour = layout::hour(now) - HOURS as i64;
    each_sum(&transaction, Level::Hours, first_hour..layout::hour(now), |subject, hour, sum| {
        if let Row::Server(id) = subject {
            let average = sum.players as f32 / sum.up.max(1) as f32;
            trends.entry(id).or_default().hours[(hour - first_hour) as usize] = Some(average);
        }
    })?;
    let today = now.div_euclid(86_400);
    let mut recorded = 0_u64;
    each_sum(&transaction, Level::Days, today - DAYS + 1..today + 1, |subject, _, sum| match subject {
        // The sum of players until the number of recorded minutes is known.
        Row::Server(id) => trends.entry(id).or_default().week += sum.players as f32,
        Row::Total => recorded += u64::from(sum.up),
    })?;
    for trend in trends.values_mut() {
        trend.week /= recorded.max(1) as f32;
    }
    Ok(trends)
}

enum Row {
    Server(PublicId),
    Total,
}

/// Calls a function for each sum of all servers and of the total in a range of steps.
fn each_sum(
    connection: &Connection,
    level: Level,
    steps: std::ops::Range<i64>,
    mut show: impl FnMut(Row, i64, &crate::sample::Sum),
) -> Result<(), HistoryError> {
    let mut select = connection.prepare_cached(
        "SELECT subject.key, subject.id, block.slot, block.data FROM block JOIN subject ON subject.key = block.subject
         WHERE block.level = ?1 AND block.slot BETWEEN ?2 AND ?3 AND subject.kind IN (0, 2)",
    )?;
    let slots = steps.start.div_euclid(level.per_slot())..=(steps.end - 1).div_euclid(level.per_slot());
    let mut rows = select.query(params![level as i64, slots.start(), slots.end()])?;
    while let Some(row) = rows.next()? {
        let key: u32 = row.get(0)?;
        let id: [u8; 16] = row.get(1)?;
        let first = row.get::<_, i64>(2)? * level.per_slot();
        let data = row.get_ref(3)?.as_blob().unwrap_or_default();
        let sums = pack::unpack_sums(data).ok_or_else(|| damaged("a day"))?;
        for (step, sum) in (first..first + level.per_slot()).zip(&sums).filter(|(_, sum)| sum.up > 0) {
            if steps.contains(&step) {
                let subject = if key == TOTAL { Row::Total } else { Row::Server(PublicId::from_bytes(id)) };
                show(subject, step, sum);
            }
        }
    }
    Ok(())
}
