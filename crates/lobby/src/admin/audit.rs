//! The audit log: which operator did what, and when. Entries are only ever appended.

use rallypoint_files::OwnerOnly;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    net::IpAddr,
    path::{Path, PathBuf},
};

const FILE: &str = "audit.jsonl";

/// Size in bytes at which a new file is started.
const MAX_SIZE: u64 = 1 << 20;

/// Number of older files that are kept.
const OLDER_FILES: u32 = 4;

/// A change that the operator made or tried to make.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Time in seconds since 1970.
    pub time: u64,
    /// Address of the operator.
    pub from: IpAddr,
    /// `ban`, `unban`, `unlist`, `note`, `forget_note`.
    pub action: String,
    /// The ban's subject, or what the note is about.
    pub about: String,
    /// Reason of the ban, or text of the note.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// End of the ban in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// The log in a data directory.
#[derive(Debug)]
pub(super) struct AuditLog {
    dir: PathBuf,
}

impl AuditLog {
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Appends all entries or none, and waits until they are on the disk.
    pub fn add(&self, entries: &[AuditEntry]) -> io::Result<()> {
        let path = self.file(0);
        if fs::metadata(&path).is_ok_and(|file| file.len() >= MAX_SIZE) {
            self.rotate()?;
        }
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, entry)?;
            lines.push(b'\n');
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).owner_only().open(&path)?;
        let length = file.metadata()?.len();
        let mut last = [b'\n'];
        if length > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        // A crash may have left half a line, which must not damage these.
        if last != [b'\n'] {
            lines.insert(0, b'\n');
        }
        let written = file.write_all(&lines).and_then(|()| file.sync_data());
        if written.is_err() {
            let _ = file.set_len(length);
        }
        written
    }

    /// All entries, latest first. Lines that cannot be parsed (half a line after a crash) are skipped.
    pub fn entries(&self) -> io::Result<Vec<AuditEntry>> {
        let mut entries = Vec::new();
        for number in 0..=OLDER_FILES {
            let bytes = match fs::read(self.file(number)) {
                // The first file does not exist if a crash interrupted a rotation.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                bytes => bytes?,
            };
            entries.extend(bytes.rsplit(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
        }
        Ok(entries)
    }

    fn rotate(&self) -> io::Result<()> {
        for number in (0..OLDER_FILES).rev() {
            match fs::rename(self.file(number), self.file(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn file(&self, number: u32) -> PathBuf {
        self.dir.join(if number == 0 { FILE.into() } else { format!("{FILE}.{number}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(time: u64) -> [AuditEntry; 1] {
        [AuditEntry {
            time,
            from: [127, 0, 0, 1].into(),
            action: "ban".into(),
            about: "192.0.2.1".into(),
            reason: "x".repeat(200),
            until: None,
        }]
    }

    #[test]
    fn half_a_line_and_invalid_bytes_damage_no_other_line() {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog::new(dir.path());
        log.add(&entry(1)).unwrap();
        let file = OpenOptions::new().append(true).open(log.file(0));
        file.unwrap().write_all(b"{\"time\":2,\xff").unwrap();
        log.add(&entry(3)).unwrap();
        let times: Vec<_> = log.entries().unwrap().iter().map(|entry| entry.time).collect();
        assert_eq!(times, [3, 1]);
        fs::rename(log.file(0), log.file(1)).unwrap();
        assert_eq!(log.entries().unwrap().len(), 2, "the first file does not exist yet");
    }

    #[test]
    fn the_log_is_bounded_and_its_latest_entries_come_first() {
        let dir = tempfile::tempdir().unwrap();
        let log = AuditLog::new(dir.path());
        assert!(log.entries().unwrap().is_empty());
        // Files are extended to their maximum size without writing every entry.
        for time in 0..20 {
            log.add(&entry(time)).unwrap();
            OpenOptions::new().write(true).open(log.file(0)).unwrap().set_len(MAX_SIZE).unwrap();
        }
        log.add(&entry(20)).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1 + OLDER_FILES as usize);
        let times: Vec<_> = log.entries().unwrap().iter().map(|entry| entry.time).collect();
        assert_eq!(times, [20, 19, 18, 17, 16]);
    }
}
