//! The operator's bans and notes as they are stored in `admin.json`.

use super::{AdminError, Lifts};
use crate::cluster::{BanChange, OperatorDecision};
use rallypoint_lobby_proto::{Ban, BanSubject};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// A ban with its ID.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredBan {
    /// ID, unique among bans and notes.
    pub id: u64,
    /// The ban.
    #[serde(flatten)]
    pub ban: Ban,
    /// When it was added or replaced, in seconds since 1970.
    pub since: u64,
}

/// A note about a server or a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Note {
    /// ID, unique among bans and notes.
    pub id: u64,
    /// A public ID, an address or a network.
    pub about: String,
    /// The note itself.
    pub text: String,
    /// When it was written, in seconds since 1970.
    pub time: u64,
}

/// All bans and notes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AdminRecord {
    /// Version of the file format.
    version: u32,
    /// ID of the next ban or note.
    next: u64,
    /// Bans, also those that have ended since the last change.
    pub bans: Vec<StoredBan>,
    /// Notes, oldest first.
    pub notes: Vec<Note>,
    /// Bans that were lifted in the last 30 days, here or at other nodes of a cluster. Earlier versions of the program ignore them.
    #[serde(default, skip_serializing_if = "Lifts::is_empty")]
    pub lifted: Lifts,
}

/// The only field that all versions of the file have in common.
#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

/// The version of a file, if it has one.
pub(super) fn version(bytes: &[u8]) -> Option<u32> {
    serde_json::from_slice(bytes).ok().map(|VersionOnly { version }| version)
}

impl Default for AdminRecord {
    fn default() -> Self {
        Self { version: Self::VERSION, next: 1, bans: Vec::new(), notes: Vec::new(), lifted: Lifts::default() }
    }
}

impl AdminRecord {
    /// Version of the file format.
    pub(super) const VERSION: u32 = 1;

    /// Maximum number of bans, and of notes.
    pub const MAX: usize = 10_000;

    /// Removes bans that have ended, and forgets those that were lifted long ago.
    pub(super) fn remove_ended(&mut self, now: SystemTime) {
        self.bans.retain(|stored| stored.ban.is_in_force(now));
        self.lifted.forget_old(unix_milliseconds(now));
    }

    /// Notes a decision of this node's operator, for the other nodes of a cluster. It is the latest, whatever their clocks are.
    pub(super) fn decide(&mut self, change: BanChange) -> OperatorDecision {
        let decision = OperatorDecision { change, since: unix_milliseconds(SystemTime::now()) };
        self.lifted.handle(&decision);
        decision
    }

    /// Adds a ban, or replaces the one with the same subject. Returns whether it is new.
    pub(super) fn put_ban(&mut self, ban: Ban, since: u64) -> Result<(StoredBan, bool), AdminError> {
        if let Some(known) = self.bans.iter_mut().find(|known| known.ban.subject.is_same(&ban.subject)) {
            known.ban = ban;
            known.since = since;
            return Ok((known.clone(), false));
        }
        has_room(&self.bans).then_some(()).ok_or(AdminError::TooManyBans)?;
        let ban = StoredBan { id: self.take_id()?, ban, since };
        self.bans.push(ban.clone());
        Ok((ban, true))
    }

    pub(super) fn remove_ban(&mut self, id: u64) -> Option<StoredBan> {
        let index = self.bans.iter().position(|ban| ban.id == id)?;
        Some(self.bans.remove(index))
    }

    /// Applies a decision of another node, if it is later than what is known here.
    pub(super) fn apply_shared(&mut self, decision: OperatorDecision) -> Result<(), AdminError> {
        if !self.accepts(&decision) {
            return Ok(());
        }
        self.lifted.handle(&decision);
        match decision.change {
            BanChange::Put(ban) => self.put_ban(ban, decision.since / 1_000).map(drop),
            BanChange::Lifted(subject) => {
                self.bans.retain(|known| !known.ban.subject.is_same(&subject));
                Ok(())
            }
        }
    }

    /// Whether a decision of another node is later than what is known here, and changes something.
    pub(super) fn accepts(&self, decision: &OperatorDecision) -> bool {
        let known = self.find(decision.change.subject());
        // Times of bans are in seconds.
        let is_superseded = known.is_some_and(|known| known.since > decision.since / 1_000);
        let is_change = match &decision.change {
            BanChange::Put(ban) => known.is_none_or(|known| known.ban != *ban),
            BanChange::Lifted(_) => known.is_some(),
        };
        !is_superseded && !self.lifted.supersedes(decision) && (is_change || self.lifted.is_changed_by(decision))
    }

    fn find(&self, subject: &BanSubject) -> Option<&StoredBan> {
        self.bans.iter().find(|known| known.ban.subject.is_same(subject))
    }

    pub(super) fn add_note(&mut self, about: String, text: String, time: u64) -> Result<Note, AdminError> {
        has_room(&self.notes).then_some(()).ok_or(AdminError::TooManyNotes)?;
        let note = Note { id: self.take_id()?, about, text, time };
        self.notes.push(note.clone());
        Ok(note)
    }

    pub(super) fn remove_note(&mut self, id: u64) -> Option<Note> {
        let index = self.notes.iter().position(|note| note.id == id)?;
        Some(self.notes.remove(index))
    }

    fn take_id(&mut self) -> Result<u64, AdminError> {
        let id = self.next;
        self.next = id.checked_add(1).ok_or(AdminError::NoFreeId)?;
        Ok(id)
    }
}

fn unix_milliseconds(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

fn has_room<T>(list: &[T]) -> bool {
    list.len() < AdminRecord::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ban(subject: BanSubject, reason: &str) -> Ban {
        Ban { subject, reason: reason.into(), until: None }
    }

    #[test]
    fn ids_are_never_reused_and_a_subject_is_banned_once() {
        let mut record = AdminRecord::default();
        let note = record.add_note("192.0.2.1".into(), "x".into(), 7).unwrap();
        assert_eq!(
            (note.id, record.remove_note(note.id).is_some(), record.remove_note(note.id).is_some()),
            (1, true, false)
        );
        let casino = BanSubject::name("casino").unwrap();
        let (first, is_new) = record.put_ban(ban(casino.clone(), "a"), 7).unwrap();
        assert_eq!((first.id, is_new), (2, true));
        let (again, is_new) = record.put_ban(ban(casino, "b"), 8).unwrap();
        assert_eq!((again.id, again.since, &*again.ban.reason, is_new), (2, 8, "b", false));
        assert_eq!((record.remove_ban(2).is_some(), record.bans.len()), (true, 0));
    }

    #[test]
    fn ids_and_entries_are_limited() {
        let casino = || ban(BanSubject::name("casino").unwrap(), "");
        let mut record = AdminRecord { next: u64::MAX, ..AdminRecord::default() };
        assert!(matches!(record.put_ban(casino(), 0), Err(AdminError::NoFreeId)));
        assert!(matches!(record.add_note(String::new(), String::new(), 0), Err(AdminError::NoFreeId)));
        let pattern = |text: &str| BanSubject::Name(text.parse().unwrap());
        let numbered = |id: u64| StoredBan { id, ban: ban(pattern(&id.to_string()), ""), since: 0 };
        let mut record =
            AdminRecord { bans: (0..AdminRecord::MAX as u64).map(numbered).collect(), ..AdminRecord::default() };
        assert!(matches!(record.put_ban(casino(), 0), Err(AdminError::TooManyBans)));
        assert!(record.put_ban(ban(pattern("7"), "again"), 0).is_ok());
        assert!(record.add_note(String::new(), String::new(), 0).is_ok());
    }

    #[test]
    fn the_file_format_is_stable() {
        let mut record = AdminRecord::default();
        record.put_ban(ban(BanSubject::name("casino").unwrap(), "test"), 7).unwrap();
        record.add_note("192.0.2.1".into(), "x".into(), 7).unwrap();
        let json = serde_json::to_string(&record).unwrap();
        let expected = concat!(
            r#"{"version":1,"next":3,"bans":[{"id":1,"name":"casino","reason":"test","until":null,"since":7}],"#,
            r#""notes":[{"id":2,"about":"192.0.2.1","text":"x","time":7}]}"#,
        );
        assert_eq!(json, expected);
        assert_eq!(serde_json::to_string(&serde_json::from_str::<AdminRecord>(expected).unwrap()).unwrap(), expected);
        let expected = r#"{"version":1,"next":1,"bans":[],"notes":[],"lifted":[{"name":"casino","since":7000}]}"#;
        let record: AdminRecord = serde_json::from_str(expected).unwrap();
        assert_eq!(record.lifted.decisions().count(), 1);
        assert_eq!(serde_json::to_string(&record).unwrap(), expected);
    }
}
