//! Writes batches to the file, and rolls up hours that are over.

use crate::{
    HistoryError, HistoryOptions, Retention, Subject, UnixSeconds,
    clock::{ClockState, Step},
    delete,
    event::{EventKind, HistoryEvent},
    layout::{self, Level},
    pack::{self, Minutes},
    row_batch::{KnownSubject, NewSubject, RowBatch},
    sample::Sum,
    schema,
    subject::Key,
};
use rallypoint_wire::lobby::ListId;
use rusqlite::{Connection, OptionalExtension, Transaction, config::DbConfig, params};

/// Number of events that are kept per subject and lane.
const MAX_EVENTS: i64 = 100;

/// The counters for the last [`Step`] of the clock: its fields in order, all 0 if there was none.
const STEP: [&str; 3] = ["step_before", "step_after", "step_minutes"];

/// The only connection that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    connection: Connection,
    retention: Retention,
}

/// The state of the file when it is opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LoadedState {
    pub known: Vec<KnownSubject>,
    pub next_key: Key,
    pub clock: ClockState,
}

impl Writer {
    /// Opens the file; creates or migrates it if necessary.
    pub fn open(options: &HistoryOptions) -> Result<Self, HistoryError> {
        if let Some(folder) = options.path.parent() {
            rallypoint_files::create_private_dir(folder)?;
        }
        let mut connection = Connection::open(&options.path)?;
        connection.busy_timeout(options.busy_timeout)?;
        connection.set_prepared_statement_cache_capacity(32);
        // Otherwise statements are planned again whenever another number is bound to their OFFSET: thousands of times a minute.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A power failure may lose the last minutes, but does not damage the file.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
        connection.pragma_update(None, "cache_size", -16_384)?;
        schema::migrate(&mut connection, schema::STEPS)?;
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(options.max_bytes).unwrap_or(i64::MAX) / page.max(512);
        connection.pragma_update(None, "max_page_count", pages.clamp(1, 4_294_967_294))?;
        Ok(Self { connection, retention: options.retention })
    }

    /// The state that the recorder needs.
    pub fn load(&self) -> Result<LoadedState, HistoryError> {
        let counter = |name: &str| -> Result<i64, HistoryError> {
            let value =
                self.connection.query_row("SELECT value FROM counter WHERE name = ?1", [name], |row| row.get(0));
            Ok(value.optional()?.unwrap_or(0))
        };
        let mut known = Vec::new();
        let columns = "key, kind, id, last, minutes, peak, listed, name, map";
        let mut statement = self.connection.prepare(&format!("SELECT {columns} FROM subject"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let Some(subject) = Subject::from_parts(row.get(1)?, row.get(2)?) else { continue };
            let key = row.get(0)?;
            let last = row.get(3)?;
            let minutes = row.get(4)?;
            let peak = row.get(5)?;
            let listed = row.get(6)?;
            let name = row.get(7)?;
            let map = row.get(8)?;
            known.push(KnownSubject { key, subject, last, minutes, peak, listed, name, map });
        }
        let next_key = u32::try_from(counter("next_key")?).unwrap_or(Key::MAX);
        let [before, after, minutes] = [counter(STEP[0])?, counter(STEP[1])?, counter(STEP[2])?];
        let step = Step { before, after, minutes: u32::try_from(minutes).unwrap_or(u32::MAX) };
        let clock = ClockState::new(counter("last_minute")?, (minutes > 0).then_some(step));
        Ok(LoadedState { known, next_key, clock })
    }

    /// Moves the write-ahead log into the file, so that the file is complete by itself.
    pub fn checkpoint(&self) {
        // A reader may prevent it; nothing is lost then.
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// Writes a batch in one transaction. Returns whether sums of hours and days have changed.
    pub fn apply(&mut self, batch: &RowBatch) -> Result<bool, HistoryError> {
        let retention = self.retention;
        let mut has_new_sums = batch.wrong_after.is_some() || !batch.deleted.is_empty();
        let transaction = self.connection.transaction()?;
        if let Some(time) = batch.wrong_after {
            delete::delete_after(&transaction, time, batch.time)?;
        }
        for key in &batch.deleted {
            delete::forget(&transaction, *key, batch.time, &retention)?;
        }
        for new in &batch.new {
            insert(&transaction, new, batch.time)?;
        }
        for (key, peak) in &batch.peaks {
            let mut statement =
                transaction.prepare_cached("UPDATE subject SET peak = ?2, peak_at = ?3 WHERE key = ?1")?;
            statement.execute(params![key, peak, batch.time])?;
        }
        for (number, (key, event)) in batch.events.iter().enumerate() {
            insert_event(&transaction, *key, number, event)?;
        }
        write_samples(&transaction, batch)?;
        // An hour that is rolled up cannot be reopened, so this waits until the clock is trusted.
        if batch.clock.is_trusted() && roll_up(&transaction, layout::hour(batch.time))? {
            delete::expire(&transaction, batch.time, &retention)?;
            has_new_sums = true;
        }
        let mut count = transaction.prepare_cached("INSERT OR REPLACE INTO counter VALUES (?1, ?2)")?;
        count.execute(params!["last_minute", batch.time])?;
        let step = batch.clock.step.map_or([0; 3], |step| [step.before, step.after, step.minutes.into()]);
        for (name, value) in STEP.iter().zip(step) {
            count.execute(params![name, value])?;
        }
        if let Some(last) = batch.new.iter().map(|new| i64::from(new.key)).max() {
            count.execute(params!["next_key", last + 1])?;
        }
        drop(count);
        transaction.commit()?;
        Ok(has_new_sums)
    }
}

fn insert(transaction: &Transaction<'_>, new: &NewSubject, now: UnixSeconds) -> Result<(), HistoryError> {
    let (kind, id) = new.subject.parts();
    let list = new.list.as_ref().map(ListId::as_bytes);
    let mut statement = transaction.prepare_cached(
        "INSERT INTO subject (key, kind, id, lobby, name, map, first, start, last)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)",
    )?;
    statement.execute(params![new.key, kind, id, list, new.name, new.map, new.first, now])?;
    Ok(())
}

fn insert_event(
    transaction: &Transaction<'_>,
    key: Key,
    number: usize,
    event: &HistoryEvent,
) -> Result<(), HistoryError> {
    let lane = event.kind.lane();
    let mut insert = transaction.prepare_cached("INSERT OR REPLACE INTO event VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    insert.execute(params![key, lane, event.time, number, event.kind.code(), event.kind.detail()])?;
    let mut trim = transaction.prepare_cached(
        "DELETE FROM event WHERE subject = ?1 AND lane = ?2 AND (time, number) <= (
            SELECT time, number FROM event WHERE subject = ?1 AND lane = ?2 ORDER BY time DESC, number DESC LIMIT 1 OFFSET ?3)",
    )?;
    trim.execute(params![key, lane, MAX_EVENTS])?;
    let update = |sql: &str, value: &dyn rusqlite::ToSql| -> Result<(), HistoryError> {
        transaction.prepare_cached(sql)?.execute(params![key, value])?;
        Ok(())
    };
    match &event.kind {
        EventKind::Listed(list) => update("UPDATE subject SET listed = 1, lobby = ?2 WHERE key = ?1", list.as_bytes()),
        EventKind::Unlisted(_) => update("UPDATE subject SET listed = ?2 WHERE key = ?1", &false),
        EventKind::Name(name) => update("UPDATE subject SET name = ?2 WHERE key = ?1", name),
        EventKind::Map(map) => update("UPDATE subject SET map = ?2 WHERE key = ?1", map),
    }
}

fn write_samples(transaction: &Transaction<'_>, batch: &RowBatch) -> Result<(), HistoryError> {
    let mut insert = transaction.prepare_cached("INSERT OR REPLACE INTO fresh VALUES (?1, ?2)")?;
    let mut data = Vec::new();
    for part in batch.samples.chunk_by(|(a, _), (b, _)| layout::part(*a) == layout::part(*b)) {
        data.clear();
        part.iter().for_each(|(key, sample)| pack::push_sample(&mut data, *key as u8, sample));
        insert.execute(params![layout::fresh(batch.time, part[0].0), data])?;
    }
    Ok(())
}

/// Rolls up every hour that is over. Returns whether there was one.
fn roll_up(transaction: &Transaction<'_>, now: i64) -> Result<bool, HistoryError> {
    let mut select = transaction.prepare_cached("SELECT at, data FROM fresh WHERE at < ?1 ORDER BY at")?;
    let mut rows = select.query([layout::fresh_of_hour(now)])?;
    let mut part: Option<Part> = None;
    while let Some(row) = rows.next()? {
        let at: i64 = row.get(0)?;
        let id = (layout::hour_of_fresh(at), layout::part_of_fresh(at));
        if part.as_ref().is_some_and(|part| part.id != id) {
            part.take().map(|part| part.roll_up(transaction)).transpose()?;
        }
        let part = part.get_or_insert_with(|| Part { id, subjects: vec![None; 256] });
        let minute = layout::minute_of_fresh(at);
        for (low_byte, sample) in pack::samples(row.get_ref(1)?.as_blob().unwrap_or_default()) {
            part.subjects[usize::from(low_byte)].get_or_insert_with(|| Box::new([None; 60]))[minute] = Some(sample);
        }
    }
    let Some(part) = part else { return Ok(false) };
    part.roll_up(transaction)?;
    drop(rows);
    transaction.prepare_cached("DELETE FROM fresh WHERE at < ?1")?.execute([layout::fresh_of_hour(now)])?;
    Ok(true)
}

/// The samples of 256 keys in one hour.
struct Part {
    /// The hour, and the number of the part.
    id: (i64, i64),
    subjects: Vec<Option<Box<Minutes>>>,
}

impl Part {
    fn roll_up(&self, transaction: &Transaction<'_>) -> Result<(), HistoryError> {
        let (hour, part) = self.id;
        for (low_byte, minutes) in (0..).zip(&self.subjects).filter_map(|(low, minutes)| Some((low, minutes.as_ref()?)))
        {
            roll_up_subject(transaction, hour, part << 8 | low_byte, minutes)?;
        }
        Ok(())
    }
}

fn roll_up_subject(transaction: &Transaction<'_>, hour: i64, key: i64, minutes: &Minutes) -> Result<(), HistoryError> {
    let mut sum = Sum::default();
    minutes.iter().flatten().for_each(|sample| sum.merge(&(*sample).into()));
    let last = hour * 3_600 + minutes.iter().rposition(Option::is_some).unwrap_or(0) as i64 * 60;
    let mut update =
        transaction.prepare_cached("UPDATE subject SET last = max(last, ?2), minutes = minutes + ?3 WHERE key = ?1")?;
    if update.execute(params![key, last, sum.up])? == 0 {
        // The subject was deleted in this hour.
        return Ok(());
    }
    let mut write = transaction.prepare_cached("INSERT OR REPLACE INTO block VALUES (?1, ?2, ?3, ?4)")?;
    write.execute(params![Level::Minutes as i64, hour, key, pack::pack_minutes(minutes)])?;
    let day = hour.div_euclid(24);
    let month = hour.div_euclid(24 * 32);
    add_sum(transaction, Level::Hours, day, key, hour.rem_euclid(24) as usize, &sum)?;
    add_sum(transaction, Level::Days, month, key, day.rem_euclid(32) as usize, &sum)
}

/// Adds a sum to a row: a day grows hour by hour.
fn add_sum(
    transaction: &Transaction<'_>,
    level: Level,
    slot: i64,
    key: i64,
    index: usize,
    sum: &Sum,
) -> Result<(), HistoryError> {
    let mut read =
        transaction.prepare_cached("SELECT data FROM block WHERE level = ?1 AND slot = ?2 AND subject = ?3")?;
    let old: Option<Vec<u8>> = read.query_row(params![level as i64, slot, key], |row| row.get(0)).optional()?;
    let mut sums = old.as_deref().and_then(pack::unpack_sums).unwrap_or_default();
    sums[index].merge(sum);
    let mut write = transaction.prepare_cached("INSERT OR REPLACE INTO block VALUES (?1, ?2, ?3, ?4)")?;
    write.execute(params![level as i64, slot, key, pack::pack_sums(&sums)])?;
    Ok(())
}
