//! The tables, and the migration of older versions.

use crate::HistoryError;
use rusqlite::{Connection, TransactionBehavior};

/// The migration steps, each from one version (`user_version`) to the next. Steps are never changed, only added.
pub(crate) const STEPS: &[&str] = &[
    // 1
    //
    // fresh: the minutes of the hours that are not over. `at` is hour << 30 | part << 6 | minute of the hour,
    //   and a part is the samples of 256 keys. So a minute is a few dozen rows, an hour of one subject is a range, and
    //   the whole hour can be read part by part.
    // block: the rolled-up rows. Level 0: the minutes of an hour, slot = hour; level 1: the hours of a day, slot = day;
    //   level 2: 32 days, slot = day / 32. Time comes first, so that an hour is written, and in the end deleted, in one
    //   place; a graph of 30 days is 31 rows.
    "CREATE TABLE subject (
        key INTEGER PRIMARY KEY,
        kind INTEGER NOT NULL,
        id BLOB NOT NULL,
        lobby BLOB,
        name TEXT NOT NULL,
        map TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        minutes INTEGER NOT NULL DEFAULT 0,
        peak INTEGER NOT NULL DEFAULT 0,
        peak_at INTEGER NOT NULL DEFAULT 0,
        listed INTEGER NOT NULL DEFAULT 0,
        UNIQUE (kind, id)
    );
    CREATE TABLE fresh (at INTEGER PRIMARY KEY, data BLOB NOT NULL);
    CREATE TABLE block (
        level INTEGER NOT NULL,
        slot INTEGER NOT NULL,
        subject INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (level, slot, subject)
    ) WITHOUT ROWID;
    CREATE TABLE event (
        subject INTEGER NOT NULL,
        lane INTEGER NOT NULL,
        time INTEGER NOT NULL,
        number INTEGER NOT NULL,
        code TEXT NOT NULL,
        detail TEXT NOT NULL,
        PRIMARY KEY (subject, lane, time, number)
    ) WITHOUT ROWID;
    CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counter VALUES ('next_key', 1), ('last_minute', 0);",
    // 2
    //
    // start: the first recorded minute of a subject. It was listed before, but during the warm-up nothing was written.
    "ALTER TABLE subject ADD COLUMN start INTEGER NOT NULL DEFAULT 0;
    UPDATE subject SET start = first;",
];

/// Creates the tables or migrates them to the current version, in one transaction.
pub(crate) fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), HistoryError> {
    // A concurrent process waits here, and then finds the migration done.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(HistoryError::Newer { found, known });
    }
    for step in &steps[usize::try_from(found).unwrap_or(0)..] {
        transaction.execute_batch(step)?;
    }
    if found < known {
        transaction.pragma_update(None, "user_version", known)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Checks that a file has the current version.
pub(crate) fn check(connection: &Connection) -> Result<(), HistoryError> {
    let found = version(connection)?;
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    match found {
        _ if found > known => Err(HistoryError::Newer { found, known }),
        _ if found < known => {
            Err(HistoryError::Other("it has an older format; it will be migrated by the next rallypoint serve".into()))
        }
        _ => Ok(()),
    }
}

fn version(connection: &Connection) -> Result<i64, HistoryError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version < 0 { Err(HistoryError::Damaged("invalid format version".into())) } else { Ok(version) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps that a later version might add.
    const LATER: &[&str] =
        &[STEPS[0], STEPS[1], "ALTER TABLE subject ADD COLUMN note TEXT NOT NULL DEFAULT ''", "CREATE TABLE x (y)"];

    #[test]
    fn an_old_file_is_migrated_and_keeps_its_rows() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, STEPS).unwrap();
        let insert =
            "INSERT INTO subject (key, kind, id, name, map, first, last) VALUES (1, 2, x'00', 'Bacon', '', 1, 2)";
        connection.execute_batch(insert).unwrap();
        migrate(&mut connection, LATER).unwrap();
        assert_eq!(version(&connection).unwrap(), 4);
        let row = connection.query_row("SELECT name || note FROM subject", [], |row| row.get::<_, String>(0));
        assert_eq!(row.unwrap(), "Bacon");
        // A second migration does nothing.
        migrate(&mut connection, LATER).unwrap();
        assert_eq!(version(&connection).unwrap(), 4);
    }

    #[test]
    fn migrated_subjects_start_when_they_were_first_listed() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &STEPS[..1]).unwrap();
        let insert =
            "INSERT INTO subject (key, kind, id, name, map, first, last) VALUES (1, 2, x'00', 'Bacon', '', 7, 9)";
        connection.execute_batch(insert).unwrap();
        migrate(&mut connection, STEPS).unwrap();
        let start = connection.query_row("SELECT start FROM subject", [], |row| row.get::<_, i64>(0));
        assert_eq!(start.unwrap(), 7);
    }

    #[test]
    fn a_failed_step_leaves_the_old_version() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, STEPS).unwrap();
        assert!(migrate(&mut connection, &[STEPS[0], STEPS[1], "CREATE TABLE x (y)", "no SQL"]).is_err());
        assert_eq!(version(&connection).unwrap(), 2);
        assert!(connection.execute_batch("SELECT y FROM x").is_err());
    }

    #[test]
    fn a_file_of_a_newer_version_is_not_touched() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, LATER).unwrap();
        let newer = HistoryError::Newer { found: 4, known: 2 };
        assert_eq!(migrate(&mut connection, STEPS).unwrap_err().to_string(), newer.to_string());
        assert_eq!(check(&connection).unwrap_err().to_string(), newer.to_string());
    }
}
