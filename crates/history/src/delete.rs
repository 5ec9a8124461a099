//! Deletes rows that are old, wrong, or of deleted subjects.

use crate::{
    HistoryError, Retention, UnixSeconds,
    layout::{self, Level},
    subject::Key,
};
use rusqlite::{OptionalExtension, Transaction, params};

/// Deletes rows after a minute, which were recorded at wrong times. Subjects and peaks of that time are kept, dated now.
///
/// Rows that begin before it are kept: what is wrong in them is less than a day of hours and less than 32 days, and is added
/// to the rows that follow.
pub(crate) fn delete_after(
    transaction: &Transaction<'_>,
    time: UnixSeconds,
    now: UnixSeconds,
) -> Result<(), HistoryError> {
    transaction.execute("DELETE FROM fresh WHERE at >= ?1", [layout::fresh_of_hour(layout::hour(time) + 1)])?;
    for level in Level::ALL {
        transaction
            .execute("DELETE FROM block WHERE level = ?1 AND slot > ?2", params![level as i64, level.slot(time)])?;
    }
    transaction.execute("DELETE FROM event WHERE time > ?1", [time])?;
    transaction.execute(
        "UPDATE subject SET first = min(first, ?1), start = min(start, ?1), last = min(last, ?1), peak_at = min(peak_at, ?1)",
        [now],
    )?;
    Ok(())
}

/// Deletes rows beyond their retention.
pub(crate) fn expire(
    transaction: &Transaction<'_>,
    now: UnixSeconds,
    retention: &Retention,
) -> Result<(), HistoryError> {
    for level in Level::ALL {
        let mut delete = transaction.prepare_cached("DELETE FROM block WHERE level = ?1 AND slot < ?2")?;
        delete.execute(params![level as i64, level.first_slot(now, retention)])?;
    }
    Ok(())
}

/// Deletes a subject with all its rows.
pub(crate) fn forget(
    transaction: &Transaction<'_>,
    key: Key,
    now: UnixSeconds,
    retention: &Retention,
) -> Result<(), HistoryError> {
    let mut first = transaction.prepare_cached("SELECT first FROM subject WHERE key = ?1")?;
    let Some(first) = first.query_row([key], |row| row.get::<_, i64>(0)).optional()? else { return Ok(()) };
    for level in Level::ALL {
        let slots = level.slot(first).max(level.first_slot(now, retention))..=level.slot(now);
        let mut delete =
            transaction.prepare_cached("DELETE FROM block WHERE level = ?1 AND slot = ?2 AND subject = ?3")?;
        for slot in slots {
            delete.execute(params![level as i64, slot, key])?;
        }
    }
    transaction.prepare_cached("DELETE FROM event WHERE subject = ?1")?.execute([key])?;
    transaction.prepare_cached("DELETE FROM subject WHERE key = ?1")?.execute([key])?;
    Ok(())
}
